"""The picture of the example is the one that its figures give."""

import importlib

from tests.docs.snippets import ROOT

EXAMPLE = ROOT / "examples" / "04-gpu-traces"


def test_the_picture_shows_the_recorded_figures(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    run = importlib.import_module("run")
    assert run.picture(run.recorded()) == (EXAMPLE / "curves.svg").read_text()
