"""Configurations that people publish: they load, or the message says precisely what is wrong."""

import pytest

from moorage import config
from tests.config import builders
from tests.config.builders import DATA
from tests.config.in_tree import DEFAULT_ORDER, with_plugins

NO_PLUGIN = " (no built-in or installed plugin has this name; install its package, or write module:Class)"


def load(name: str) -> config.KubeSchedulerConfiguration:
    return builders.load((DATA / name).read_bytes(), source=name)


def resolve(name: str, **plugins: str) -> tuple[config.ResolvedProfile, ...]:
    return config.resolve(load(name), with_plugins(**plugins))


def names(profile: config.ResolvedProfile, point: str) -> list[str]:
    return [ref.name for ref in profile.points[point]]


def notes(name: str) -> list[str]:
    return [str(note) for note in load(name).notes]


REFUSED = {"configmap-v1beta1.yaml", "extender-v1beta1-broken.yaml", "policy.json"}
FILES = sorted(path.name for path in DATA.iterdir())


@pytest.mark.parametrize("name", [name for name in FILES if name not in REFUSED])
def test_a_completed_file_reads_back_the_same(name):
    assert builders.load(config.dump(load(name))) == load(name)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refusal_begins_with_the_name_of_the_file(name):
    with pytest.raises(config.ConfigError, match=f"^{name}: 1 problem\n"):
        load(name)


def test_a_minimal_file():
    loaded = load("minimal-v1beta2.yaml")
    assert loaded.client_connection.kubeconfig == "/etc/srv/kubernetes/kube-scheduler/kubeconfig"


def test_custom_scores_beside_the_defaults():
    (profile,) = resolve("custom-score-v1beta2.yaml", MyCustomPluginA="score", MyCustomPluginB="score")
    weights = {ref.name: ref.weight for ref in profile.points["score"]}
    assert weights["MyCustomPluginA"] == 2
    assert weights["MyCustomPluginB"] == 1
    assert weights["NodeResourcesFit"] == 1
    resources = [{"name": "cpu", "weight": 1000000}, {"name": "memory", "weight": 1}]
    assert profile.plugin_args["NodeResourcesAllocatable"] == {"mode": "Least", "resources": resources}
    assert [note.partition(": ")[0] for note in notes("custom-score-v1beta2.yaml")[1:]] == [
        "profiles[0].plugins.score.disabled[0]",
        "profiles[0].pluginConfig[0]",
    ]


def test_custom_scores_that_no_plugin_offers():
    with pytest.raises(config.ConfigError) as caught:
        resolve("custom-score-v1beta2.yaml")
    assert [str(problem) for problem in caught.value.problems] == [
        'profiles[0].plugins.score.enabled[0]: ScorePlugin "MyCustomPluginA" does not exist' + NO_PLUGIN,
        'profiles[0].plugins.score.enabled[1]: ScorePlugin "MyCustomPluginB" does not exist' + NO_PLUGIN,
    ]


def test_two_profiles_one_without_scoring():
    default, plain = resolve("two-profiles-v1beta2.yaml")
    assert (default.scheduler_name, plain.scheduler_name) == ("default-scheduler", "no-scoring-scheduler")
    assert names(default, "score") == DEFAULT_ORDER["score"]
    assert names(plain, "score") == names(plain, "preScore") == []
    assert names(plain, "filter") == DEFAULT_ORDER["filter"]


def test_comments_that_are_not_yaml():
    with pytest.raises(config.ConfigError) as caught:
        load("extender-v1beta1-broken.yaml")
    (problem,) = caught.value.problems
    assert str(problem) == (
        "not valid YAML: line 19, column 1: could not find expected ':' (a YAML comment begins with #, not //)"
    )


def test_the_same_extender_without_the_comments():
    broken = (DATA / "extender-v1beta1-broken.yaml").read_text()
    (extender,) = builders.load(broken.replace("tlsConfig: // ...", "").replace("// ...", "")).extenders
    assert extender == config.Extender(
        url_prefix="http://127.0.0.1:10262/scheduler",
        filter_verb="filter",
        prioritize_verb="prioritize",
        preempt_verb="preempt",
        weight=1,
        http_timeout=30.0,
    )


def test_coscheduling_replaces_the_queue_sort():
    points = "queueSort preFilter postFilter permit reserve postBind"
    (profile,) = resolve("coscheduling-v1beta2.yaml", Coscheduling=points)
    assert names(profile, "queueSort") == ["Coscheduling"]
    assert names(profile, "permit") == names(profile, "postBind") == ["Coscheduling"]
    assert names(profile, "preFilter") == [*DEFAULT_ORDER["preFilter"], "Coscheduling"]
    assert profile.plugin_args["Coscheduling"] == {"permitWaitingTimeSeconds": 10, "deniedPGExpirationTimeSeconds": 3}


def test_a_policy_is_named_for_what_it_is():
    with pytest.raises(config.ConfigError, match="start with --policy-config-file"):
        load("policy.json")


def test_a_sample_filter_after_the_defaults():
    (profile,) = resolve("sample-v1.yaml", sample="filter")
    assert profile.scheduler_name == "sample-scheduler"
    assert names(profile, "filter") == [*DEFAULT_ORDER["filter"], "sample"]
    assert load("sample-v1.yaml").leader_election == config.LeaderElection(
        leader_elect=False, resource_name="sample-scheduler"
    )


def test_a_config_map_is_not_unwrapped():
    with pytest.raises(config.ConfigError, match=r"its keys: scheduler-config\.yaml"):
        load("configmap-v1beta1.yaml")


def test_what_the_config_map_holds():
    (profile,) = resolve("sample2-v1beta1.yaml", sample2="filter preScore")
    assert names(profile, "filter") == [*DEFAULT_ORDER["filter"], "sample2"]
    assert names(profile, "preScore") == ["sample2"]
    assert names(profile, "score") == DEFAULT_ORDER["score"]


def test_one_plugin_at_two_points():
    (profile,) = resolve("lowcpu-v1.yaml", LowCpuScheduler="filter score")
    assert names(profile, "filter")[-1] == names(profile, "score")[-1] == "LowCpuScheduler"
    assert profile.points["score"][-1].weight == 1
