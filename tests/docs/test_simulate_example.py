"""examples/05-simulate: the cells of the notebook run, one after the other."""

import json

from tests.docs.snippets import ROOT

EXAMPLE = ROOT / "examples" / "05-simulate"


def test_the_notebook_runs(monkeypatch, capsys):
    monkeypatch.chdir(EXAMPLE)
    notebook = json.loads((EXAMPLE / "simulate.ipynb").read_text())
    namespace: dict[str, object] = {"__name__": "notebook"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), namespace)
    assert "pods are on other nodes" in capsys.readouterr().out
