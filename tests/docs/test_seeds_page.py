"""docs/seeds.md: the configurations and command lines that tutorials show are run, by their numbers there."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.api.errors import MoorageError
from moorage.app.configuration import Configuration, configure
from moorage.cli.root import app
from moorage.config import convert_policy
from moorage.config.gates import DEFAULT_GATES
from moorage.framework import ScorePlugin
from moorage.run.flags import parse
from moorage.run.options import configuration_of, options_of
from moorage.testing import Cluster, make_node, make_pod
from tests.cli.running import runner
from tests.docs.snippets import ROOT, Snippet, snippets

PAGE = ROOT / "docs" / "seeds.md"
EXAMPLE = ROOT / "examples" / "02-sample-package"


def blocks(section: str, language: str) -> list[str]:
    found: Iterator[Snippet] = iter(snippets(PAGE, language))
    return [snippet.text for snippet in found if snippet.section.startswith(section)]


@pytest.fixture
def sample(monkeypatch) -> list[Any]:
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    module = importlib.import_module("sample_scheduler.plugin")
    return [module.Sample, module.Sample2]


def arguments(section: str) -> list[str]:
    (line,) = blocks(section, "")
    program, *flags = line.split()
    assert program == "kube-scheduler"
    return flags


def names(configuration: Configuration) -> list[str]:
    return [profile.scheduler_name for profile in configuration.profiles]


def enabled(configuration: Configuration, point: str, profile: int = 0) -> list[str]:
    return [ref.name for ref in configuration.profiles[profile].points[point]]


def test_1_trailing_commas_are_refused_with_their_place():
    (policy,) = blocks("1, 2", "json")
    with pytest.raises(MoorageError, match="line 6, column 38: trailing comma"):
        convert_policy(policy, source="policy.json", gates=DEFAULT_GATES)


def test_2_without_the_comma_the_policy_is_a_configuration_with_its_extender():
    (policy,) = blocks("1, 2", "json")
    mended = re.sub(r",(\s*])", r"\1", policy)
    converted = convert_policy(mended, source="policy.json", gates=DEFAULT_GATES)
    made = configure(converted.text, discover=False)
    assert {"NodeResourcesFit", "InterPodAffinity"} <= set(enabled(made, "filter"))
    (extender,) = made.config.extenders
    assert (extender.url_prefix, extender.http_timeout) == ("http://127.0.0.1:10262/scheduler", 30.0)


def test_3_the_command_line_of_a_policy_is_understood():
    flags = parse(arguments("3"))
    assert options_of(flags).serving.port == 10261
    assert flags.text("policy-configmap") == "my-scheduler-policy"
    assert [warning for warning in flags.warnings if not warning.startswith("--port")] == []
    lease = (flags.text("lock-object-namespace"), flags.text("lock-object-name"))
    assert lease == ("pingcap", "my-scheduler")


@pytest.mark.parametrize(
    ("section", "profiles"),
    [
        ("4", ["default-scheduler"]),
        ("6", ["default-scheduler", "no-scoring-scheduler"]),
        ("9", ["default-scheduler"]),
        ("12", ["lowcpu-scheduler"]),
    ],
)
def test_configurations_that_load_as_they_stand(section, profiles):
    (text,) = blocks(section, "yaml")
    assert names(configure(text, discover=False)) == profiles


def test_5_plugins_of_ones_own_are_named_until_they_are_known():
    (text,) = blocks("5", "yaml")
    with pytest.raises(MoorageError) as refused:
        configure(text, discover=False)
    for name in ("MyCustomPluginA", "MyCustomPluginB"):
        assert f'ScorePlugin "{name}" does not exist' in str(refused.value)

    def known(plugin: str) -> type[ScorePlugin]:
        return type(plugin, (ScorePlugin,), {"name": plugin, "score": lambda self, state, pod, node: 1})

    made = configure(text, plugins=[known("MyCustomPluginA"), known("MyCustomPluginB")], discover=False)
    weights = {ref.name: ref.weight for ref in made.profiles[0].points["score"]}
    assert (weights["MyCustomPluginA"], weights["MyCustomPluginB"]) == (2, 1)


def test_6_the_second_profile_scores_nothing():
    (text,) = blocks("6", "yaml")
    made = configure(text, discover=False)
    assert enabled(made, "score", 0)
    assert enabled(made, "score", 1) == []


def test_7_lines_that_stand_for_more_are_refused_with_the_way_out():
    (text,) = blocks("7, 8", "yaml")
    with pytest.raises(MoorageError, match=re.escape("(a YAML comment begins with #, not //)")):
        configure(text, discover=False)


def test_8_without_them_the_extender_loads():
    (text,) = blocks("7, 8", "yaml")
    made = configure("".join(line for line in text.splitlines(True) if "//" not in line.replace("://", "")))
    (extender,) = made.config.extenders
    assert (extender.filter_verb, extender.prioritize_verb, extender.preempt_verb) == (
        "filter", "prioritize", "preempt",
    )  # fmt: skip


def test_9_coscheduling_is_at_all_its_points_with_its_older_argument():
    (text,) = blocks("9", "yaml")
    made = configure(text, discover=False)
    for point in ("queueSort", "preFilter", "postFilter", "permit", "reserve", "postBind"):
        assert "Coscheduling" in enabled(made, point)
    args: Any = made.profiles[0].plugin_args["Coscheduling"]
    assert args.permit_waiting_time_seconds == 10


@pytest.mark.parametrize("number", [0, 1], ids=["10 sample", "11 sample2"])
def test_the_samples_schedule_by_the_label(sample, number):
    text = blocks("10, 11", "yaml")[number]
    template = yaml.safe_load((EXAMPLE / "test-scheduler.yaml").read_text())["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template["spec"]}
    with Cluster(config=text, plugins=sample) as cluster:
        cluster.add(make_node("a"), make_node("b"))
        cluster.settle()
        cluster.add(pod)
        cluster.settle()
        assert "0/2 nodes are available: 1 Node: a, 1 Node: b." in cluster.events("p")[-1].note
        cluster.label_node("b", cpu="true")
        cluster.settle()
        assert cluster.node_of("p") == "b"


def test_13_scheduler_name_names_the_only_profile_of_the_file(tmp_path: Path):
    (text,) = blocks("12", "yaml")
    (tmp_path / "your-config.yaml").write_text(text)
    given = [flag.replace("your-config", str(tmp_path / "your-config")) for flag in arguments("12")]
    assert names(configuration_of(parse(given))) == ["lowcpu-scheduler"]


def test_14_pods_choose_the_profile_by_name():
    (text,) = blocks("12", "yaml")
    with Cluster(config=text, allow_background_failures=True) as cluster:
        cluster.add(make_node("a"), make_pod("mine", scheduler="lowcpu-scheduler"), make_pod("other"))
        cluster.settle(5)
        assert cluster.bound() == {"default/mine": "a"}


def test_15_the_rights_that_the_samples_role_lacks_are_printed_by_manifests(tmp_path: Path):
    config = tmp_path / "config.yaml"
    config.write_text(configured_without_sample(blocks("10, 11", "yaml")[0]))
    printed = runner.invoke(app, ["manifests", "--config", str(config), "--name", "sample-scheduler"])
    rules = [rule for obj in yaml.safe_load_all(printed.stdout) for rule in obj.get("rules", ())]

    def granted(verb: str, resource: str) -> bool:
        return any(verb in rule["verbs"] and resource in rule.get("resources", ()) for rule in rules)

    assert granted("watch", "namespaces")
    assert granted("list", "volumeattachments")


def configured_without_sample(text: str) -> str:
    """`manifests` reads plugins by entry point, and the package is not installed here."""
    return text.partition("    plugins:")[0]


def test_every_number_of_the_page_is_tried():
    numbers = re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    tried = Path(__file__).read_text()
    by_name = {*re.findall(r"def test_(\d+)_", tried), *re.findall(r'\("(\d+)", \["|"(\d+) sample', tried)}
    found = {number for each in by_name for number in ([each] if isinstance(each, str) else each) if number}
    assert sorted(map(int, found)) == sorted(map(int, numbers)) == list(range(1, 16))
