"""`moorage check --try`: of the typical mistakes of plugin authors, none stays unreported, and each message says what
to do."""

from __future__ import annotations

import asyncio
import json
import logging
import textwrap
from itertools import count
from pathlib import Path

import pytest

from moorage.app.configuration import configure
from moorage.cli.root import app
from moorage.framework import FilterPlugin, PreBindPlugin
from moorage.run import trial
from moorage.telemetry import logs
from tests.cli.running import runner
from tests.scheduler.kit import config

HEAD = """
import time
import msgspec
from moorage.api.resources import NODES, PODS
from moorage.framework import (
    FilterPlugin, PermitPlugin, PreBindPlugin, ReservePlugin, ReusablePlugin, ScorePlugin, Status
)
"""
FILTER = "class Mine(FilterPlugin):\n    name = 'mine'\n"
ACCEPTS = "    def filter(self, state, pod, node): return None\n"
SCORE = "class Mine(ScorePlugin):\n    name = 'mine'\n    def score(self, state, pod, node): "
PERMIT = "class Mine(PermitPlugin):\n    name = 'mine'\n    def permit(self, state, pod, node_name): "
ARGS = "class Args(msgspec.Struct, forbid_unknown_fields=True):\n    limit: int = 3\n"
INIT = "    def __init__(self, args, handle):\n        "

MISTAKES: dict[str, tuple[str, str, str]] = {
    # mistake: (code, what the message says, what it says to do)
    "a misspelled hook": (
        f"{FILTER}    def fliter(self, state, pod, node): return None\n",
        "inherits FilterPlugin but defines no filter()",
        "rename fliter()",
    ),
    "no name": (f"class Mine(FilterPlugin):\n{ACCEPTS}", "has no `name`", "a non-empty string"),
    "a wrong signature": (
        f"{FILTER}    def filter(self, pod, node): return None\n",
        "filter(self, pod, node) is called with (state, pod, node)",
        "write `def filter(self, state, pod, node)`",
    ),
    "an async filter": (
        f"{FILTER}    async def filter(self, state, pod, node): return None\n",
        "filter() is `async def`",
        "write a plain `def`",
    ),
    "a bool from filter": (
        f"{FILTER}    def filter(self, state, pod, node): return True\n",
        "plugin 'mine': Filter: TypeError: expected a Status or None, got True",
        "return None to keep the node, or Status.unschedulable(reason)",
    ),
    "None from score": (
        f"{SCORE}return None\n",
        "plugin 'mine': Score: TypeError: expected a number as score, got None",
        "return a number",
    ),
    "a score out of range": (f"{SCORE}return 1000\n", "1000", "must be in 0-100"),
    "a KeyError": (
        f"{FILTER}    def filter(self, state, pod, node):\n        return pod.labels['team']\n",
        "plugin 'mine': Filter: KeyError: 'team'",
        "py, line 11",
    ),
    "no super().__init__": (
        f"{FILTER}{INIT}self.limit = 3\n{ACCEPTS}",
        "__init__() does not call super().__init__(args, handle)",
        "call it first",
    ),
    "undeclared access": (
        f"{FILTER}    def filter(self, state, pod, node): self.handle.lister(PODS).list()\n",
        "plugin 'mine' uses pods (get, list, watch) without declaring it",
        "add Access(<Pod>, ('get', 'list', 'watch',)) to its `needs`",
    ),
    "changed labels": (
        f"{FILTER}    def filter(self, state, pod, node): pod.labels['a'] = 'b'\n",
        "plugin 'mine': Filter: TypeError: objects of the cluster are shared and read-only",
        "change a copy",
    ),
    "a changed selector": (
        f"{FILTER}    def filter(self, state, pod, node): pod.spec.node_selector['a'] = 'b'\n",
        "plugin 'mine': ",
        "change a copy",
    ),
    "a slow filter": (
        f"{FILTER}    def filter(self, state, pod, node): time.sleep(0.15)\n",
        "plugin 'mine': filter() took longer than 100 ms",
        "move the work to run() or handle.spawn()",
    ),
    "a missing module": ("import no_such_package\n", "No module named 'no_such_package'", "install the package"),
    "a syntax error": ("def x(:\n", "py, line 8: importing raised SyntaxError", "correct the file"),
    "a constructor that raises": (
        f"{FILTER}{INIT}raise OSError('no model')\n{ACCEPTS}",
        'initializing plugin "mine": OSError: no model',
        "py, line 11",
    ),
    "arguments of a wrong type": (
        f"{ARGS}{FILTER}    Args = Args\n{ACCEPTS}#args: {{limit: many}}",
        "args.limit",
        "expected an integer",
    ),
    "an unknown argument": (
        f"{ARGS}{FILTER}    Args = Args\n{ACCEPTS}#args: {{limt: 3}}",
        'unknown field "limt"',
        'did you mean "limit"?',
    ),
    "a name that is taken": (
        f"class Mine(FilterPlugin):\n    name = 'NodeName'\n{ACCEPTS}",
        "duplicate plugin name 'NodeName'",
        "rename one of them",
    ),
    "nonsense as events": (
        f"{FILTER}{ACCEPTS}    def events_to_register(self): return ['node']\n",
        "events_to_register(): TypeError",
        "expected a Registration",
    ),
    "a sign that is not hashable": (
        "class Mine(FilterPlugin, ReusablePlugin):\n    name = 'mine'\n"
        f"{ACCEPTS}    def sign(self, pod): return []\n    def reads(self, pod): return ()\n",
        "must return a hashable value",
        "return a tuple",
    ),
    "a Wait without a timeout": (
        f"{PERMIT}return Status.wait()\n",
        "plugin 'mine': permit() returned Wait without a timeout",
        "return Status.wait(timeout=seconds)",
    ),
    "a Wait with a negative timeout": (
        f"{PERMIT}return Status.wait(timeout=-1)\n",
        "plugin 'mine': permit() returned Wait with the timeout -1",
        "return Status.wait(timeout=seconds)",
    ),
    "background work that raises": (
        f"{FILTER}{ACCEPTS}    async def run(self): raise OSError('no metrics')\n",
        "plugin 'mine': background work: OSError: no metrics",
        "py, line 11",
    ),
    "a reserve that returns text": (
        "class Mine(ReservePlugin):\n    name = 'mine'\n    def reserve(self, state, pod, node_name): return 'ok'\n",
        "plugin 'mine': Reserve: TypeError: expected a Status or None, got 'ok'",
        "expected a Status or None",
    ),
    "a blocking pre_bind": (
        "class Mine(PreBindPlugin):\n    name = 'mine'\n"
        "    async def pre_bind(self, state, pod, node_name):\n"
        "        await self.handle.clock.sleep(1)\n        time.sleep(0.15)\n",
        "plugin 'mine': pre_bind() took longer than 100 ms",
        "move the work",
    ),
}
_numbers = count()


def checked(folder: Path, code: str, *options: str) -> tuple[int, str]:
    module = f"check_try_{next(_numbers)}"  # modules stay imported
    (folder / f"{module}.py").write_text(HEAD + code)
    args = code.partition("#args: ")[2]
    extra = f"pluginConfig: [{{name: '{module}:Mine', args: {args}}}]" if args else ""
    file = folder / "scheduler.yaml"
    file.write_text(config(f'"{module}:Mine"', "NodeName", extra=extra))
    result = runner.invoke(app, ["check", str(file), "--plugin-path", str(folder), "--try", *options])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join((result.stdout + result.stderr).split())


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_typical_mistake_is_reported_with_what_to_do(tmp_path, mistake):
    code, what, remedy = MISTAKES[mistake]
    exit_code, said = checked(tmp_path, code)
    assert exit_code == 1, said
    assert what in said
    assert remedy in said
    assert "Traceback" not in said


def test_a_plugin_without_mistakes_passes(tmp_path):
    exit_code, said = checked(tmp_path, f"{FILTER}{ACCEPTS}")
    assert exit_code == 0, said
    assert "tried a pod of profile default-scheduler: bound to node-" in said
    assert "The trial found no problem." in said
    exit_code, said = checked(tmp_path, f"{FILTER}{ACCEPTS}", "-o", "json")
    [outcome] = json.loads(said)["trial"]["outcomes"]
    assert outcome["node"].startswith("node-")


def test_a_refusal_is_no_mistake(tmp_path):
    code = f"{FILTER}    def filter(self, state, pod, node): return Status.unschedulable('not today')\n"
    exit_code, said = checked(tmp_path, code)
    assert exit_code == 0, said
    assert "not bound: 0/2 nodes are available: 2 not today." in said


def test_several_problems_come_at_once(tmp_path):
    code = textwrap.dedent("""
        class Mine(FilterPlugin, ScorePlugin):
            name = 'mine'
            def filter(self, state, pod, node): pod.spec.node_selector.update(a='b')
            def score(self, state, pod, node): return 1 / 0
            async def run(self): raise OSError('no metrics')
    """)
    exit_code, said = checked(tmp_path, code)
    assert exit_code == 1
    for sentence in ("change a copy", "OSError: no metrics"):
        assert sentence in said


class Quick(FilterPlugin):
    name = "quick"

    def filter(self, state, pod, node):
        return None


def test_every_profile_is_tried_and_extenders_are_not_called():
    extender = "extenders: [{urlPrefix: 'http://localhost:1', filterVerb: filter}]"
    text = config("quick", profiles=["one", "two"], head=extender)
    found = trial.try_out(configure(text, plugins=[Quick], discover=False))
    assert (found.problems, found.notes) == ([], [])
    assert [(outcome.profile, bool(outcome.node)) for outcome in found.outcomes] == [("one", True), ("two", True)]


@pytest.mark.parametrize(("steps", "count_of_slow"), [([0.0, 0.0, 0.0, 5.0], 0), ([0.2 * n for n in range(100)], 1)])
def test_a_hook_is_slow_if_it_is_slow_in_two_trials(steps, count_of_slow):
    times = iter(steps)  # the first two are those of the constructor
    configuration = configure(config("quick"), plugins=[Quick], discover=False)
    found = trial.try_out(configuration, timer=lambda: next(times, 5.0))
    assert len(found.problems) == count_of_slow


class Asks(PreBindPlugin):
    """Asks the network, which virtual time does not have."""

    name = "asks"

    async def pre_bind(self, state, pod, node_name):
        return None

    async def run(self):
        await asyncio.open_connection("localhost", 1)


def test_work_that_reaches_outside_is_a_note_and_no_problem():
    found = trial.try_out(configure(config("asks"), plugins=[Asks], discover=False))
    assert found.problems == []
    [note] = found.notes
    assert note.startswith("plugin 'asks': background work could not be tried: ")


def test_the_log_is_as_before_after_a_trial():
    logger = logging.getLogger(logs.ROOT)
    before = list(logger.handlers), logger.propagate
    trial.try_out(configure(config("quick"), plugins=[Quick], discover=False))
    assert (list(logger.handlers), logger.propagate) == before
