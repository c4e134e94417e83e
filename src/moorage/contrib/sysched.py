"""SySched: prefer nodes where pods are exposed to the fewest system calls that they do not use themselves. Follows
pkg/sysched/sysched.go of scheduler-plugins (KEP-399).

A pod uses the system calls that its seccomp profiles allow, which are SeccompProfile objects of the Security Profiles
Operator. A node is exposed to the calls of all its running pods."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from moorage.api.pod import Pod, SecurityContext
from moorage.api.resources import Unstructured, custom
from moorage.framework.access import LISTED, Access, Dependency, Reads, Version
from moorage.framework.args import PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes, NodeView
from moorage.framework.optional import ReusablePlugin, VectorScorePlugin
from moorage.framework.status import Normalization

SECCOMP_PROFILES = custom("security-profiles-operator.x-k8s.io", "v1beta1", "seccompprofiles", "SeccompProfile")
ANNOTATION = "seccomp.security.alpha.kubernetes.io"
ALLOWING = ("SCMP_ACT_ALLOW", "SCMP_ACT_LOG")
WORD = 64
"""Bits of one column: a set of system calls is one number per 64 names."""
_BITS = np.array([byte.bit_count() for byte in range(256)], dtype=np.int64)


class SySchedArgs(PluginArgs):
    """The profile of pods that name none."""

    default_profile_namespace: str = "default"
    default_profile_name: str = "all-syscalls"


class Exposure(NamedTuple):
    """The running pods of a node."""

    pods: int
    calls: int
    """All system calls that they use, one bit each."""
    total: int
    """The number of calls that each uses, added up."""


class SySched(VectorScorePlugin, ReusablePlugin):
    name = "SySched"
    Args = SySchedArgs
    needs = (Access(SECCOMP_PROFILES, LISTED),)
    normalization = Normalization.REVERSED

    def __init__(self, args: SySchedArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._profiles: dict[tuple[str, str], int] = {}
        """Namespace and name → system calls, one bit each."""
        self._bits: dict[str, int] = {}
        """System call → its bit."""
        self._version = Version()
        handle.on_change(SECCOMP_PROFILES, self._profile_changed)

    def _profile_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        obj = new or old
        if obj is not None:
            self._profiles.pop((obj.namespace, obj.name), None)
        if new is not None:
            self._profiles[new.namespace, new.name] = sum({self._bit(name) for name in allowed_calls(new)})
        self._version.bump()

    def _bit(self, name: str) -> int:
        return self._bits.setdefault(name, 1 << len(self._bits))

    def calls_of(self, pod: Pod) -> int:
        """Return the calls that all profiles of the pod allow together, or those of the default profile."""
        calls = 0
        for key in profiles_of(pod):
            calls |= self._profiles.get(key, 0)
        default = (self.args.default_profile_namespace, self.args.default_profile_name)
        return calls or self._profiles.get(default, 0)

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        """Return the number of calls that the pod is exposed to without using them, plus the same for each pod on the
        node with the pod added. If the pod has no known profile, all nodes score the same."""
        calls = self.calls_of(pod)
        if not calls:
            return np.zeros(len(nodes), dtype=np.int64)
        unused, together = np.zeros((2, len(nodes)), dtype=np.int64)
        for shift in range(0, len(self._bits), WORD):
            mine = np.uint64(calls >> shift & 2**WORD - 1)
            there = self._column(nodes, shift)
            unused += count_bits(there & ~mine)
            together += count_bits(there | mine)
        pods, total = self._column(nodes, "pods"), self._column(nodes, "total")
        # All calls of a pod are calls of its node, so what a pod does not use is a difference of numbers.
        return np.where(pods > 0, unused + pods * together - total, 0)

    def _column(self, nodes: Nodes, part: int | str) -> npt.NDArray[Any]:
        """Return per node the number of running pods, the sum of their calls, or 64 bits of the calls that they use."""
        dtype = np.int64 if isinstance(part, str) else np.uint64

        def of(node: NodeView) -> int:
            found = self._exposure(node)
            number: int = getattr(found, part) if isinstance(part, str) else found.calls >> part & 2**WORD - 1
            return number

        return nodes.row_column(
            (self, self._version.value, part), lambda view: np.array([of(node) for node in view], dtype=dtype), of
        )

    def _exposure(self, node: NodeView) -> Exposure:
        used = [self.calls_of(pod) for pod in node.pods if pod.status.phase == "Running"]
        union = 0
        for calls in used:
            union |= calls
        return Exposure(len(used), union, sum(calls.bit_count() for calls in used))

    def sign(self, pod: Pod) -> Hashable:
        return frozenset(profiles_of(pod))

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.ROW, self._version)


def count_bits(words: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    """Return the number of set bits of each word."""
    counted: npt.NDArray[Any]
    if hasattr(np, "bitwise_count"):  # not in NumPy 1
        counted = np.bitwise_count(words)
    else:
        counted = _BITS[np.ascontiguousarray(words).view(np.uint8)].reshape(-1, 8).sum(axis=1)
    return counted


def allowed_calls(profile: Unstructured) -> Iterator[str]:
    for group in profile.get("spec", "syscalls") or ():
        if group.get("action") in ALLOWING:
            yield from group.get("names") or ()


def profiles_of(pod: Pod) -> Iterator[tuple[str, str]]:
    """Return namespace and name of the profiles that the pod, its containers and its annotations name, by paths such as
    `operator/<namespace>/<name>.json`."""
    contexts = (pod.spec.security_context, *(found.security_context for found in pod.spec.containers))
    paths = [path for context in contexts if (path := localhost_profile(context))]
    paths += [text for key, text in pod.annotations.items() if ANNOTATION in key]
    for path in paths:
        *_, namespace, file = ("", "", *path.split("/"))
        name = file.rpartition(".")[0] if "." in file else file
        if namespace and name:
            yield namespace, name


def localhost_profile(context: SecurityContext | None) -> str:
    profile = context.seccomp_profile if context is not None else None
    return profile.localhost_profile if profile is not None and profile.type == "Localhost" else ""
