"""What is written reads back the same, whatever was read."""

import string
from typing import Any

import msgspec
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage import config
from moorage.api import times
from moorage.api.times import Duration
from moorage.config.defaults import DEFAULT_NAMES
from moorage.config.types import Plugins
from tests.config.builders import args, load, profile, text

NAMES = st.sampled_from([*sorted(DEFAULT_NAMES), "mine", "yours", "on", "1e3", "0x1", "my.module:Class"])
SECONDS = st.integers(1, 10**13).map(lambda n: times.format_nanoseconds(n * 1000))
WORDS = st.text(string.printable, max_size=8).filter(lambda word: word.isprintable()) | st.just("ja\u00f1e")


def name_of(item: dict[str, Any]) -> str:
    return str(item.get("name") or item.get("schedulerName"))


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def plugin_sets() -> st.SearchStrategy[dict[str, Any]]:
    entry = st.fixed_dictionaries({"name": NAMES}, optional={"weight": st.integers(-5, 100)})
    # A plugin that is enabled twice is refused when the profile is built, so its order does not matter.
    enabled = st.lists(entry, max_size=4, unique_by=name_of)
    disabled = st.lists(st.fixed_dictionaries({"name": NAMES | st.just("*")}), max_size=3)
    return optional(enabled=enabled, disabled=disabled)


def plugins() -> st.SearchStrategy[dict[str, Any]]:
    others = [name for name in Plugins().sets() if name != "queueSort"]
    return st.dictionaries(st.sampled_from(others), plugin_sets(), max_size=4)


PLAIN = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63) | WORDS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
ARGS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"name": st.just("outside"), "args": st.dictionaries(WORDS, PLAIN, max_size=3)}),
    st.fixed_dictionaries(
        {
            "name": st.just("DynamicResources"),
            "args": optional(filterTimeout=SECONDS, bindingTimeout=st.just("1h0m0.5s")),
        }
    ),
    st.fixed_dictionaries(
        {
            "name": st.just("NodeResourcesFit"),
            "args": optional(
                ignoredResources=st.just(["a.b/c"]),
                scoringStrategy=st.fixed_dictionaries(
                    {"type": st.sampled_from(["LeastAllocated", "MostAllocated"])},
                    optional={"resources": st.just([{"name": "cpu", "weight": 0}, {"name": "x.y/z"}])},
                ),
            ),
        }
    ),
)
PROFILES = st.lists(
    st.fixed_dictionaries(
        {"schedulerName": st.text(string.ascii_letters, min_size=1, max_size=4)},
        optional={
            "percentageOfNodesToScore": st.integers(0, 100),
            "plugins": plugins(),
            "pluginConfig": st.lists(ARGS, max_size=2, unique_by=name_of),
        },
    ),
    min_size=1,
    max_size=3,
    unique_by=name_of,
)
EXTENDERS = st.lists(
    st.fixed_dictionaries(
        {"urlPrefix": st.just("http://x")},
        optional={
            "filterVerb": WORDS,
            "weight": st.integers(0, 9),
            "enableHTTPS": st.booleans(),
            "tlsConfig": optional(insecure=st.booleans(), caData=st.just("aGk="), serverName=WORDS),
            "httpTimeout": SECONDS,
            "ignorable": st.booleans(),
        },
    ),
    max_size=2,
)
CONFIGURATIONS = optional(
    parallelism=st.integers(1, 99),
    enableProfiling=st.booleans(),
    enableContentionProfiling=st.booleans(),
    percentageOfNodesToScore=st.integers(0, 100),
    podMaxBackoffSeconds=st.integers(1, 99),
    delayCacheUntilActive=st.booleans(),
    clientConnection=optional(kubeconfig=WORDS, qps=st.floats(0, 100), burst=st.integers(0, 9)),
    leaderElection=st.fixed_dictionaries(
        {"leaderElect": st.just(False)}, optional={"leaseDuration": SECONDS, "resourceName": WORDS}
    ),
    profiles=PROFILES,
    extenders=EXTENDERS,
)


@settings(deadline=None)
@given(CONFIGURATIONS)
def test_reading_back_what_was_written(body):
    loaded = load(text(yaml.safe_dump(body)) if body else text())
    again = load(config.dump(loaded))
    assert again == loaded
    assert config.dump(again) == config.dump(loaded)


@settings(deadline=None)
@given(st.sampled_from(["v1beta2", "v1beta3"]), plugin_sets(), plugin_sets())
def test_reading_back_what_was_converted(version, multi_point, score):
    body = {"plugins": {"multiPoint": multi_point, "score": score}}
    loaded = load(profile(yaml.safe_dump(body), version))
    assert load(config.dump(loaded)) == loaded


def test_equality_is_about_content():
    plain = load(text())
    converted = load(text(version="v1beta3"))
    assert plain == converted
    assert plain.notes != converted.notes
    assert plain != load(text("parallelism: 1"))
    assert plain.profiles[0] != "a profile"


def test_the_whole_of_a_small_file():
    written = config.dump(
        load(profile("plugins: {multiPoint: {enabled: [{name: b, weight: 2}], disabled: [{name: '*'}]}}"))
    )
    assert (
        written
        == """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 16
leaderElection:
  leaderElect: true
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
  resourceLock: leases
  resourceName: kube-scheduler
  resourceNamespace: kube-system
clientConnection:
  contentType: application/vnd.kubernetes.protobuf
  qps: 50
  burst: 100
enableProfiling: true
enableContentionProfiling: true
percentageOfNodesToScore: 0
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
profiles:
- schedulerName: x
  plugins:
    multiPoint:
      enabled:
      - name: b
        weight: 2
      disabled:
      - name: '*'
delayCacheUntilActive: false
"""
    )


def test_args_are_written_with_kind_and_version():
    written = yaml.safe_load(config.dump(load(args("DynamicResources", "bindingTimeout: 90s"))))
    assert written["profiles"][0]["pluginConfig"][0]["args"] == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "DynamicResourcesArgs",
        "filterTimeout": "10s",
        "bindingTimeout": "1m30s",
    }


def test_repeated_values_are_written_out():
    source = args("outside", "{a: &x {b: 1}, c: *x}")
    assert "*" not in config.dump(load(source))


class Step(msgspec.Struct, frozen=True, rename="camel"):
    after: Duration
    label_keys: tuple[str, ...] = ("zone",)


class OutsideArgs(msgspec.Struct, frozen=True, rename="camel"):
    steps: list[Step] = []
    pauses: tuple[Duration, ...] = ()
    limit: float | None = 2.0
    title: str = "none"


def test_args_of_an_outside_type_read_back_the_same():
    types = {"outside": OutsideArgs}
    source = args("outside", "{steps: [{after: 1m, labelKeys: []}], pauses: [1s, 2ms], title: ''}")
    loaded = load(source, types)
    assert loaded.profiles[0].plugin_config[0].args == OutsideArgs(
        steps=[Step(60.0, ())], pauses=(1.0, 0.002), title=""
    )
    assert load(config.dump(loaded), types) == loaded
