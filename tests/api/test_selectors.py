"""Selectors over labels, fields and nodes."""

# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.errors import SelectorError
from moorage.api.meta import LabelSelector, LabelSelectorRequirement, is_label_key, is_label_value
from moorage.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from moorage.api.node_selectors import (
    compile_node_selector,
    compile_node_selector_terms,
    compile_preferred_terms,
    required_node_affinity,
    required_node_names,
)
from moorage.api.pod import Affinity, NodeAffinity, Pod, PodSpec
from moorage.api.selectors import (
    EVERYTHING,
    IN,
    NOT_IN,
    NOTHING,
    Requirement,
    compile_label_selector,
    make_selector,
    parse_field_selector,
    parse_selector,
    selector_from_labels,
)


def expression(key, operator, *values):
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def node_expression(key, operator, *values):
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(*expressions, fields=()):
    return NodeSelectorTerm(match_expressions=expressions, match_fields=tuple(fields))


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        pytest.param(None, {"a": "b"}, False, id="null selects nothing"),
        pytest.param(LabelSelector(), {}, True, id="empty selects everything"),
        pytest.param(LabelSelector(match_labels={"a": "b"}), {"a": "b", "c": "d"}, True, id="label present"),
        pytest.param(LabelSelector(match_labels={"a": "b"}), {"a": "c"}, False, id="label differs"),
        pytest.param(LabelSelector(match_expressions=(expression("a", "In", "x", "b"),)), {"a": "b"}, True, id="In"),
        pytest.param(LabelSelector(match_expressions=(expression("a", "In", "b"),)), {}, False, id="In, absent"),
        pytest.param(LabelSelector(match_expressions=(expression("a", "NotIn", "b"),)), {}, True, id="NotIn, absent"),
        pytest.param(
            LabelSelector(match_expressions=(expression("a", "NotIn", "b"),)), {"a": "b"}, False, id="NotIn, present"
        ),
        pytest.param(LabelSelector(match_expressions=(expression("a", "Exists"),)), {"a": ""}, True, id="Exists"),
        pytest.param(
            LabelSelector(match_expressions=(expression("a", "DoesNotExist"),)), {"a": ""}, False, id="DoesNotExist"
        ),
    ],
)
def test_label_selectors(selector, labels, expected):
    assert expected is compile_label_selector(selector).matches(labels)


@pytest.mark.parametrize(
    ("selector", "field"),
    [
        pytest.param(
            LabelSelector(match_expressions=(expression("a", "Near"),)), "matchExpressions[0].operator", id="operator"
        ),
        pytest.param(
            LabelSelector(match_expressions=(expression("a", "Gt", "1"),)),
            "matchExpressions[0].operator",
            id="Gt is for nodes",
        ),
        pytest.param(
            LabelSelector(match_expressions=(expression("a", "In"),)),
            "matchExpressions[0].values",
            id="In without values",
        ),
        pytest.param(
            LabelSelector(match_expressions=(expression("a", "Exists", "b"),)),
            "matchExpressions[0].values",
            id="Exists with values",
        ),
        pytest.param(
            LabelSelector(match_expressions=(expression("", "Exists"),)), "matchExpressions[0].key", id="empty key"
        ),
        pytest.param(LabelSelector(match_labels={"a": "b c"}), "matchLabels[a].values", id="blank in a value"),
    ],
)
def test_a_bad_label_selector_names_its_field(selector, field):
    with pytest.raises(SelectorError) as caught:
        compile_label_selector(selector, "spec.selector")
    assert f"spec.selector.{field}" == caught.value.field


def test_equal_selectors_are_one_object_whatever_their_order():
    one = compile_label_selector(LabelSelector(match_labels={"a": "b", "c": "d"}))
    two = parse_selector("c=d,a=b")
    assert one is two
    assert hash(one) == hash(two)
    assert EVERYTHING.empty
    assert not NOTHING.empty
    assert not one.empty


def test_plus_narrows_a_selector_and_nothing_stays_nothing():
    narrowed = EVERYTHING.plus(Requirement("a", "In", ("b",)))
    assert narrowed is selector_from_labels({"a": "b"})
    assert NOTHING.plus(Requirement("a", "Exists")) is NOTHING
    assert str(NOTHING) == "<nothing>"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("  ", "", id="blank"),
        pytest.param("a=b", "a=b", id="equals"),
        pytest.param("a==b", "a=b", id="double equals"),
        pytest.param(" a = b , c != d ", "a=b,c!=d", id="blanks around"),
        pytest.param("e in (g, f),!h,i", "e in (f,g),!h,i", id="sets and existence"),
        pytest.param("e notin (f)", "e!=f", id="notin of one"),
        pytest.param("a=", "a=", id="empty value"),
        pytest.param("a>1,b<2", "a>1,b<2", id="comparison"),
        pytest.param("x.io/in in (in)", "x.io/in=in", id="a word as key and value"),
    ],
)
def test_selector_text(text, canonical):
    assert canonical == str(parse_selector(text))


@pytest.mark.parametrize("text", ["a=b,", ",a", "a=b=c", "a in b", "a in (b", "!", "a b", "a>x", "=b", "a=ü", "-a"])
def test_bad_selector_text_is_refused(text):
    with pytest.raises(SelectorError):
        parse_selector(text)


_KEYS = st.sampled_from(["a", "b", "c.io/d", "in", "notin"])
_VALUES = st.sampled_from(["", "x", "y-1", "z_2", "in"])
_REQUIREMENTS = st.one_of(
    st.builds(
        lambda key, operator, values: Requirement(key, operator, tuple(sorted(values))),
        _KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.sets(_VALUES, min_size=1),
    ),
    st.builds(Requirement, _KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        lambda key, operator, value: Requirement(key, operator, (str(value),)),
        _KEYS,
        st.sampled_from(["Gt", "Lt"]),
        st.integers(0, 9),
    ),
)


@given(st.lists(_REQUIREMENTS, max_size=4))
def test_selector_text_survives_the_round_trip(requirements):
    selector = make_selector(requirements)
    assert selector == parse_selector(str(selector))


@given(st.lists(_REQUIREMENTS, max_size=4), st.dictionaries(_KEYS, _VALUES | st.integers(-2, 12).map(str)))
def test_matching_equals_a_naive_model(requirements, labels):
    def holds(requirement):
        present, value = requirement.key in labels, labels.get(requirement.key)
        if requirement.operator in ("Gt", "Lt"):
            if not present or not value.lstrip("-").isdigit():
                return False
            difference = int(value) - int(requirement.values[0])
            return difference > 0 if requirement.operator == "Gt" else difference < 0
        return {
            "In": present and value in requirement.values,
            "NotIn": not present or value not in requirement.values,
            "Exists": present,
            "DoesNotExist": not present,
        }[requirement.operator]

    assert all(map(holds, requirements)) is make_selector(requirements).matches(labels)


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        pytest.param("metadata.name=x", {"metadata.name": "x"}, True, id="equals"),
        pytest.param("spec.nodeName!=", {}, False, id="absent reads as empty"),
        pytest.param("spec.nodeName!=", {"spec.nodeName": "n"}, True, id="not empty"),
        pytest.param("spec.nodeName=", {}, True, id="empty"),
        pytest.param("status.phase!=Succeeded,status.phase!=Failed", {"status.phase": "Failed"}, False, id="two terms"),
        pytest.param(r"a=x\,y\=z", {"a": "x,y=z"}, True, id="escapes"),
        pytest.param("", {}, True, id="no terms"),
    ],
)
def test_field_selectors(text, fields, expected):
    selector = parse_field_selector(text)
    assert expected is selector.matches(fields.get)
    assert selector == parse_field_selector(str(selector))


@pytest.mark.parametrize("text", ["a", "=x", "a=b=c", "a=b\\"])
def test_bad_field_selectors_are_refused(text):
    with pytest.raises(SelectorError):
        parse_field_selector(text)


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([], False, id="no terms match nothing"),
        pytest.param([term()], False, id="an empty term matches nothing"),
        pytest.param([term(node_expression("zone", "In", "a"))], True, id="In"),
        pytest.param(
            [term(node_expression("zone", "In", "b")), term(node_expression("cpus", "Gt", "7"))],
            True,
            id="terms are ORed",
        ),
        pytest.param(
            [term(node_expression("zone", "In", "a"), node_expression("cpus", "Lt", "8"))],
            False,
            id="expressions are ANDed",
        ),
        pytest.param([term(node_expression("zone", "Gt", "1"))], False, id="Gt on a label that is no number"),
        pytest.param([term(node_expression("absent", "Lt", "1"))], False, id="Lt on an absent label"),
        pytest.param([term(fields=[node_expression("metadata.name", "In", "n1")])], True, id="by name"),
        pytest.param([term(fields=[node_expression("metadata.name", "NotIn", "n1")])], False, id="not by name"),
        pytest.param(
            [term(fields=[node_expression("metadata.uid", "In", "x")])], False, id="unknown field reads as empty"
        ),
        pytest.param(
            [term(node_expression("zone", "Gt", "x")), term(node_expression("zone", "Exists"))],
            True,
            id="a bad term leaves others alone",
        ),
        pytest.param([term(node_expression("zone", "Gt", "x"))], False, id="a bad term alone matches nothing"),
        pytest.param([term(node_expression("", "Exists"))], False, id="empty key"),
    ],
)
def test_node_selectors(terms, expected):
    assert expected is compile_node_selector_terms(terms).matches({"zone": "a", "cpus": "8"}, "n1")


def test_node_selector_errors_are_listed_with_their_paths():
    compiled = compile_node_selector_terms(
        [term(), term(node_expression("a", "Near"), fields=[node_expression("metadata.name", "Exists")])]
    )
    assert [error.split(":")[0] for error in compiled.errors] == [
        "nodeSelectorTerms[1].matchExpressions[0].operator",
        "nodeSelectorTerms[1].matchFields[0].operator",
    ]
    assert compile_node_selector(None).matches({}, "n") is False


def test_fields_are_not_looked_at_for_a_node_without_a_name():
    assert compile_node_selector_terms([term(fields=[node_expression("metadata.name", "In", "n")])]).matches({}, "")


def test_preferred_terms_add_up_their_weights():
    preferences = compile_preferred_terms(
        [
            PreferredSchedulingTerm(weight=3, preference=term(node_expression("zone", "In", "a"))),
            PreferredSchedulingTerm(weight=5, preference=term(node_expression("zone", "Exists"))),
            PreferredSchedulingTerm(weight=7, preference=term()),
            PreferredSchedulingTerm(weight=0, preference=term(node_expression("", "Near"))),
        ]
    )
    assert [preference.weight for preference in preferences.terms] == [3, 5]
    assert preferences.score({"zone": "a"}, "n") == 8
    assert preferences.score({"zone": "b"}, "n") == 5


def test_a_bad_preferred_term_is_refused():
    with pytest.raises(SelectorError) as caught:
        compile_preferred_terms([PreferredSchedulingTerm(weight=1, preference=term(node_expression("a", "Near")))])
    assert caught.value.field == "[0].matchExpressions[0].operator"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, None, id="no selector"),
        pytest.param(NodeSelector(), None, id="no terms"),
        pytest.param(
            NodeSelector(node_selector_terms=(term(fields=[node_expression("metadata.name", "In", "a")]),)),
            {"a"},
            id="one name",
        ),
        pytest.param(
            NodeSelector(
                node_selector_terms=(
                    term(fields=[node_expression("metadata.name", "In", "a")]),
                    term(fields=[node_expression("metadata.name", "In", "b")]),
                )
            ),
            {"a", "b"},
            id="terms are united",
        ),
        pytest.param(
            NodeSelector(
                node_selector_terms=(
                    term(fields=[node_expression("metadata.name", "In", "a")]),
                    term(node_expression("zone", "Exists")),
                )
            ),
            None,
            id="a term without names opens all nodes",
        ),
        pytest.param(
            NodeSelector(
                node_selector_terms=(
                    term(
                        fields=[
                            node_expression("metadata.name", "In", "a"),
                            node_expression("metadata.name", "In", "b"),
                        ]
                    ),
                )
            ),
            set(),
            id="a contradiction leaves none",
        ),
        pytest.param(
            NodeSelector(node_selector_terms=(term(fields=[node_expression("metadata.name", "NotIn", "a")]),)),
            None,
            id="NotIn",
        ),
    ],
)
def test_required_node_names(selector, expected):
    assert expected == required_node_names(selector)


def test_a_pods_node_selector_and_affinity_must_both_hold():
    required = NodeSelector(node_selector_terms=(term(node_expression("zone", "In", "a")),))
    affinity = Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))
    demand = required_node_affinity(Pod(spec=PodSpec(node_selector={"disk": "ssd"}, affinity=affinity)))
    assert demand.matches({"zone": "a", "disk": "ssd"}, "n")
    assert not demand.matches({"zone": "a"}, "n")
    assert not demand.matches({"disk": "ssd"}, "n")
    assert required_node_affinity(Pod()).matches({}, "n")


@pytest.mark.parametrize(
    ("key", "valid"),
    [
        ("a", True),
        ("a.b/c_d", True),
        ("A/b", False),
        ("/a", False),
        ("a/", False),
        ("a" * 63, True),
        ("a" * 64, False),
        ("a\n", False),
        (f"{'a' * 253}/b", True),
        (f"{'a' * 254}/b", False),
    ],
)
def test_label_keys(key, valid):
    assert valid is is_label_key(key)


@pytest.mark.parametrize(
    ("text", "valid"), [("", True), ("a-b", True), ("-a", False), ("a" * 64, False), ("ü", False), ("a\n", False)]
)
def test_label_values(text, valid):
    assert valid is is_label_value(text)


MANY_VALUES = tuple(sorted(f"v{i}" for i in range(1000)))


@pytest.mark.parametrize("operator", [IN, NOT_IN])
def test_many_values_are_searched_and_not_scanned(operator: str) -> None:
    class Compared(str):
        """Counts how often it is compared."""

        number = 0
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Compared.number += 1
            return str.__eq__(self, other)

        def __gt__(self, other: str) -> bool:
            Compared.number += 1
            return str.__gt__(self, other)

    requirement = Requirement("app", operator, MANY_VALUES)
    for value in ("v0", "v500", "v999", "nope", "", "zzz"):
        assert requirement.matches({"app": Compared(value)}) is ((value in MANY_VALUES) == (operator == IN))
    assert Compared.number < 120


def test_a_large_selector_is_compiled_but_not_kept() -> None:
    listed = LabelSelectorRequirement(key="app", operator=IN, values=MANY_VALUES)
    large = LabelSelector(match_expressions=(listed,))
    assert compile_label_selector(large) == compile_label_selector(large)
    assert compile_label_selector(large) is not compile_label_selector(large)
    small = LabelSelector(match_labels={"app": "web"})
    assert compile_label_selector(small) is compile_label_selector(small)
