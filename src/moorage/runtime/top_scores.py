"""The scores of the best nodes, as decision records keep them: a few bytes, unpacked when a record is read.

There are two forms. `TopScores` is made by an attempt that called plugins. `KeptTop` is made by an attempt that a
template's baseline decided: what its numbers mean is in a `ScoreLayout`, which all attempts of the template share.
Neither refers to the baseline, whose arrays are large and change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from moorage.api.recent import cached

TOP_NODES = 10
"""How many of the best nodes keep their scores."""


@dataclass(frozen=True, slots=True)
class PluginScore:
    """One plugin's score of one node."""

    plugin: str
    raw: int
    normalized: int
    weighted: int


@dataclass(frozen=True, slots=True)
class NodeScore:
    """One of the best nodes with its total and the scores that it consists of."""

    node: str
    total: int
    plugins: tuple[PluginScore, ...]


FewScores = Sequence[int] | int
"""One per row, or one for all."""


class ScoreColumn(NamedTuple):
    """One plugin's scores for a few rows, not yet split by node."""

    plugin: str
    weight: int
    raw: FewScores
    normalized: FewScores

    def at(self, index: int) -> PluginScore:
        normalized = _at(self.normalized, index)
        return PluginScore(self.plugin, _at(self.raw, index), normalized, normalized * self.weight)


def _at(scores: FewScores, index: int) -> int:
    return scores if isinstance(scores, int) else scores[index]


KeptScores = bytes | int
"""One for each row, as `pack` writes them, or one for all."""
KeptColumn = tuple[str, int, KeptScores, KeptScores]
"""What a `ScoreColumn` is made of."""


def pack(scores: Sequence[int] | npt.NDArray[np.int64]) -> bytes:
    """Encode numbers for the record: most are never read, and a single object is created and freed fastest."""
    return np.asarray(scores, dtype=np.int64).tobytes()


def _unpacked(scores: KeptScores) -> FewScores:
    return scores if isinstance(scores, int) else memoryview(scores).cast("q").tolist()


class TopScores(msgspec.Struct, frozen=True, gc=False):
    """The best rows with their scores."""

    packed_rows: bytes
    packed_totals: bytes
    kept: Sequence[KeptColumn]

    @property
    def nbytes(self) -> int:
        """Return roughly how many bytes this keeps alive."""
        return 300 + 100 * len(self.kept)

    @property
    def rows(self) -> list[int]:
        return memoryview(self.packed_rows).cast("q").tolist()

    @property
    def totals(self) -> list[int]:
        return memoryview(self.packed_totals).cast("q").tolist()

    @property
    def columns(self) -> list[ScoreColumn]:
        return [
            ScoreColumn(plugin, weight, _unpacked(raw), _unpacked(normalized))
            for plugin, weight, raw, normalized in self.kept
        ]

    def by_node(self, names: Sequence[str]) -> tuple[NodeScore, ...]:
        """Return the scores of each node, the best first."""
        return _by_node(names, self.rows, self.totals, self.columns)


class AddedScore(NamedTuple):
    """A plugin whose scores were added to the kept totals (`reuse.incremental`)."""

    plugin: str
    weight: int
    has_raw: bool
    """Whether its raw scores are known; if not, the normalized ones stand for them."""


class ScoreLayout(NamedTuple):
    """What the numbers of a `KeptTop` mean."""

    constants: tuple[KeptColumn, ...]
    """Plugins that give all nodes one score."""
    varying: tuple[tuple[str, int], ...]
    """Plugins, with their weights, whose raw scores count as they are."""
    added: tuple[AddedScore, ...]
    offset: int
    """The points of those constants that the totals leave out, because they are normalized."""
    base: int
    """What the totals count before the varying plugins and the added ones."""


@cached(256)
def shared_layout(layout: ScoreLayout) -> ScoreLayout:
    """Return one object for equal layouts, so that records of many templates do not keep one each."""
    return layout


RankedRow = tuple[int, ...]
"""A row among the best: its total, negated; its position in snapshot order; the row; the scores of the plugins that
the layout calls varying. Tuples in order are rows in order."""
RANKED_ROW_BYTES = 180
"""Bytes of such a tuple with its numbers."""


class KeptTop(msgspec.Struct, frozen=True, gc=False):
    """The best rows of a template's baseline with their scores, at the moment of an attempt."""

    layout: ScoreLayout
    ranked: tuple[RankedRow, ...] | bytes
    """The rows. Bytes are lines of equal length with an int64 for each row: the rows; the totals before any plugin
    was added; the scores of each varying plugin but the last; for each added plugin the totals after it and its raw
    scores, if they are known. The scores of the last varying plugin are what the totals count besides."""
    nbytes: int
    """Roughly the bytes that this keeps alive beyond what earlier records of the template keep."""
    count: int = 0
    """The number of rows, where they are packed."""
    level: int | None = None
    """The final total, where all rows have the same; its line is then left out."""

    def _packed_lines(self) -> Iterator[Sequence[int]]:
        numbers: list[int] = memoryview(self.ranked).cast("q").tolist()  # type: ignore[arg-type]
        return (numbers[start : start + self.count] for start in range(0, len(numbers), self.count))

    @property
    def rows(self) -> Sequence[int]:
        return self._read()[0]

    @property
    def totals(self) -> list[int]:
        return self._read()[1]

    @property
    def columns(self) -> list[ScoreColumn]:
        return self._read()[2]

    def _read(self) -> tuple[Sequence[int], list[int], list[ScoreColumn]]:
        """Return the rows, their totals and the scores of each plugin."""
        layout, ranked = self.layout, self.ranked
        lines: Iterator[Sequence[int]] = iter(())
        rows: Sequence[int]
        totals: Sequence[int]
        varying: list[Sequence[int]]
        if isinstance(ranked, bytes):
            lines = self._packed_lines()
            rows = next(lines)
            totals = self._next_totals(lines, is_last=not layout.added)
            varying = [next(lines) for _ in layout.varying[:-1]]
            if layout.varying:
                varying.append(self._remainder(totals, varying))
        else:
            negated, _, rows, *scores = zip(*ranked, strict=True)
            varying = [*scores]
            totals = [-total for total in negated]
        columns = [
            ScoreColumn(plugin, weight, _unpacked(raw), _unpacked(normalized))
            for plugin, weight, raw, normalized in layout.constants
        ]
        for (plugin, weight), line in zip(layout.varying, varying, strict=True):
            columns.append(ScoreColumn(plugin, weight, line, line))
        for index, (plugin, weight, has_raw) in enumerate(layout.added, 1):
            before, totals = totals, self._next_totals(lines, is_last=index == len(layout.added))
            normalized = [(after - low) // weight for low, after in zip(before, totals, strict=True)]
            columns.append(ScoreColumn(plugin, weight, next(lines) if has_raw else normalized, normalized))
        return rows, [total + layout.offset for total in totals], columns

    def _next_totals(self, lines: Iterator[Sequence[int]], *, is_last: bool) -> Sequence[int]:
        return [self.level] * self.count if is_last and self.level is not None else next(lines)

    def _remainder(self, totals: Sequence[int], others: Sequence[Sequence[int]]) -> list[int]:
        """Return the scores of the last varying plugin: what the totals count besides all others."""
        *weights, last = [weight for _, weight in self.layout.varying]
        rest = [total - self.layout.base for total in totals]
        for weight, line in zip(weights, others, strict=True):
            rest = [total - weight * score for total, score in zip(rest, line, strict=True)]
        return [total // last for total in rest]

    def by_node(self, names: Sequence[str]) -> tuple[NodeScore, ...]:
        """Return the scores of each node, the best first."""
        return _by_node(names, *self._read())


def _by_node(
    names: Sequence[str], rows: Sequence[int], totals: Sequence[int], columns: Sequence[ScoreColumn]
) -> tuple[NodeScore, ...]:
    return tuple(
        NodeScore(names[row], total, tuple(column.at(i) for column in columns))
        for i, (row, total) in enumerate(zip(rows, totals, strict=True))
    )
