"""NodeAffinity: selectors, terms, fields, preferences, added affinity, hints; all forms against a plain model."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.pod import Affinity
from moorage.framework.events import QueueingHint
from moorage.framework.status import Code, PreFilterResult, Status
from moorage.testing import make_node, make_pod
from tests.plugins.one_plugin import ask

PLUGIN = "NodeAffinity"
POD = (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",))
ENFORCED = (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match scheduler-enforced node affinity",))

Json = dict[str, Any]


def term(*expressions: Json, names: Any = None) -> Json:
    found: Json = {"matchExpressions": list(expressions)}
    if names is not None:
        found["matchFields"] = [field(*names)]
    return found


def expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def field(*values: str, operator: str = "In") -> Json:
    return {"key": "metadata.name", "operator": operator, "values": list(values)}


def affinity(required: Any = None, preferred: Any = None) -> Json:
    found: Json = {}
    if required is not None:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": required}
    if preferred is not None:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": weight, "preference": preference} for weight, preference in preferred
        ]
    return found


def pod_with(node_affinity: Json | None = None, **spec: Any) -> Any:
    if node_affinity is None:
        return make_pod("a", **spec)
    return make_pod("a", affinity=msgspec.convert({"nodeAffinity": node_affinity}, Affinity), **spec)


RED = expression("color", "In", "red")
UNREADABLE = expression("color", "Like", "r")
NODES = [
    make_node("red", labels={"color": "red", "size": "5"}),
    make_node("blue", labels={"color": "blue", "size": "50"}),
    make_node("bare", labels={"size": "many"}),
]
NAMES = {"red", "blue", "bare"}


@pytest.mark.parametrize(
    ("terms", "matching"),
    [
        pytest.param([term(RED)], {"red"}, id="In"),
        pytest.param([term(expression("color", "NotIn", "red"))], {"blue", "bare"}, id="NotIn"),
        pytest.param([term(expression("color", "Exists"))], {"red", "blue"}, id="Exists"),
        pytest.param([term(expression("color", "DoesNotExist"))], {"bare"}, id="DoesNotExist"),
        pytest.param([term(expression("size", "Gt", "5"))], {"blue"}, id="Gt: no integer never matches"),
        pytest.param([term(expression("size", "Lt", "50"))], {"red"}, id="Lt"),
        pytest.param([term(expression("size", "Lt", str(2**60)))], {"red", "blue"}, id="a huge bound"),
        pytest.param([term(RED), term(expression("size", "Gt", "9"))], {"red", "blue"}, id="terms are ORed"),
        pytest.param([term(RED, expression("size", "Gt", "9"))], set(), id="expressions are ANDed"),
        pytest.param([], set(), id="no terms match nothing"),
        pytest.param([term()], set(), id="an empty term matches nothing"),
        pytest.param([term(expression("color", "Like", "r"))], set(), id="an unreadable term matches nothing"),
        pytest.param([term(expression("color", "Like", "r")), term(RED)], {"red"}, id="and spoils no other"),
        pytest.param([{"matchFields": [field("red", operator="NotIn")]}], {"blue", "bare"}, id="not by name"),
        pytest.param(
            [{"matchFields": [{"key": "spec.x", "operator": "NotIn", "values": ["y"]}]}], NAMES, id="no such field"
        ),
    ],
)
def test_required_terms(terms, matching):
    refused = ask(PLUGIN, pod_with(affinity(terms)), NODES).refused()
    assert refused == dict.fromkeys(NAMES - matching, POD)


def test_node_selector_and_terms_must_both_match():
    pod = pod_with(affinity([term(expression("size", "Exists"))]), node_selector={"color": "red"})
    assert set(ask(PLUGIN, pod, NODES).refused()) == {"blue", "bare"}


def test_a_pod_without_any_demand_skips():
    assert ask(PLUGIN, pod_with(), NODES).skipped
    assert ask(PLUGIN, pod_with(affinity(preferred=[(1, term(RED))])), NODES).skipped
    assert not ask(PLUGIN, pod_with(), NODES, args={"addedAffinity": affinity([term(RED)])}).skipped


@pytest.mark.parametrize(
    ("terms", "answer"),
    [
        pytest.param([term(names=["red"])], PreFilterResult(frozenset({"red"})), id="one name"),
        pytest.param([term(RED, names=["a"])], PreFilterResult(frozenset({"a"})), id="with expressions"),
        pytest.param(
            [term(names=["a"]), term(names=["b"])], PreFilterResult(frozenset({"a", "b"})), id="terms are ORed"
        ),
        pytest.param([term(names=["red"]), term(RED)], Status(), id="a term without names"),
        pytest.param(
            [{"matchFields": [field("a"), field("b")]}],
            Status.unresolvable("pod affinity terms conflict"),
            id="names that contradict each other",
        ),
        pytest.param([{"matchFields": [field("a", operator="NotIn")]}], Status(), id="NotIn does not narrow"),
    ],
)
def test_names_narrow_the_search(terms, answer):
    assert ask(PLUGIN, pod_with(affinity(terms)), NODES).pre == answer


def test_the_profiles_own_affinity_is_checked_first():
    args = {"addedAffinity": affinity([term(expression("color", "Exists"))])}
    refused = ask(PLUGIN, pod_with(node_selector={"color": "red"}), NODES, args=args).refused()
    assert refused == {"bare": ENFORCED, "blue": POD}


def test_preferences_add_up_and_the_profiles_too():
    pod = pod_with(affinity(preferred=[(2, term(RED)), (3, term(expression("size", "Gt", "1")))]))
    args = {"addedAffinity": affinity(preferred=[(10, term(expression("color", "Exists")))])}
    assert ask(PLUGIN, pod, NODES).scores() == {"red": 5, "blue": 3, "bare": 0}
    assert ask(PLUGIN, pod, NODES, args=args).scores() == {"red": 15, "blue": 13, "bare": 0}
    assert ask(PLUGIN, pod_with(), NODES, args=args).scores() == {"red": 10, "blue": 10, "bare": 0}


def test_a_pod_without_preferences_is_not_scored():
    assert ask(PLUGIN, pod_with(node_selector={"color": "red"}), NODES).scores() is None


def test_preferences_without_weight_or_expressions_score_nothing():
    pod = pod_with(affinity(preferred=[(0, term(RED)), (5, term())]))
    assert ask(PLUGIN, pod, NODES).scores() == dict.fromkeys(NAMES, 0)


def test_an_unreadable_preference_is_an_error():
    asked = ask(PLUGIN, pod_with(), NODES)
    pod = pod_with(affinity(preferred=[(1, term(UNREADABLE))]))
    assert asked.plugin.pre_score(asked.state, pod, asked.world.nodes).code is Code.ERROR


def test_verdicts_and_scores_without_pre_filter_and_pre_score():
    pod = pod_with(affinity([term(RED)], [(7, term(RED))]))
    asked = ask(PLUGIN, pod, NODES, pre_filter=False)
    assert set(asked.refused()) == {"blue", "bare"}
    assert asked.raw_scores() == {"red": 7, "blue": 0, "bare": 0}


# The plain model

keys = st.sampled_from(["color", "size", "none"])
values = st.sampled_from(["red", "blue", "1", "2", "3"])
expressions = st.one_of(
    st.builds(expression, keys, st.sampled_from(["In", "NotIn"]), values),
    st.builds(expression, keys, st.sampled_from(["In", "NotIn"]), values, values),
    st.builds(expression, keys, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(expression, keys, st.sampled_from(["Gt", "Lt"]), st.sampled_from(["1", "2", "9" * 18])),
)
fields = st.builds(field, st.sampled_from(["n0", "n1", "n9"]), operator=st.sampled_from(["In", "NotIn"]))
terms = st.fixed_dictionaries(
    {"matchExpressions": st.lists(expressions, max_size=2), "matchFields": st.lists(fields, max_size=1)}
)
labels = st.dictionaries(st.sampled_from(["color", "size"]), values, max_size=2)


def plain_expression(wanted: Json, labels: dict[str, str]) -> bool:
    value = labels.get(wanted["key"])
    match wanted["operator"]:
        case "In":
            return value in wanted["values"]
        case "NotIn":
            return value not in wanted["values"]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    if value is None or not value.isdigit():
        return False
    bound = int(wanted["values"][0])
    return int(value) > bound if wanted["operator"] == "Gt" else int(value) < bound


def plain_term(wanted: Json, name: str, labels: dict[str, str]) -> bool:
    if not wanted["matchExpressions"] and not wanted["matchFields"]:
        return False
    named = ((name in f["values"]) == (f["operator"] == "In") for f in wanted["matchFields"])
    return all(named) and all(plain_expression(e, labels) for e in wanted["matchExpressions"])


@given(
    st.lists(labels, min_size=1, max_size=4),
    st.none() | st.lists(terms, max_size=3),
    labels,
    st.lists(st.tuples(st.integers(0, 9), terms), max_size=3),
    st.lists(terms, max_size=1),
)
def test_all_forms_agree_with_the_plain_model(nodes, required, selector, preferences, added):
    pod = pod_with(affinity(required, preferences), node_selector=selector)
    made = [make_node(f"n{i}", labels=own) for i, own in enumerate(nodes)]
    args = {"addedAffinity": affinity(added)} if added and plain_valid(added) else None
    expected, scores = {}, {}
    for node in made:
        own = {key: value for key, value in node.labels.items() if not key.startswith("kube")}
        fits = all(own.get(key) == value for key, value in selector.items()) and (
            required is None or any(plain_term(wanted, node.name, own) for wanted in required)
        )
        if args and not any(plain_term(wanted, node.name, own) for wanted in added):
            expected[node.name] = ENFORCED
        elif not fits:
            expected[node.name] = POD
        scores[node.name] = sum(w for w, wanted in preferences if w and plain_term(wanted, node.name, own))
    asked = ask(PLUGIN, pod, made, args=args)
    if not isinstance(asked.pre, Status) or asked.pre.is_success:
        assert asked.refused() == expected
    assert asked.scores() == (scores if preferences else None)


def plain_valid(added: list[Json]) -> bool:
    """A profile may not add an empty term."""
    return all(wanted["matchExpressions"] or wanted["matchFields"] for wanted in added)


# Hints

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, NODES[0], QUEUE, id="a matching node came"),
        pytest.param(None, NODES[1], SKIP, id="another node came"),
        pytest.param(NODES[1], NODES[0], QUEUE, id="matches now"),
        pytest.param(NODES[0], NODES[0], SKIP, id="matched before"),
        pytest.param(NODES[0], NODES[1], SKIP, id="matches no more"),
        pytest.param(None, "?", QUEUE, id="an object that is no node"),
    ],
)
def test_nodes_that_come_or_change(old, new, hint):
    (registration,) = ask(PLUGIN, pod_with(), NODES).plugin.events_to_register()
    assert registration.hint(pod_with(node_selector={"color": "red"}), old, new) is hint


def test_hints_with_added_affinity_and_unreadable_terms():
    args = {"addedAffinity": affinity([term(RED)])}
    (added,) = ask(PLUGIN, pod_with(), NODES, args=args).plugin.events_to_register()
    assert added.hint(pod_with(), None, NODES[1]) is SKIP
    assert added.hint(pod_with(), None, NODES[0]) is QUEUE
    (plain,) = ask(PLUGIN, pod_with(), NODES).plugin.events_to_register()
    unreadable = affinity([term(UNREADABLE)])
    assert plain.hint(pod_with(unreadable), None, NODES[0]) is QUEUE
    assert plain.hint(pod_with(unreadable, node_selector={"color": "red"}), None, NODES[1]) is SKIP
