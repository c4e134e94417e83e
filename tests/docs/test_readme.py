"""The README's example works as it stands, and what it says about the project is true."""

import re
import subprocess
import sys
import tomllib
from itertools import chain

from moorage.plugins.registry import DEFAULT
from tests.cli.running import run_in
from tests.docs.snippets import ROOT, snippets

README = ROOT / "README.md"
EXAMPLE = "A plugin in fifteen lines"


def test_the_plugin_checks_and_its_test_passes(tmp_path):
    plugin, test = [snippet.text for snippet in snippets(README) if snippet.section == EXAMPLE]
    [config] = [snippet.text for snippet in snippets(README, "yaml")]
    (tmp_path / "sample.py").write_text(plugin)
    (tmp_path / "scheduler.yaml").write_text(config)
    (tmp_path / "test_sample.py").write_text(test)
    checked = run_in(tmp_path, "check", "scheduler.yaml")
    assert checked.returncode == 0, checked.stderr
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    tested = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, timeout=120, check=False)
    assert "1 passed" in tested.stdout, tested.stdout


def test_the_plugin_has_fifteen_lines_at_most():
    plugin = snippets(README)[0].text
    assert len(plugin.splitlines()) <= 15


def test_the_default_plugins_it_names_are_those_that_are_built():
    [names] = re.findall(r"^- The default plugins: (.*?)\.$", README.read_text(), re.MULTILINE | re.DOTALL)
    assert set(re.split(r",\s+", names)) == {cls.name for cls in DEFAULT}


def test_the_make_targets_it_names_exist():
    makefile = (ROOT / "Makefile").read_text()
    text = README.read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    for target in set(re.findall(r"make ([a-z-]+) ", text)) - {"it"}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_packages_of_the_architecture_page_exist():
    page = (ROOT / "docs" / "architecture.md").read_text()
    picture = page.partition("## The layers")[2].partition("```")[2].partition("```")[0]
    packages = {path.parent.name for path in (ROOT / "src" / "moorage").glob("*/__init__.py")}
    assert packages - set(re.findall(r"[a-z]+", picture)) == set()


def test_every_dependency_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[<>=\[ ]", entry)[0] for entry in declared}
    page = (ROOT / "docs" / "architecture.md").read_text().partition("## Dependencies")[2]
    assert set(re.findall(r"^\| ([A-Za-z0-9-]+) \|", page, re.MULTILINE)) - {"package"} == names
