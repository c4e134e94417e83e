"""The tables of a result, as CSV or, if the package `pyarrow` is installed, as Parquet.

Rows are written and read one by one, so that a million of them take no memory. `results` and `comparing`
define the columns.
"""

from __future__ import annotations

import csv
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

from moorage.api.errors import MoorageError

BATCH = 10_000
"""Rows of a Parquet file that are written together."""


class TableFormat(enum.StrEnum):
    """The format of tables, which is also the suffix of their files."""

    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column."""

    arrow: str
    """The type in Parquet."""
    text: Callable[[Any], str]
    """Formats a value for CSV."""
    value: Callable[[str], Any]
    """Parses a value from CSV."""


MEASURE = ColumnType(
    "float64", lambda value: "" if isnan(value) else f"{value:.9g}", lambda text: float(text) if text else nan
)
"""A missing value is NaN in Python, empty in CSV and null in Parquet."""
SECONDS = ColumnType("float64", "{:.6f}".format, float)
NUMBER = ColumnType("int64", str, int)
TEXT = ColumnType("string", str, str)
Columns = Mapping[str, ColumnType]


class ResultTable:
    """A table in a folder, written row by row. A table of the same name in the other format is removed."""

    def __init__(self, folder: Path, name: str, columns: Columns, form: TableFormat) -> None:
        for other in TableFormat:
            _file(folder, name, other).unlink(missing_ok=True)
        path = _file(folder, name, form)
        self._rows: _CsvRows | _ParquetRows = (
            _CsvRows(path, columns) if form is TableFormat.CSV else _ParquetRows(path, columns)
        )

    def add(self, row: Iterable[Any]) -> None:
        """Add a row."""
        self._rows.add(row)

    def __enter__(self) -> ResultTable:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()


def read_table(folder: Path, name: str, columns: Columns) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Return the names of the columns, and the rows. Columns that are not in `columns` are measures."""
    path = _file(folder, name, TableFormat.PARQUET)
    if path.exists():
        return _read_parquet(path)
    return _read_csv(_file(folder, name, TableFormat.CSV), columns)


def check_format(form: TableFormat) -> None:
    """Raise if the package for the format is missing, before any work is done."""
    if form is TableFormat.PARQUET:
        _pyarrow()


def _file(folder: Path, name: str, form: TableFormat) -> Path:
    return folder / f"{name}.{form}"


class _CsvRows:
    """Writes rows as CSV."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._texts = [kind.text for kind in columns.values()]
        self._file = path.open("w", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(columns)

    def add(self, row: Iterable[Any]) -> None:
        self._writer.writerow([text(value) for text, value in zip(self._texts, row, strict=True)])

    def close(self) -> None:
        self._file.close()


class _ParquetRows:
    """Writes rows as Parquet."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._pyarrow = pyarrow = _pyarrow()
        fields = [(name, pyarrow.type_for_alias(kind.arrow)) for name, kind in columns.items()]
        self._schema = pyarrow.schema(fields)
        self._writer = pyarrow.parquet.ParquetWriter(path, self._schema)
        self._waiting: list[Iterable[Any]] = []

    def add(self, row: Iterable[Any]) -> None:
        self._waiting.append(row)
        if len(self._waiting) == BATCH:
            self._write()

    def close(self) -> None:
        self._write()
        self._writer.close()

    def _write(self) -> None:
        if self._waiting:
            columns = zip(*self._waiting, strict=True)
            arrays = [
                self._pyarrow.array(column, type=field.type, from_pandas=True)
                for column, field in zip(columns, self._schema, strict=True)
            ]
            self._writer.write_batch(self._pyarrow.record_batch(arrays, schema=self._schema))
            self._waiting.clear()


def _read_csv(path: Path, columns: Columns) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    with path.open(newline="") as file:
        names = next(csv.reader(file), [])
    values = [columns.get(name, MEASURE).value for name in names]

    def rows() -> Iterator[tuple[Any, ...]]:
        with path.open(newline="") as file:
            reader = csv.reader(file)
            next(reader, None)
            for row in reader:
                yield tuple(value(text) for value, text in zip(values, row, strict=True))

    return names, rows()


def _read_parquet(path: Path) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    file = _pyarrow().parquet.ParquetFile(path)

    def rows() -> Iterator[tuple[Any, ...]]:
        for batch in file.iter_batches(BATCH):
            columns = [column.to_pylist() for column in batch.columns]
            for row in zip(*columns, strict=True):
                yield tuple(nan if value is None else value for value in row)

    return file.schema_arrow.names, rows()


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MoorageError("Parquet needs pyarrow. Install moorage[parquet], or use --format csv.") from error
    return pyarrow
