"""Reading a legacy Policy: what it says beyond names, what is noted, and what is refused."""

import json

import pytest

from moorage import config
from moorage.config import Extender, ExtenderManagedResource, ExtenderTLSConfig
from tests.config import builders
from tests.config.builders import POLICY, PUBLISHED_POLICY


def convert(**policy):
    return config.convert_policy(json.dumps({"kind": "Policy", "apiVersion": "v1", **policy}))


def loaded(**policy):
    return builders.load(convert(**policy).text)


def args(plugin, **policy):
    return builders.only_args(convert(**policy).text, plugin)


def notes(**policy):
    return [str(note) for note in convert(**policy).notes[1:]]


def problems(text=None, **policy):
    with pytest.raises(config.ConfigError) as caught:
        config.convert_policy(json.dumps(policy) if text is None else text)
    return [str(problem) for problem in caught.value.problems]


def priority(weight=1, **argument):
    return {"name": "mine", "weight": weight, "argument": argument}


def predicate(**argument):
    return {"name": "mine", "argument": argument}


def presence(present, *labels):
    return predicate(labelsPresence={"labels": labels, "presence": present})


def test_the_published_policy_has_a_comma_too_many():
    assert problems(PUBLISHED_POLICY) == [
        "not valid JSON: line 13, column 38: trailing comma (JSON allows no comma before ] or })"
    ]


def test_the_published_policy_without_that_comma():
    converted = config.convert_policy(POLICY, scheduler_name="my-scheduler")
    found = builders.load(converted.text)
    assert found.profiles[0].scheduler_name == "my-scheduler"
    assert found.extenders == (
        Extender(
            url_prefix="http://127.0.0.1:10262/scheduler",
            filter_verb="filter",
            preempt_verb="preempt",
            weight=1,
            http_timeout=30.0,
        ),
    )
    assert [note.path for note in converted.notes] == [
        "",
        *(f"predicates[{index}]" for index in (1, 2, 7)),
        *(f"priorities[{index}]" for index in (0, 4)),
    ]
    assert builders.load(config.dump(found)) == found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": [1,\n  ]}', "line 1, column 9: trailing comma"),
        ('{"a": 1,\n}', "line 1, column 8: trailing comma"),
        ('{"a": 1\n "b": 2}', "line 2, column 2: Expecting ',' delimiter"),
        ("predicates: [{name: HostName}\npriorities: []", "not valid YAML: line 2"),
        ("[]", "expected a mapping"),
        ("", "the file is empty"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_with_the_place(text, problem):
    (found,) = problems(text)
    assert problem in found


def test_yaml_is_read_too_and_keys_match_in_any_case():
    text = "Kind: Policy\nPredicates: [{NAME: HostName}]\n"
    text += "priorities:\n- Name: LeastRequestedPriority\n  Weight: 3\n"
    (profile,) = builders.load(config.convert_policy(text).text).profiles
    weights = {entry.name: entry.weight for entry in profile.plugins.multi_point.enabled}
    assert weights["NodeName"] == 0
    assert weights["NodeResourcesFit"] == 3


def test_every_field_of_an_extender_is_carried_over():
    given = {
        "urlPrefix": "https://x/", "filterVerb": "f", "prioritizeVerb": "p", "preemptVerb": "e",
        "bindVerb": "b", "weight": 5, "enableHttps": True,
        "httpTimeout": 1_500_000_000, "nodeCacheCapable": True,
        "ignorable": True, "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
        "tlsConfig": {"insecure": True, "serverName": "s", "caFile": "ca", "certData": "YQ=="},
    }  # fmt: skip
    assert loaded(extenders=[given]).extenders == (
        Extender(
            url_prefix="https://x/", filter_verb="f", prioritize_verb="p", preempt_verb="e", bind_verb="b",
            weight=5, enable_https=True, http_timeout=1.5, node_cache_capable=True, ignorable=True,
            managed_resources=(ExtenderManagedResource(name="example.com/gpu", ignored_by_scheduler=True),),
            tls_config=ExtenderTLSConfig(insecure=True, server_name="s", ca_file="ca", cert_data=b"a"),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("timeout", [{}, {"httpTimeout": 0}])
def test_an_extender_without_a_timeout_has_the_default_one(timeout):
    (extender,) = loaded(extenders=[{"urlPrefix": "http://x", **timeout}]).extenders
    assert extender.http_timeout == 5.0


def test_labels_that_nodes_must_or_must_not_have():
    added = args("NodeAffinity", predicates=[presence(True, "a", "b"), presence(False, "c")]).added_affinity
    (term,) = added.required_during_scheduling_ignored_during_execution.node_selector_terms
    found = [(each.key, each.operator) for each in term.match_expressions]
    assert found == [("a", "Exists"), ("b", "Exists"), ("c", "DoesNotExist")]


def test_labels_that_nodes_had_better_have_add_up_their_weights():
    preferences = [
        priority(3, labelPreference={"label": "ssd", "presence": True}),
        priority(3, labelPreference={"label": "old", "presence": False}),
    ]
    found = loaded(priorities=[{"name": "NodeAffinityPriority", "weight": 4}, *preferences]).profiles[0]
    assert next(each.weight for each in found.plugins.multi_point.enabled if each.name == "NodeAffinity") == 6
    preferred = args("NodeAffinity", priorities=preferences).added_affinity
    terms = preferred.preferred_during_scheduling_ignored_during_execution
    expressions = [term.preference.match_expressions[0] for term in terms]
    assert [(each.key, each.operator) for each in expressions] == [("ssd", "Exists"), ("old", "DoesNotExist")]


@pytest.mark.parametrize(
    ("priorities", "kind", "constraints"),
    [
        (["EvenPodsSpreadPriority"], "List", []),
        (["SelectorSpreadPriority"], "System", []),
        (["EvenPodsSpreadPriority", "SelectorSpreadPriority"], "System", []),
        ([{"label": "rack"}, {"label": "row"}], "List", [("rack", 1), ("row", 1)]),
        (
            ["SelectorSpreadPriority", {"label": "rack"}],
            "List",
            [("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5), ("rack", 1)],
        ),
    ],
)
def test_default_constraints_are_those_that_the_priorities_stood_for(priorities, kind, constraints):
    given = [
        {"name": each, "weight": 1} if isinstance(each, str) else priority(serviceAntiAffinity=each)
        for each in priorities
    ]
    found = args("PodTopologySpread", priorities=given)
    assert found.defaulting_type == kind
    assert [(each.topology_key, each.max_skew) for each in found.default_constraints] == constraints
    assert {each.when_unsatisfiable for each in found.default_constraints} <= {"ScheduleAnyway"}


def test_the_ratio_is_carried_over_with_its_resources():
    ratio = {
        "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
        "resources": [{"name": "example.com/gpu", "weight": 3}, {"name": "cpu"}],
    }
    given = priority(requestedToCapacityRatioArguments=ratio)
    strategy = args("NodeResourcesFit", priorities=[given]).scoring_strategy
    assert strategy.type == "RequestedToCapacityRatio"
    assert [(each.name, each.weight) for each in strategy.resources] == [("example.com/gpu", 3), ("cpu", 1)]
    shape = strategy.requested_to_capacity_ratio.shape
    assert [(point.utilization, point.score) for point in shape] == [(0, 0), (100, 10)]


@pytest.mark.parametrize(
    ("name", "kind"), [("LeastRequestedPriority", "LeastAllocated"), ("MostRequestedPriority", "MostAllocated")]
)
def test_requested_resources_are_a_scoring_strategy(name, kind):
    strategy = args("NodeResourcesFit", priorities=[{"name": name, "weight": 1}]).scoring_strategy
    assert strategy.type == kind


@pytest.mark.parametrize(("given", "weight"), [({}, 1), ({"hardPodAffinitySymmetricWeight": 10}, 10)])
def test_the_weight_of_required_affinity_of_running_pods(given, weight):
    assert args("InterPodAffinity", **given).hard_pod_affinity_weight == weight


@pytest.mark.parametrize(
    ("policy", "note"),
    [
        ({"alwaysCheckAllPredicates": True, "priorities": []}, "alwaysCheckAllPredicates: dropped"),
        ({"priorities": None}, "priorities: NodePreferAvoidPodsPriority is dropped: it has no equivalent"),
        ({"priorities": [{"name": "EqualPriority", "weight": 1}]}, "priorities[0]: EqualPriority is dropped"),
        ({"priorities": [priority(serviceAntiAffinity={"label": "a"})]}, "priorities[0].argument: became"),
        ({"predicates": [presence(True, "a")], "priorities": []}, "predicates[0].argument: became"),
        ({"predicates": [{"name": "MaxCinderVolumeCount"}], "priorities": []}, "MaxCinderVolumeCount became"),
    ],
)
def test_what_is_approximated_or_dropped_is_noted(policy, note):
    assert any(note in found for found in notes(**policy))


SHAPE = [{"utilization": 0, "score": 1}]


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ({"kind": "KubeSchedulerConfiguration"}, 'kind: expected "Policy"'),
        ({"apiVersion": "v2"}, 'apiVersion: expected "v1", got "v2"'),
        ({"predicate": []}, 'predicate: unknown field "predicate" (did you mean "predicates"?)'),
        ({"predicates": [], "Predicates": []}, 'predicates: key "Predicates" already set in map'),
        (
            {"predicates": [{"name": "Hostname"}]},
            'predicates[0]: predicate type not found for "Hostname" (did you mean "HostName"?)',
        ),
        ({"predicates": [{"name": "CheckServiceAffinity"}]}, "predicates[0]: ServiceAffinity is gone"),
        ({"predicates": [predicate(serviceAffinity={"labels": ["a"]})]}, "predicates[0]: ServiceAffinity is"),
        (
            {"predicates": [{"name": "CheckNodeLabelPresence"}]},
            "predicates[0].argument.labelsPresence: Required value",
        ),
        (
            {"predicates": [{"name": "HostName", "argument": {}}]},
            "predicates[0].argument: exactly 1 argument is required, got 0 (one of serviceAffinity, ",
        ),
        (
            {"predicates": [presence(True, "a"), presence(False, "a")]},
            'predicates[1].argument: label "a" cannot be both present and absent',
        ),
        ({"predicates": [presence(True, "a b")]}, "predicates[0].argument.labelsPresence.labels[0]: Invalid"),
        (
            {"priorities": [{"name": "Nonsense", "weight": 1}]},
            'priorities[0]: priority type not found for "Nonsense"',
        ),
        ({"priorities": [{"name": "EqualPriority"}]}, "priorities[0].weight: Invalid value: 0: should"),
        (
            {"priorities": [{"name": "RequestedToCapacityRatioPriority", "weight": 1}]},
            "priorities[0].argument.requestedToCapacityRatioArguments: Required value",
        ),
        (
            {"priorities": [priority(requestedToCapacityRatioArguments={"shape": SHAPE})] * 2},
            "priorities[1].argument: requestedToCapacityRatioArguments is given already in priorities[0]",
        ),
        (
            {"priorities": [priority(requestedToCapacityRatioArguments={})]},
            "priorities[0].argument.requestedToCapacityRatioArguments.shape: Required value",
        ),
        (
            {"priorities": [priority(weight, labelPreference={"label": "a"}) for weight in (1, 2)]},
            "priorities[1].weight: Invalid value: 2: must be the same for all priorities with",
        ),
        (
            {"priorities": [{"name": f"{kind}RequestedPriority", "weight": 1} for kind in ("Least", "Most")]},
            "priorities[1]: LeastAllocated and MostAllocated: NodeResourcesFit scores by one strategy only",
        ),
        ({"hardPodAffinitySymmetricWeight": 101}, "hardPodAffinitySymmetricWeight: Invalid value: 101"),
        ({"extenders": [{"httpTimeout": "30s"}]}, "extenders[0].httpTimeout: expected an integer"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_place(policy, problem):
    (found,) = problems(**policy)
    assert found.startswith(problem)


def test_all_mistakes_are_reported_together():
    found = problems(predicates=[{"name": "X"}], priorities=[{"name": "Y"}], hardPodAffinitySymmetricWeight=-1)
    assert [problem.partition(":")[0] for problem in found] == [
        "priorities[0].weight",
        "hardPodAffinitySymmetricWeight",
        "predicates[0]",
        "priorities[0]",
    ]
