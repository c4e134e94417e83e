"""`moorage ui` before anything is served."""

from __future__ import annotations

import asyncio
import json

import pytest
from typer.testing import CliRunner

from moorage.cli.root import app
from moorage.cli.ui import title_of
from moorage.client.connection import find
from moorage.client.credentials import Credentials


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


def test_the_header_of_a_cluster_names_context_and_server(tmp_path):
    path = tmp_path / "config"
    config = {
        "current-context": "staging",
        "contexts": [{"name": "staging", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path.write_text(json.dumps(config))
    assert title_of(asyncio.run(find(str(path)))) == "context staging, https://10.0.0.1:6443"
    assert title_of(Credentials("https://10.0.0.1", "service account")) == "cluster at https://10.0.0.1"
