"""The page on extenders: the block, the options and the embedded application are those of the program."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import yaml
from typer.testing import CliRunner

from moorage.app.configuration import configure
from moorage.cli.root import app
from moorage.run.extender.application import ServerMetrics
from moorage.run.extender.options import ExtenderOptions, config_block
from moorage.testing import Cluster, make_node
from tests.docs.snippets import ROOT, snippets
from tests.extender.server_kit import by_names, exchange, served_of
from tests.extender.test_server_application import Sample

PAGE = ROOT / "docs" / "extenders.md"
PART = PAGE.read_text().partition("## A Python plugin behind kube-scheduler")[2]
MINE = "A Python plugin behind kube-scheduler"


def test_the_block_is_what_is_printed():
    (shown,) = [found.text for found in snippets(PAGE, "yaml") if found.section == MINE]
    printed = yaml.safe_load(config_block(served_of(Sample), ExtenderOptions()))
    assert yaml.safe_load(shown)["extenders"] == printed["extenders"]


def test_the_options_are_those_of_the_command():
    known = CliRunner().invoke(app, ["extender", "--help"], env={"COLUMNS": "200"}).output
    cells = set(re.findall(r"^\| (.*?) \|", PART, re.MULTILINE))
    named = {option for cell in cells for option in re.findall(r"`(--[a-z-]+)`", cell)}
    assert named == set(re.findall(r"(--[a-z-]+)", known)) - {"--help"}


def test_the_metrics_are_those_of_the_process():
    names = {family.name for family in ServerMetrics().families()}
    assert set(re.findall(r"`(moorage_extender_server_\w+)", PART)) == names


def test_the_embedded_application_answers():
    namespace: dict[str, Any] = {}
    (snippet,) = snippets(PAGE)
    snippet.run(namespace)
    text = "profiles: [{plugins: {filter: {enabled: [{name: Sample}]}}}]"
    header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    configuration = configure(header + text, plugins=[Sample], discover=False)
    with Cluster(start=False) as cluster:
        cluster.add(make_node("a", labels={"cpu": "true"}), make_node("b"))

        async def main() -> tuple[int, bytes]:
            made, stop = await namespace["make_app"](cluster.client, configuration)
            try:
                code, body, _ = await exchange(made, "/filter", msgspec.json.encode(by_names("a", "b")))
            finally:
                await stop()
            return code, body

        code, body = cluster.run(main())
    assert (code, yaml.safe_load(body)["NodeNames"]) == (200, ["a"])
