"""The page on deploying: its plugin, its configuration and its commands are those of the program."""

from __future__ import annotations

import re
from typing import Any

import yaml
from typer.testing import CliRunner

from moorage.app.configuration import configure
from moorage.cli.new import words
from moorage.cli.root import app
from moorage.manifests import DeployOptions, manifests, packs
from tests.docs.snippets import ROOT, snippets

PAGE = ROOT / "docs" / "deploying.md"


def test_the_plugin_deploys_with_the_rights_of_the_page():
    namespace: dict[str, Any] = {}
    snippets(PAGE)[0].run(namespace)
    (text,) = [found.text for found in snippets(PAGE, "yaml")]
    configuration = configure(text, plugins=[namespace["SampleScheduler"]], discover=False)
    assert "SampleScheduler" in [ref.name for ref in configuration.profiles[0].points["filter"]]
    objects = manifests(configuration, text, DeployOptions(name="sample-scheduler", image="i"))
    assert [obj for obj in objects if obj["kind"] == "Deployment"]
    listed = re.findall(r"^\| ([a-z-]+|plugin-…) \|", PAGE.read_text(), re.MULTILINE)
    assert {pack.name for pack in packs(configuration)} <= set(listed)


def test_the_package_is_what_moorage_new_makes():
    made = words("sample-scheduler")
    assert made["package"] == "sample_scheduler"
    assert made["plugin"] == "SampleScheduler"
    assert f"src/{made['package']}/plugin.py" in PAGE.read_text()


def test_options_exist():
    options = set(re.findall(r"(?<!\w)(--[a-z-]+)", "\n".join(s.text for s in snippets(PAGE, "console"))))
    known = CliRunner().invoke(app, ["manifests", "--help"], env={"COLUMNS": "200"}).output
    of_others = {"--no-deps", "--set", "--set-file", "--create-namespace"}
    for option in options - of_others:
        assert option in known, option


def test_chart_values_exist():
    values = yaml.safe_load((ROOT / "deploy" / "helm" / "moorage" / "values.yaml").read_text())
    for name in re.findall(r"--set(?:-file)? ([\w.]+)=", PAGE.read_text()):
        found = values
        for part in name.split("."):
            assert part in found, name
            found = found[part]
