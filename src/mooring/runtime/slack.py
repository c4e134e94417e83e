"""Room on nodes as plain numbers, for filters that hold sums of requests against a limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.nodes import Nodes
from mooring.framework.points import FilterPlugin
from mooring.framework.ranking import PodTail
from mooring.runtime.calling import failed

Slack = Mapping[str, Mapping[int, int]]
"""Resource → row → how much more other pods may request there."""


def slack_of(plugins: Sequence[FilterPlugin], state: CycleState, pod: Pod, nodes: Nodes) -> dict[str, Slack]:
    """Plugin → the slack it sees on these nodes, for the plugins that can tell."""
    found: dict[str, Slack] = {}
    for plugin in plugins:
        try:
            told = plugin.slack(state, pod, nodes)
            if told is not None:
                rows = nodes.rows.tolist()
                found[plugin.name] = {
                    resource: dict(zip(rows, column.tolist(), strict=True))
                    for resource, column in told.items()
                }
        except Exception as error:
            failed(plugin, "Slack", pod, error)  # logged; its filter can still be asked
    return found


class Room:
    """What is left on one node while its victims return, per resource that is not plentiful anyway."""

    __slots__ = ("_columns", "_left", "_start")

    def __init__(self, slacks: Iterable[Slack], row: int, victims: PodTail) -> None:
        left: dict[str, int] = {}
        for slack in slacks:
            for resource, by_row in slack.items():
                left[resource] = min(left.get(resource, by_row[row]), by_row[row])
        scarce = {name: amount for name, amount in left.items() if victims.total(name) > amount}
        self._left = list(scarce.values())
        self._columns = [victims.ranked.column(name) for name in scarce]
        self._start = victims.start

    def fill(self, numbers: Iterable[int]) -> list[int]:
        """Let in one after the other whoever fits; returns the others."""
        if len(self._left) != 1:
            return [number for number in numbers if not self._enters(number)]
        start, column, left = self._start, self._columns[0], self._left[0]
        away = []
        for number in numbers:
            amount = column[number + start]
            if amount <= left:
                left -= amount
            else:
                away.append(number)
        self._left[0] = left
        return away

    def _enters(self, number: int) -> bool:
        admitted = self.admits(number)
        if admitted:
            self.take(number)
        return admitted

    def admits(self, number: int) -> bool:
        at = number + self._start
        return all(column[at] <= left for column, left in zip(self._columns, self._left, strict=True))

    def take(self, number: int) -> None:
        at = number + self._start
        for index, column in enumerate(self._columns):
            self._left[index] -= column[at]
