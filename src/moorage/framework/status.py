"""What plugins answer: a Status, a score, or the result of one of the extension points.

A Status is a code, reasons, and the name of the plugin. A refusal is a Status. An exception raised by a
plugin is a bug, which the runtime turns into `Code.ERROR` for that attempt. Where a Status is expected,
`None` means Success. Follows pkg/scheduler/framework/interface.go."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from moorage.api.pod import Pod


class Code(enum.IntEnum):
    """The codes of the scheduling framework, with the names and numbers of kube-scheduler."""

    SUCCESS = 0
    """The plugin has no objection."""
    ERROR = 1
    """Something broke. The attempt ends, and the pod retries with error backoff."""
    UNSCHEDULABLE = 2
    """Refused; preempting other pods might help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """Refused; removing other pods would not help, so preemption skips this node."""
    WAIT = 4
    """Permit only: hold the pod until it is allowed, rejected or timed out."""
    SKIP = 5
    """PreFilter, PreScore: skip the plugin for this pod. Bind: let the next binder do it. PreBind pre-flight:
    nothing to do."""
    PENDING = 6
    """Refused for now. The plugin itself will cause the event that helps, and then the pod returns to the
    active queue without backoff."""

    @property
    def label(self) -> str:
        """The spelling in logs, metrics and conformance data."""
        return _LABELS[self]


_LABELS = {code: code.name.title().replace("_", "") for code in Code}

REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})
"""The codes that refuse a pod; the others are success or failure."""

_GRAVITY = {Code.ERROR: 4, Code.UNSCHEDULABLE_AND_UNRESOLVABLE: 3, Code.UNSCHEDULABLE: 2, Code.PENDING: 1}


def gravest(codes: Iterable[Code]) -> Code:
    """Return the code that wins when a node is refused for several reasons."""
    return max(codes, key=lambda code: _GRAVITY.get(code, 5))


MAX_PERMIT_TIMEOUT = 15 * 60.0
"""Seconds; a longer wait is cut to this."""


@dataclass(frozen=True, slots=True)
class Status:
    """An answer. Build one with the class methods; check `code`, `is_success` or `is_rejected`."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    """The plugin that answered; filled in by the runtime."""
    timeout: float | None = None
    """Seconds that a WAIT may last; `None` means the maximum of 15 minutes."""
    cause: BaseException | None = None
    """The exception behind an ERROR, if there is one."""

    def __post_init__(self) -> None:
        """Raise a TypeError for a malformed answer, inside the plugin that builds it."""
        if type(self.code) is not Code:
            raise TypeError(f"the code of a Status is a Code, got {self.code!r}")
        if type(self.reasons) is not tuple:
            object.__setattr__(self, "reasons", _as_tuple(self.reasons))
        for reason in self.reasons:
            if not isinstance(reason, str):
                raise TypeError(f"a reason of a Status is a text, got {reason!r}")
        if self.timeout is not None and (not isinstance(self.timeout, int | float) or math.isnan(self.timeout)):
            raise TypeError(f"the timeout of a Status is a number of seconds or None, got {self.timeout!r}")

    @classmethod
    def success(cls) -> Status:
        """Accept; the same as returning `None`."""
        return SUCCESS

    @classmethod
    def error(cls, message: str, *, cause: BaseException | None = None) -> Status:
        """Report that something broke. The attempt fails and is retried with error backoff."""
        return cls(Code.ERROR, (message,), cause=cause)

    @classmethod
    def unschedulable(cls, *reasons: str, resolvable: bool = True) -> Status:
        """Refuse. `resolvable=False`: removing other pods would not help."""
        code = Code.UNSCHEDULABLE if resolvable else Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return cls(code, reasons)

    @classmethod
    def unresolvable(cls, *reasons: str) -> Status:
        """Refuse, and say that preemption cannot help (UnschedulableAndUnresolvable)."""
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)

    @classmethod
    def wait(cls, *reasons: str, timeout: float | None = None) -> Status:
        """Permit: hold the pod for up to `timeout` seconds, at most 15 minutes."""
        return cls(Code.WAIT, reasons, timeout=timeout)

    @classmethod
    def skip(cls, *reasons: str) -> Status:
        """Skip this plugin (PreFilter, PreScore), or pass the pod on to the next one (Bind)."""
        return cls(Code.SKIP, reasons) if reasons else SKIP

    @classmethod
    def pending(cls, *reasons: str) -> Status:
        """Refuse until an event that the plugin itself will cause."""
        return cls(Code.PENDING, reasons)

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_rejected(self) -> bool:
        return self.code in REJECTED

    @property
    def is_skip(self) -> bool:
        return self.code is Code.SKIP

    @property
    def is_wait(self) -> bool:
        return self.code is Code.WAIT

    @property
    def message(self) -> str:
        """The reasons in one line."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """Return this answer, attributed to `plugin` unless it names one already."""
        if self.plugin:
            return self
        return Status(self.code, self.reasons, plugin, self.timeout, self.cause)

    def __bool__(self) -> bool:
        raise TypeError("a Status is neither true nor false; ask is_success, is_rejected or code")


def _as_tuple(reasons: object) -> tuple[str, ...]:
    if isinstance(reasons, str) or not isinstance(reasons, Iterable):
        raise TypeError(f"the reasons of a Status are a tuple of texts, got {reasons!r}")
    return tuple(reasons)


SUCCESS = Status()
SKIP = Status(Code.SKIP)


MIN_NODE_SCORE = 0
MAX_NODE_SCORE = 100

Scores = npt.NDArray[np.int64]


def default_normalize(scores: Scores, *, reverse: bool = False, top: int = MAX_NODE_SCORE) -> Scores:
    """Scale the scores by integer division so that the highest becomes `top`; `reverse` reverses the
    order. If no score is above 0, they stay as they are, or all become `top` with `reverse`."""
    highest = int(scores.max()) if len(scores) else 0
    if highest <= 0:
        return np.full_like(scores, top) if reverse else scores
    if highest <= _LARGEST // top and scores.min() >= 0:
        scaled: Scores = scores * top // highest
    else:
        scaled = np.array([_cut(score * top, highest) for score in scores.tolist()], dtype=np.int64)
    return top - scaled if reverse else scaled


_LARGEST = 2**63 - 1


def _cut(numerator: int, denominator: int) -> int:
    """Divide as Go does, towards zero."""
    return numerator // denominator if numerator >= 0 else -(-numerator // denominator)


class Normalization(enum.Enum):
    """The default normalization as a declaration. The runtime does it on all rows at once, and skips it if
    all scores are equal."""

    DEFAULT = False
    REVERSED = True

    def apply(self, scores: Scores | int, feasible: npt.NDArray[np.bool_]) -> Scores | int:
        """Return normalized scores. Scores are not negative; only feasible rows count for the maximum."""
        highest = scores if isinstance(scores, int) else int((scores * feasible).max(initial=0))
        if highest <= 0:
            return MAX_NODE_SCORE if self.value else 0
        scaled = scores * MAX_NODE_SCORE // highest
        return MAX_NODE_SCORE - scaled if self.value else scaled


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The answer of PreFilter that only these nodes can be feasible. Results of several plugins are
    intersected; names of unknown nodes are dropped."""

    node_names: frozenset[str]


class PreemptionCandidate(Protocol):
    """A node on which the pod would fit after preemption."""

    @property
    def node_name(self) -> str: ...
    @property
    def victims(self) -> Sequence[Pod]:
        """The pods that would have to go, most important first."""

    @property
    def reprieved(self) -> Sequence[Pod]:
        """Candidate victims that preemption spared."""

    @property
    def pdb_violations(self) -> int:
        """How many victims violate a disruption budget."""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What PostFilter decided about the pod's nomination.

    `nominated_node` None leaves `status.nominatedNodeName` alone, "" clears it, and a name sets it. `victims`
    are for the decision record; `candidates`, the nodes that were compared, are for explanations.
    """

    nominated_node: str | None = None
    victims: tuple[Pod, ...] = ()
    candidates: Sequence[PreemptionCandidate] = ()


@dataclass(frozen=True, slots=True)
class PreBindPreFlight:
    """The announcement of PreBind that it will do something for this pod. Neighbouring plugins that allow
    it run in parallel."""

    allow_parallel: bool = False
