"""`moorage check`: the mistakes of plugin authors, all at once, with the place and what to do."""

from __future__ import annotations

import textwrap
from itertools import count
from pathlib import Path

import pytest

from moorage.app import checks
from moorage.app.configuration import configure
from moorage.cli.root import app
from moorage.framework import FilterPlugin
from tests.cli.running import runner
from tests.scheduler.kit import config

HEAD = "from moorage.framework import FilterPlugin, ReservePlugin, ReusablePlugin, ScorePlugin, Status\n"
_numbers = count()


class Written:
    """A module of plugins in a folder, and the output of `moorage check` for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.module = f"check_mistakes_{next(_numbers)}"  # modules stay imported

    def check(self, text: str, *classes: str, extra: str = "", options: tuple[str, ...] = ()) -> tuple[int, str]:
        (self.folder / f"{self.module}.py").write_text(HEAD + textwrap.dedent(text))
        names = [f'"{self.module}:{name}"' for name in classes]
        file = self.folder / "scheduler.yaml"
        file.write_text(config(*names, head=extra))
        result = runner.invoke(app, ["check", str(file), "--plugin-path", str(self.folder), *options])
        return result.exit_code, " ".join((result.stdout + result.stderr).split())


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


FILTERS = [
    pytest.param("def filter(self, pod, node): pass", "filter(self, pod, node) is called with", id="too few"),
    pytest.param(
        "def filter(self, state, pod, node, more): pass",
        "filter(self, state, pod, node, more) is called",
        id="too many",
    ),
    pytest.param(
        "def filter(self, state, pod, *, node): pass", "filter(self, state, pod, *, node) is called", id="keyword-only"
    ),
    pytest.param("def filter(): pass", "is called with (state, pod, node)", id="without self"),
    pytest.param("filter = None", "`filter` must be a method, not None", id="no method"),
    pytest.param("@staticmethod\n    def filter(pod, node): pass", "is called with (state, pod, node)", id="static"),
]


@pytest.mark.parametrize(("method", "sentence"), FILTERS)
def test_a_wrong_signature_is_refused_with_the_line_to_write(written, method, sentence):
    code, said = written.check(f'class Wrong(FilterPlugin):\n    name = "wrong"\n    {method}\n', "Wrong")
    assert code == 1
    assert sentence in said
    assert "write `def filter(self, state, pod, node)`" in said


@pytest.mark.parametrize(
    "method",
    [
        "def filter(self, *args): pass",
        "def filter(self, state, pod, node, more=1): pass",
        "def filter(self, _state, p, n, /): pass",
        "@staticmethod\n    def filter(state, pod, node): pass",
        "@classmethod\n    def filter(cls, state, pod, node): pass",
        "filter = lambda self, state, pod, node: None",
    ],
)
def test_a_signature_that_can_be_called_is_accepted(written, method):
    assert written.check(f'class Right(FilterPlugin):\n    name = "right"\n    {method}\n', "Right")[0] == 0


def test_a_constructor_with_other_parameters_is_refused(written):
    text = """
        class Wrong(FilterPlugin):
            name = "wrong"
            def __init__(self): pass
            def filter(self, state, pod, node): pass
    """
    code, said = written.check(text, "Wrong")
    assert code == 1
    assert "__init__(self) is called with (args, handle): write `def __init__(self, args, handle)`" in said


def test_a_constructor_without_super_is_refused(written):
    text = """
        class Alone(FilterPlugin):
            name = "alone"
            def __init__(self, args, handle): self.limit = 3
            def filter(self, state, pod, node): pass
    """
    code, said = written.check(text, "Alone")
    assert code == 1
    assert 'plugin "alone": __init__() does not call super().__init__(args, handle)' in said
    assert "call it first" in said


def test_a_misspelled_hook_is_named(written):
    text = """
        class Slip(FilterPlugin):
            name = "slip"
            def fitler(self, state, pod, node): pass
    """
    code, said = written.check(text, "Slip")
    assert code == 1
    assert "defines no filter() (rename fitler() if that is meant)" in said


def test_a_misspelled_optional_hook_is_a_warning(written):
    text = """
        class Slip(ScorePlugin):
            name = "slip"
            def score(self, state, pod, node): return 1
            def normalize_score(self, state, pod, scores): return scores
    """
    code, said = written.check(text, "Slip")
    assert code == 0
    assert 'warning: plugin "slip" defines normalize_score(), which the scheduler does not call' in said
    assert "rename it if it is meant to be normalize_scores()" in said


IMPORTS = [
    pytest.param("import no_such_package", 3, "No module named 'no_such_package'; install the package", id="module"),
    pytest.param("def x(:", 3, "SyntaxError", id="syntax"),
    pytest.param("1 / 0", 3, "importing raised ZeroDivisionError: division by zero", id="raises"),
    pytest.param("import json\njson.loads('{')", 4, "JSONDecodeError", id="raises in a library"),
    pytest.param("from moorage.framework import FilterPlugn", 3, "cannot import name 'FilterPlugn'", id="name"),
]


@pytest.mark.parametrize(("lines", "line", "sentence"), IMPORTS)
def test_an_import_error_names_the_file_and_line_of_the_author(written, lines, line, sentence):
    code, said = written.check(f"\n{lines}\n", "Any")
    assert code == 1
    assert f"{written.module}.py, line {line}: " in said
    assert sentence in said


def test_a_class_that_is_not_in_the_module_gets_the_nearest_name(written):
    text = 'class Mine(FilterPlugin):\n    name = "mine"\n    def filter(self, state, pod, node): pass\n'
    code, said = written.check(text, "Mien")
    assert code == 1
    assert "has no class 'Mien' (did you mean \"Mine\"?)" in said


def test_a_constructor_that_raises_is_reported_with_its_line(written):
    text = """
        class Broken(FilterPlugin):
            name = "broken"
            def __init__(self, args, handle):
                super().__init__(args, handle)
                self.limit = args["limit"]
            def filter(self, state, pod, node): pass
    """
    code, said = written.check(text, "Broken")
    assert code == 1
    assert f"initializing plugin \"broken\": KeyError: 'limit' ({written.folder}/{written.module}.py, line 7)" in said


def test_all_mistakes_come_at_once(written):
    text = """
        class Signature(FilterPlugin):
            name = "signature"
            def filter(self, pod): pass
        class Constructor(FilterPlugin):
            name = "constructor"
            def __init__(self, args, handle): raise LookupError("no model")
            def filter(self, state, pod, node): pass
        class Alone(FilterPlugin):
            name = "alone"
            def __init__(self, args, handle): pass
            def filter(self, state, pod, node): pass
        class Sign(FilterPlugin, ReusablePlugin):
            name = "sign"
            def filter(self, state, pod, node): pass
            def sign(self, pod): return []
            def reads(self, pod): return ()
        class Events(FilterPlugin):
            name = "events"
            def filter(self, state, pod, node): pass
            def events_to_register(self): return "nodes"
    """
    names = ("Signature", "Constructor", "Alone", "Sign", "Events", "Absent")
    code, said = written.check(text, *names, extra="parallelism: 0", options=("--plugin", "nowhere:X"))
    assert code == 1
    for sentence in (
        "filter(self, pod) is called with (state, pod, node)",
        'initializing plugin "constructor": LookupError: no model',
        'plugin "alone": __init__() does not call super().__init__',
        'plugin "sign": sign() of a plain pod must return a hashable value',
        'plugin "events": events_to_register(): TypeError: expected a list of Registration or None',
        "has no class 'Absent'",
        "parallelism: ",
        "cannot import plugin 'nowhere:X'",
    ):
        assert sentence in said, sentence
    assert "8 problems" in said


class Slow(FilterPlugin):
    name = "slow"

    def filter(self, state, pod, node):
        return None


def test_a_constructor_above_one_second_is_a_warning():
    times = count(0.0, 1.5)
    problems, [warning] = checks.build_all(configure(config("slow"), plugins=[Slow]), timer=lambda: next(times))
    assert problems == []
    assert warning.startswith('plugin "slow": the constructor took 1.5 s')
    assert "handle.spawn()" in warning


def test_the_plugin_path_must_be_a_folder(tmp_path):
    (tmp_path / "c.yaml").write_text(config())
    result = runner.invoke(app, ["check", str(tmp_path / "c.yaml"), "--plugin-path", str(tmp_path / "none")])
    assert (result.exit_code, "is not a folder" in result.stderr) == (1, True)
