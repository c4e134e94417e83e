"""The grid of nodes: the text that its rows travel in."""

from __future__ import annotations

import msgspec
import pytest
from nicegui import ui

from moorage.web.pages import grid

TABLE = {
    "nodes": ["a", "b"],
    "scores": [None, 7],
    "plugins": [{"plugin": "Fit; </script>", "reasons": ["too small"], "verdicts": [1, 0]}],
}


class Shown:
    """Records what would be shown."""

    def __init__(self) -> None:
        self.options: dict[str, object] = {}

    def __getattr__(self, name):
        return lambda *given, **more: self

    def __call__(self, options=None, **more):
        if isinstance(options, dict):
            self.options = options
        return self


@pytest.fixture
def shown(monkeypatch):
    made = Shown()
    monkeypatch.setattr(ui, "input", made)
    monkeypatch.setattr(ui, "aggrid", made)
    return made


@pytest.mark.parametrize("refused_by", [True, False])
def test_rows_are_packed_in_columns_whose_names_are_ours(shown, refused_by):
    grid.show_nodes(TABLE, lambda node: None, refused_by)
    heads = [column["headerName"] for column in shown.options["columnDefs"]]
    assert heads == ["Node", *(["Rejections"] if refused_by else []), "Score", "Fit; </script>"]
    packed = msgspec.json.decode(shown.options["context"]["packed"])
    assert packed == {"node": ["a", "b"], "score": [None, 7], "p0": {"reasons": ["too small"], "verdicts": [1, 0]}}


def test_without_scores_there_is_no_column_of_them(shown):
    grid.show_nodes({**TABLE, "scores": [None, None]}, lambda node: None)
    assert "Score" not in [column["headerName"] for column in shown.options["columnDefs"]]
