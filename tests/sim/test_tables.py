"""Tables come back as they were written, in either format, and there is one of a name in a folder."""

import sys
from importlib.util import find_spec
from math import isnan, nan

import pytest

from moorage.api.errors import MoorageError
from moorage.sim import tables
from moorage.sim.tables import MEASURE, NUMBER, SECONDS, TEXT, ResultTable, TableFormat, check_format, read_table

PARQUET = pytest.param(
    TableFormat.PARQUET,
    marks=pytest.mark.skipif(find_spec("pyarrow") is None, reason="the extra parquet is not installed"),
)
FORMATS = [TableFormat.CSV, PARQUET]
COLUMNS = {"seed": NUMBER, "pod": TEXT, "wait": SECONDS, "cpu": MEASURE}
ROWS = [(1, 'a,"b"', 0.5, 0.25), (2, "", 1e6, nan), (-3, "ü\n", 0.0, 1e-9)]


def written(folder, form, rows=ROWS, columns=COLUMNS):
    with ResultTable(folder, "t", columns, form) as table:
        for row in rows:
            table.add(row)


@pytest.mark.parametrize("form", FORMATS)
def test_rows_come_back_with_their_types(tmp_path, form):
    written(tmp_path, form)
    names, rows = read_table(tmp_path, "t", COLUMNS)
    found = list(rows)
    assert names == list(COLUMNS)
    assert [row[:3] for row in found] == [row[:3] for row in ROWS]
    assert (found[0][3], isnan(found[1][3]), found[2][3]) == (0.25, True, 1e-9)


@pytest.mark.parametrize("form", FORMATS)
def test_rows_are_written_in_batches_and_none_is_lost(tmp_path, form, monkeypatch):
    monkeypatch.setattr(tables, "BATCH", 4)
    for number in (0, 3, 4, 9):
        written(tmp_path, form, [(float(n),) for n in range(number)], {"x": MEASURE})
        assert list(read_table(tmp_path, "t", {})[1]) == [(float(n),) for n in range(number)]


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="the extra parquet is not installed")
def test_a_table_takes_the_place_of_one_in_the_other_format(tmp_path):
    for form in (TableFormat.PARQUET, TableFormat.CSV, TableFormat.PARQUET):
        written(tmp_path, form)
        assert [file.name for file in tmp_path.iterdir()] == [f"t.{form}"]


def test_parquet_without_its_package_is_refused_at_once(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    check_format(TableFormat.CSV)
    with pytest.raises(MoorageError, match=r"Install moorage\[parquet\], or use --format csv"):
        check_format(TableFormat.PARQUET)
