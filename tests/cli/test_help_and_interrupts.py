"""Help in plain words that loads little, Ctrl-C without a traceback, and output without colours."""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from moorage.cli.root import app
from tests.cli.running import run_in, runner


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, sub in getattr(command, "commands", {}).items():
        yield from commands(sub, (*path, name))


ALL = list(commands(typer.main.get_command(app)))
_PYTHON = re.compile(r"<(bool|int|float|str|path|list\[.*?\])>|\{\w+\}|\[\[|\bBOOLEAN\b")


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_no_help_shows_python_types_or_braces(path):
    result = runner.invoke(app, [*path, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert _PYTHON.search(result.stdout) is None


def test_the_brief_texts_are_those_of_the_commands():
    group: Any = typer.main.get_command(app)
    real = {name: " ".join(inspect.cleandoc(c.help).split("\n\n")[0].split()) for name, c in group.commands.items()}
    shown = " ".join(re.sub(r"[│╭╰─╮╯]", " ", runner.invoke(app, ["--help"], env={"COLUMNS": "300"}).stdout).split())
    assert [name for name, text in real.items() if f"{name} {text}" not in shown] == []


HELP = """
import sys
sys.argv = ["moorage", "--help"]
from moorage.cli import main
try:
    main()
except SystemExit:
    pass
print(*sorted(sys.modules), file=sys.stderr)
"""


def test_help_imports_no_command_and_nothing_large():
    result = subprocess.run([sys.executable, "-c", HELP], text=True, capture_output=True, timeout=60, check=True)
    modules = result.stderr.split()
    assert {"numpy", "aiohttp", "cryptography", "starlette", "moorage.config", "moorage.app"} & set(modules) == set()
    assert sum(name.partition(".")[0] == "moorage" for name in modules) <= 20


INTERRUPT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["moorage", *{args!r}]
from moorage.cli import main
main()
"""


@pytest.mark.parametrize("command", ["check", "explain", "simulate", "up", "run", "bench", "ui"])
@pytest.mark.parametrize("when", ["typer", "moorage.cli.root", "moorage.cli.{command}"])
def test_ctrl_c_while_a_command_starts_prints_no_traceback(command, when):
    code = INTERRUPT.format(name=when.format(command=command), args=[command, "--help"])
    result = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60, check=False)
    assert (result.returncode, "Traceback" in result.stderr) == (130, False), result.stderr


def test_no_color_is_respected(tmp_path):
    (tmp_path / "c.yaml").write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    coloured = re.compile(r"\x1b\[[0-9;]*\b(3[0-7]|9[0-7])")
    for args in (["check", "c.yaml"], ["check", "none.yaml"], ["--help"], ["check", "--nope"]):
        forced = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
        plain = run_in(tmp_path, *args, NO_COLOR="1", **forced)
        assert coloured.search(plain.stdout + plain.stderr) is None, args


def test_the_option_o_is_the_output_format_everywhere():
    group: Any = typer.main.get_command(app)
    meanings = set()
    for path in ALL:
        command = group
        for name in path:
            command = command.commands[name]
        meanings |= {option.opts[0] for option in command.params if "-o" in option.opts}
    assert meanings == {"--output"}
    for name in ("snapshot", "record"):
        assert not [option for option in group.commands[name].params if "-o" in option.opts]
