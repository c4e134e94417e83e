"""Recount the cache from its own pods or from the API server's, for `validate` and `compare`.

The code is slow and simple on purpose. It shares nothing with the code it checks, except the demand of a pod.
See pkg/scheduler/backend/cache/debugger/comparer.go of Kubernetes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.requests import CPU, MEMORY, PODS
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour
from moorage.state.columns import clamp
from moorage.state.node_columns import taint_class
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import PodEntry, TemplateDemand

Sums = dict[str, int]


def recount(table: NodeTable, pods: Iterable[PodEntry], behaviour: Behaviour = DEFAULT_BEHAVIOUR) -> list[str]:
    """Return the differences between the table and the pods that it should account."""
    expected: dict[str, list[Pod]] = defaultdict(list)
    for placed in pods:
        expected[placed.node_name].append(placed.pod)
    unknown = expected.keys() - dict(table.known_rows()).keys()
    problems = [f"node {name}: not in the table" for name in unknown]
    for name, row in table.known_rows():
        problems += _row_problems(table, name, row, expected.get(name, []), behaviour)
    return problems + _listing_problems(table)


def compare(
    table: NodeTable,
    cached: Mapping[str, PodEntry],
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    behaviour: Behaviour = DEFAULT_BEHAVIOUR,
) -> list[str]:
    """Return the differences between the cache and the objects that the API server lists."""
    known = {node.name: node for node in nodes}
    listed = {pod.uid: pod for pod in pods}
    problems = [f"node {name}: not cached" for name in known if name not in table]
    problems += [f"node {name}: cached but gone" for name in table.nodes().names if name not in known]
    for uid, pod in listed.items():
        problems += _pod_problems(pod, cached.get(uid))
    problems += [f"pod {p.pod.key}: cached but gone" for uid, p in cached.items() if uid not in listed]
    return problems + _sum_problems(table, cached, listed, behaviour)


def _pod_problems(pod: Pod, cached: PodEntry | None) -> list[str]:
    held = pod.is_assigned and not pod.is_terminal
    if cached is None:
        return [f"pod {pod.key}: not cached on {pod.spec.node_name}"] if held else []
    if pod.is_terminal:
        return [f"pod {pod.key}: cached but {pod.status.phase}"]
    if not pod.is_assigned:
        return [] if cached.assumed else [f"pod {pod.key}: cached on {cached.node_name} but not bound"]
    if pod.spec.node_name != cached.node_name:
        return [f"pod {pod.key}: cached on {cached.node_name} but bound to {pod.spec.node_name}"]
    return []


def _sum_problems(
    table: NodeTable, cached: Mapping[str, PodEntry], listed: Mapping[str, Pod], behaviour: Behaviour
) -> list[str]:
    """Compare the sums per node. An assumed pod that is not bound yet counts as bound."""
    actual: dict[str, list[Pod]] = defaultdict(list)
    for pod in listed.values():
        placed = cached.get(pod.uid)
        node_name = pod.spec.node_name or (placed.node_name if placed and placed.assumed else "")
        if node_name and not pod.is_terminal:
            actual[node_name].append(pod)
    rows = dict(table.known_rows())
    problems = []
    for name in rows.keys() | actual.keys():
        have = _nonzero(table.load_on(rows[name]).requested) if name in rows else {}
        want = _sums(actual.get(name, []), behaviour)[0]
        if have != want:
            problems.append(f"node {name}: cached requests {have}, the API server's pods request {want}")
    return sorted(problems)


def _row_problems(table: NodeTable, name: str, row: int, pods: list[Pod], behaviour: Behaviour) -> list[str]:
    want, (cpu, memory) = _sums(pods, behaviour)
    nonzero = table.load_on(row).nonzero_requested
    checks: dict[str, tuple[object, object]] = {
        "pods": (sorted(p.uid for p in table.load_on(row).pods()), sorted(p.uid for p in pods)),
        "requested": (_nonzero(table.load_on(row).requested), want),
        "nonzero requested": ((nonzero[CPU], nonzero[MEMORY]), (cpu, memory)),
        "nonzero columns": (
            [int(table.amounts.nonzero_requested(resource)[row]) for resource in (CPU, MEMORY)],
            [clamp(cpu), clamp(memory)],
        ),
    }
    for resource in {*want, *table.load_on(row).requested}:
        column = int(table.amounts.requested(resource)[row])
        checks[f"column {resource}"] = (column, clamp(want.get(resource, 0)))
    wrong = {what: pair for what, pair in checks.items() if pair[0] != pair[1]}
    return [f"node {name}: {what} is {have}, not {should}" for what, (have, should) in wrong.items()]


def _listing_problems(table: NodeTable) -> list[str]:
    """Check that each live node is listed once, nothing else is, and that views match the node objects."""
    rows = table.nodes().rows.tolist()
    live = {row for name, row in table.known_rows() if name in table}
    problems = []
    if sorted(rows) != sorted(live):
        problems.append(f"listed rows {sorted(rows)}, live rows {sorted(live)}")
    classes, ids = table.taints.classes, table.taints.ids
    for row in live:
        view = table.view(row)
        if table.node_names()[row] != view.name or classes[ids[row]] != taint_class(view.node):
            problems.append(f"row {row}: name or taints differ from node {view.name}")
        wrong = [r for r, n in view.allocatable.items() if int(table.amounts.allocatable(r)[row]) != clamp(n)]
        problems += [f"node {view.name}: wrong allocatable column {resource}" for resource in wrong]
    return problems


def _sums(pods: Iterable[Pod], behaviour: Behaviour) -> tuple[Sums, tuple[int, int]]:
    sums: Sums = defaultdict(int)
    cpu = memory = 0
    for pod in pods:
        demand = TemplateDemand.of(pod, behaviour)
        for resource, amount in demand.requests.items():
            sums[resource] += amount
        sums[PODS] += 1
        cpu, memory = cpu + demand.nonzero[0], memory + demand.nonzero[1]
    return _nonzero(sums), (cpu, memory)


def _nonzero(sums: Mapping[str, int]) -> Sums:
    return {resource: amount for resource, amount in sums.items() if amount}
