"""`moorage ui` before anything is served."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from moorage.cli.root import app


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--server=https://x", "--snapshot=f"], "drop --snapshot"),
        (["--token-file=t"], "need --server"),
        (["--results=r", "--snapshot=f"], "--results shows simulations"),
    ],
    ids=["two clusters", "a token for none", "results of a snapshot"],
)
def test_options_that_exclude_each_other_are_named(options, says):
    done = CliRunner().invoke(app, ["ui", *options])
    assert done.exit_code == 1
    assert says in done.stderr
