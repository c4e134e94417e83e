"""Every field: its default, its value on the wire, and the mistakes one can make in it."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import config
from moorage.api.times import Duration
from moorage.app.configuration import EMPTY, build_registry
from moorage.plugins.inter_pod_affinity.plugin import InterPodAffinityArgs
from tests.config.builders import IN_TREE, args, load, only_args, problems, profile, text

DEFAULTS = [
    ("parallelism", 16),
    ("enable_profiling", True),
    ("enable_contention_profiling", True),
    ("percentage_of_nodes_to_score", 0),
    ("pod_initial_backoff_seconds", 1),
    ("pod_max_backoff_seconds", 10),
    ("extenders", ()),
    ("delay_cache_until_active", False),
    ("leader_election.leader_elect", True),
    ("leader_election.lease_duration", 15.0),
    ("leader_election.renew_deadline", 10.0),
    ("leader_election.retry_period", 2.0),
    ("leader_election.resource_lock", "leases"),
    ("leader_election.resource_name", "kube-scheduler"),
    ("leader_election.resource_namespace", "kube-system"),
    ("client_connection.kubeconfig", ""),
    ("client_connection.accept_content_types", ""),
    ("client_connection.content_type", "application/vnd.kubernetes.protobuf"),
    ("client_connection.qps", 50.0),
    ("client_connection.burst", 100),
]


def attribute(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize(("path", "value"), DEFAULTS, ids=[path for path, _ in DEFAULTS])
def test_default(path, value):
    assert attribute(load(text()), path) == value


@pytest.mark.parametrize(
    ("body", "path", "value"),
    [
        pytest.param("parallelism: 4", "parallelism", 4, id="parallelism"),
        pytest.param("parallelism: null", "parallelism", 16, id="null is unset"),
        pytest.param("enableProfiling: false", "enable_profiling", False, id="profiling off"),
        pytest.param(
            "enableProfiling: false", "enable_contention_profiling", False, id="no contention profiling without"
        ),
        pytest.param(
            "enableContentionProfiling: false", "enable_contention_profiling", False, id="contention off alone"
        ),
        pytest.param("percentageOfNodesToScore: 100", "percentage_of_nodes_to_score", 100, id="percentage"),
        pytest.param("podInitialBackoffSeconds: 3", "pod_initial_backoff_seconds", 3, id="initial backoff"),
        pytest.param("podMaxBackoffSeconds: 60", "pod_max_backoff_seconds", 60, id="max backoff"),
        pytest.param("delayCacheUntilActive: true", "delay_cache_until_active", True, id="delay cache"),
        pytest.param("leaderElection: {leaderElect: false}", "leader_election.leader_elect", False, id="no lease"),
        pytest.param("leaderElection: {leaseDuration: 1m30s}", "leader_election.lease_duration", 90.0, id="duration"),
        pytest.param(
            "leaderElection: {leaseDuration: 0s}", "leader_election.lease_duration", 15.0, id="zero lease is unset"
        ),
        pytest.param(
            'leaderElection: {resourceName: ""}', "leader_election.resource_name", "kube-scheduler", id="empty name"
        ),
        pytest.param("clientConnection: {qps: 0}", "client_connection.qps", 50.0, id="qps zero is unset"),
        pytest.param("clientConnection: {qps: 1.5}", "client_connection.qps", 1.5, id="qps"),
        pytest.param("clientConnection: {burst: 0}", "client_connection.burst", 100, id="burst zero is unset"),
        pytest.param("clientConnection: {kubeconfig: /a}", "client_connection.kubeconfig", "/a", id="kubeconfig"),
        pytest.param("clientConnection: null", "client_connection.burst", 100, id="null block"),
    ],
)
def test_value(body, path, value):
    assert attribute(load(text(body)), path) == value


def test_every_field_of_an_extender():
    loaded = load(
        text("""
        extenders:
        - urlPrefix: http://127.0.0.1/x
          filterVerb: filter
          preemptVerb: preempt
          prioritizeVerb: prioritize
          weight: 5
          bindVerb: bind
          enableHTTPS: true
          tlsConfig: {insecure: false, serverName: s, certFile: c, keyFile: k, caFile: a, caData: aGk=}
          httpTimeout: 100ms
          nodeCacheCapable: true
          managedResources:
          - {name: example.com/foo, ignoredByScheduler: true}
          ignorable: true
        """)
    )
    tls = config.ExtenderTLSConfig(server_name="s", cert_file="c", key_file="k", ca_file="a", ca_data=b"hi")
    assert loaded.extenders == (
        config.Extender(
            url_prefix="http://127.0.0.1/x",
            filter_verb="filter",
            preempt_verb="preempt",
            prioritize_verb="prioritize",
            weight=5,
            bind_verb="bind",
            enable_https=True,
            tls_config=tls,
            http_timeout=0.1,
            node_cache_capable=True,
            managed_resources=(config.ExtenderManagedResource(name="example.com/foo", ignored_by_scheduler=True),),
            ignorable=True,
        ),
    )


@pytest.mark.parametrize("written", ["", "httpTimeout: 0s"], ids=["absent", "zero"])
def test_an_extender_answers_within_five_seconds_by_default(written):
    loaded = load(text(f"extenders:\n- urlPrefix: http://x\n  {written}\n"))
    assert loaded.extenders[0].http_timeout == 5.0


def test_a_lone_profile_is_the_default_scheduler():
    assert [p.scheduler_name for p in load(text()).profiles] == ["default-scheduler"]
    assert [p.scheduler_name for p in load(text("profiles: [{}]")).profiles] == ["default-scheduler"]


def test_a_profile_s_own_percentage():
    loaded = load(profile("percentageOfNodesToScore: 0"))
    assert loaded.profiles[0].percentage_of_nodes_to_score == 0
    assert load(text()).profiles[0].percentage_of_nodes_to_score is None


def test_default_args_are_appended_by_name_for_enabled_plugins():
    (default,) = load(text()).profiles
    assert [entry.name for entry in default.plugin_config] == sorted(IN_TREE)
    (bare,) = load(profile("plugins: {multiPoint: {disabled: [{name: '*'}]}}")).profiles
    assert bare.plugin_config == ()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(
            "paralelism: 1", 'paralelism: unknown field "paralelism" (did you mean "parallelism"?)', id="misspelt"
        ),
        pytest.param(
            "Parallelism: 1", 'Parallelism: unknown field "Parallelism" (did you mean "parallelism"?)', id="case"
        ),
        pytest.param("notes: []", 'notes: unknown field "notes"', id="what only Python knows"),
        pytest.param("parallelism: x", "parallelism: expected an integer, got a string", id="text for a number"),
        pytest.param("parallelism: true", "parallelism: expected an integer, got a boolean", id="boolean for a number"),
        pytest.param("parallelism: 1.5", "parallelism: expected an integer, got a number", id="fraction"),
        pytest.param("parallelism: 3000000000", "parallelism: expected an integer <= 2147483647", id="too large"),
        pytest.param("enableProfiling: yep", "enableProfiling: expected a boolean, got a string", id="boolean"),
        pytest.param("leaderElection: []", "leaderElection: expected a mapping, got a list", id="list for a block"),
        pytest.param("profiles: {}", "profiles: expected a list, got a mapping", id="block for a list"),
        pytest.param("extenders: [x]", "extenders[0]: expected a mapping, got a string", id="text for an item"),
        pytest.param(
            "leaderElection: {retryPeriod: 2}",
            "leaderElection.retryPeriod: expected a duration such as 15s or 1m30s, got an "
            'integer (write "2s" for seconds)',
            id="number for a duration",
        ),
        pytest.param(
            "leaderElection: {retryPeriod: 2d}",
            'leaderElection.retryPeriod: time: unknown unit "d" in duration "2d"',
            id="days",
        ),
        pytest.param(
            "profiles: [{plugins: {filtr: {}}}]",
            'profiles[0].plugins.filtr: unknown field "filtr" (did you mean "filter"?)',
            id="extension point",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {enabled: [{name: a, weight: x}]}}}]",
            "profiles[0].plugins.score.enabled[0].weight: expected an integer, got a string",
            id="weight",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {enabled: [{wieght: 1}]}}}]",
            'profiles[0].plugins.score.enabled[0].wieght: unknown field "wieght" (did you mean "weight"?)',
            id="field of a plugin",
        ),
        pytest.param(
            "extenders: [{urlPrefix: http://x, tlsConfig: {caData: '%'}}]",
            "extenders[0].tlsConfig.caData: invalid base64 encoded string",
            id="base64",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: a, args: [1]}]}]",
            "profiles[0].pluginConfig[0].args: expected a mapping",
            id="args as a list",
        ),
    ],
)
def test_strict_decoding(body, problem):
    assert problem in problems(text(body))


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        pytest.param("[]", "expected a mapping with apiVersion", id="list"),
        pytest.param("kind: KubeSchedulerConfiguration", "apiVersion: Required value", id="no apiVersion"),
        pytest.param("apiVersion: kubescheduler.config.k8s.io/v1", "kind: Required value", id="no kind"),
        pytest.param(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfig",
            'kind: no kind "KubeSchedulerConfig" is registered for version "kubescheduler.config.k8s.io/v1"; '
            'expected KubeSchedulerConfiguration (did you mean "KubeSchedulerConfiguration"?)',
            id="other kind",
        ),
        pytest.param(
            text(version="v2"),
            'apiVersion: no kind "KubeSchedulerConfiguration" is registered for version '
            '"kubescheduler.config.k8s.io/v2" (did you mean "kubescheduler.config.k8s.io/v1"?)',
            id="unknown version",
        ),
        pytest.param(
            text(version="v1alpha1"),
            "apiVersion: kubescheduler.config.k8s.io/v1alpha1 was served by Kubernetes up to "
            "1.18 and is not accepted "
            "(write the file as kubescheduler.config.k8s.io/v1; v1beta1 and later are converted when read)",
            id="v1alpha1",
        ),
        pytest.param(text(version="v1alpha2"), "was served by Kubernetes 1.18 only", id="v1alpha2"),
        pytest.param("kind: Policy\napiVersion: v1", "kind: this is a Policy, which", id="Policy"),
        pytest.param(
            "kind: ConfigMap\napiVersion: v1\ndata: {a.yaml: ''}",
            "kind: this is a ConfigMap, not the KubeSchedulerConfiguration inside it "
            "(give the text below data; its keys: a.yaml)",
            id="ConfigMap",
        ),
    ],
)
def test_other_files_are_recognized(source, problem):
    (reported,) = problems(source)
    assert problem in reported


def test_all_mistakes_are_reported_at_once_under_the_name_of_the_file():
    body = """
    parallelism: 0
    podMaxBackoffSeconds: x
    nonsense: 1
    profiles:
    - schedulerName: a
      pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: Most}}
    - schedulerName: a
      percentageOfNodesToScore: 101
    """
    with pytest.raises(config.ConfigError) as caught:
        load(text(body), source="scheduler.yaml")
    assert str(caught.value).splitlines() == [
        "scheduler.yaml: 6 problems",
        '  nonsense: unknown field "nonsense"',
        "  podMaxBackoffSeconds: expected an integer, got a string",
        "  parallelism: Invalid value: 0: should be an integer value greater than zero",
        '  profiles[1].schedulerName: Duplicate value: "a", as in profiles[0].schedulerName',
        "  profiles[1].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        '  profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: "Most": '
        "supported values: "
        '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio" (did you mean "MostAllocated"?)',
    ]


class Rule(msgspec.Struct, frozen=True):
    key: str
    weight: int = 1


class OutsideArgs(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    threshold: float
    rules: list[Rule] = []
    wait_for: Duration = 1.0
    labels: dict[str, int] = {}

    def __post_init__(self) -> None:
        if self.threshold > 1:
            raise ValueError("threshold is a share, at most 1")


OUTSIDE = {"Outside": OutsideArgs}


def test_args_of_an_outside_plugin_are_decoded_into_its_type():
    source = args("Outside", "threshold: 1\nrules: [{key: a}]\nwaitFor: 2s\nlabels: {x: 1}")
    assert only_args(source, "Outside", args_types=OUTSIDE) == OutsideArgs(
        threshold=1.0, rules=[Rule("a")], wait_for=2.0, labels={"x": 1}
    )


def test_args_without_a_type_stay_as_they_are():
    source = args("Outside", "kind: OutsideArgs\nthreshold: [1, {a: b}]")
    assert only_args(source, "Outside") == {"kind": "OutsideArgs", "threshold": [1, {"a": "b"}]}


def test_apiversion_and_kind_of_outside_args_are_not_fields():
    source = args("Outside", "apiVersion: a/v1\nkind: OutsideArgs\nthreshold: 0.5")
    assert only_args(source, "Outside", args_types=OUTSIDE) == OutsideArgs(threshold=0.5)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("rules: []", ["threshold: Required value"], id="required"),
        pytest.param(
            "threshold: x\nrules: [{}, {key: 1}]\nlabels: {a: b}\nwait: 1",
            [
                'wait: unknown field "wait" (did you mean "waitFor"?)',
                "threshold: expected a number, got a string",
                "rules[0].key: Required value",
                "rules[1].key: expected a string, got an integer",
                "labels[...]: expected an integer, got a string",
            ],
            id="all at once",
        ),
        pytest.param("threshold: 2", ["threshold is a share, at most 1"], id="the type's own rule"),
    ],
)
def test_mistakes_in_outside_args(body, expected):
    prefix = "profiles[0].pluginConfig[0].args"
    reported = problems(args("Outside", body), OUTSIDE)
    assert [p.removeprefix(prefix).lstrip(".: ") for p in reported] == expected


def test_an_enabled_outside_plugin_without_args_gets_its_defaults_or_a_problem():
    source = profile("plugins: {filter: {enabled: [{name: Outside}]}}")
    assert problems(source, OUTSIDE) == ['profiles[0].pluginConfig["Outside"].args.threshold: Required value']
    assert only_args(source, "Outside", args_types={"Outside": InterPodAffinityArgs}) == (InterPodAffinityArgs())


FIELDS = [
    *("profiles", "plugins", "score", "enabled", "disabled", "name", "weight", "pluginConfig", "args"),
    *("extenders", "leaderElection", "multiPoint", "schedulerName", "managedResources"),
]
JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("15s"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_LIKE, st.sampled_from(["v1", "v1beta1", "v1beta2", "v1beta3"]))
def test_any_content_is_answered_with_a_configuration_or_problems(body, version):
    tree = {"apiVersion": f"kubescheduler.config.k8s.io/{version}", "kind": "KubeSchedulerConfiguration"}
    tree |= body if isinstance(body, dict) else {}
    with contextlib.suppress(config.ConfigError):
        load(msgspec.json.encode(tree))


@pytest.mark.parametrize("gates", ["", "StorageCapacityScoring=false"])
def test_the_default_configuration_is_that_of_an_empty_file(gates):
    on = config.FeatureGates.parse(gates)
    types = build_registry(discover=False).args_types()
    default, empty = config.default_configuration(types, on), config.load(EMPTY, types, gates=on)
    assert default == empty
    for ours, loaded in zip(default.profiles, empty.profiles, strict=True):
        assert (ours.written, ours.user_named) == (loaded.written, loaded.user_named)
    assert default.notes == empty.notes
