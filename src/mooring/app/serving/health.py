"""/healthz, /livez and /readyz with kube-scheduler's checks, in the form that its users know.

Every request runs its checks anew. Results are counted for /metrics/slis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

Reason = str
"""Why a check fails; empty when it passes."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that may be wrong. `run` must not block: it reads what others have noted."""

    name: str
    run: Callable[[], Reason]


PING = Check("ping", lambda: "")


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to a request."""

    code: int
    text: str


@dataclass(slots=True)
class Health:
    """The three endpoints: name → checks, in the order in which they are reported."""

    endpoints: dict[str, Sequence[Check]]
    counted: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(endpoint, check, "success" or "error") → how often."""
    last: dict[tuple[str, str], int] = field(default_factory=dict)
    """(endpoint, check) → 1 if it passed the last time, else 0."""

    def all(self, endpoint: str, *, verbose: bool = False, exclude: Collection[str] = ()) -> Report:
        """Every check of an endpoint. What failed is named; why is for the log, not for strangers."""
        lines, failed, unknown = [], [], set(exclude)
        for check in self.endpoints[endpoint]:
            if check.name in exclude:
                unknown.discard(check.name)
                lines.append(f"[+]{check.name} excluded: ok")
            elif self._run(endpoint, check):
                failed.append(check.name)
                lines.append(f"[-]{check.name} failed: reason withheld")
            else:
                lines.append(f"[+]{check.name} ok")
        if unknown:
            lines.append(f"warn: some health checks cannot be excluded: no matches for {_quoted(unknown)}")
        if failed:
            return Report(500, "\n".join([*lines, f"{endpoint} check failed", ""]))
        return Report(200, "\n".join([*lines, f"{endpoint} check passed", ""]) if verbose else "ok")

    def one(self, endpoint: str, name: str) -> Report | None:
        """A single check; None when the endpoint does not have it."""
        check = next((check for check in self.endpoints[endpoint] if check.name == name), None)
        if check is None:
            return None
        reason = self._run(endpoint, check)
        return Report(500, f"internal server error: {reason}\n") if reason else Report(200, "ok")

    def reasons(self, endpoint: str) -> dict[str, Reason]:
        """What is wrong now, for the log."""
        found = ((check.name, check.run()) for check in self.endpoints[endpoint])
        return {name: reason for name, reason in found if reason}

    def _run(self, endpoint: str, check: Check) -> Reason:
        reason = check.run()
        self.counted[endpoint, check.name, "error" if reason else "success"] += 1
        self.last[endpoint, check.name] = 0 if reason else 1
        return reason

    def samples(self) -> Iterator[tuple[str, str, int]]:
        """(endpoint, check, last result)."""
        for (endpoint, name), value in sorted(self.last.items()):
            yield endpoint, name, value


def _quoted(names: Collection[str]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(names))
