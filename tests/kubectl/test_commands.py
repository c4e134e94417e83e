"""The commands of `commands.txt`, one after the other, on the embedded cluster. What fails is named in docs/up.md."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kubectl.runner import Kubectl, Result

pytestmark = pytest.mark.slow

TABLE = Path(__file__).with_name("commands.txt")
SECONDS = 30.0
MIN_COMMANDS = 150


@dataclass(frozen=True)
class Command:
    """One line of the table."""

    words: str
    wanted: str
    works: bool
    stdin: str = ""
    repeats: bool = False

    def args(self, namespace: str) -> list[str]:
        """Return the arguments; `@` is the namespace of the test, for names of the whole cluster."""
        separators = shlex.shlex(self.words.replace("@", namespace), posix=True)
        separators.whitespace_split, separators.quotes, separators.commenters = True, "", ""
        return list(separators)


def commands() -> Iterator[Command]:
    """Read the table."""
    lines = iter(TABLE.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if not line or line.startswith("#"):
            continue
        stdin = ""
        if line.endswith(" <<"):
            first = line.removesuffix(" <<")
            stdin = "\n".join(iter(lambda: next(lines), "."))
            line = f"{first} {next(lines)}"
        works = " => " in line
        words, _, wanted = line.partition(" => " if works else " =! ")
        yield Command(words.removeprefix("~"), wanted, works, stdin, line.startswith("~"))


def outcome(command: Command, kubectl: Kubectl) -> Result:
    """Run a command, again and again if the table says so."""
    deadline = time.monotonic() + SECONDS
    while True:
        done = kubectl.run(*command.args(kubectl.namespace), stdin=command.stdin)
        if not command.repeats or command.wanted in done.out or time.monotonic() > deadline:
            return done
        time.sleep(0.1)


def test_the_table_is_long():
    every = list(commands())
    assert len(every) >= MIN_COMMANDS
    assert all(command.wanted for command in every)


def test_the_page_names_the_verbs_that_do_not_work():
    page = (Path(__file__).resolve().parents[2] / "docs" / "up.md").read_text(encoding="utf-8")
    works = {command.words.split()[0] for command in commands() if command.works}
    never = {command.words.split()[0] for command in commands()} - works - {"diff"}
    assert {"exec", "debug", "autoscale"} <= never
    assert [verb for verb in sorted(never) if f"{verb}`" not in page] == []


def test_every_command_works_or_says_why_not(kubectl: Kubectl):
    wrong = []
    for command in commands():
        done = outcome(command, kubectl)
        text = done.out + done.err
        if (done.code == 0) != command.works or command.wanted not in text:
            wrong.append(
                f"kubectl {command.words}\n  wanted: {command.wanted}\n  code {done.code}: {text.strip()[-400:]}"
            )
    assert not wrong, "\n".join(wrong)
