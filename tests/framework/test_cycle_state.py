"""CycleState: a clone reads as its origin did at that moment, and neither sees what the other does later."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.framework import CycleState, StateKeyError


class Counts:
    """A value with a clone of its own, as plugins write it."""

    def __init__(self, **counts: int) -> None:
        self.counts = counts

    def clone(self) -> Counts:
        return Counts(**self.counts)


def test_reading_what_no_plugin_wrote_names_the_key():
    with pytest.raises(StateKeyError, match=r"no entry 'Plugin\.key' in the cycle state"):
        CycleState().read("Plugin.key")


def test_a_default_is_given_for_what_no_plugin_wrote_even_none():
    state = CycleState()
    assert state.read("k", 7) == 7
    assert state.read("k", None) is None
    state.write("k", None)
    assert state.read("k", 7) is None
    assert "k" in state


def test_writes_of_a_clone_stay_in_the_clone():
    parent = CycleState()
    parent.write("a", 1)
    clone = parent.clone()
    clone.write("a", 2)
    clone.write("b", 3)
    assert (parent.read("a"), "b" in parent) == (1, False)
    assert (clone.read("a"), clone.read("b")) == (2, 3)
    assert (sorted(parent.keys()), sorted(clone.keys())) == (["a"], ["a", "b"])


def test_a_deletion_in_a_clone_leaves_the_parent_alone():
    parent = CycleState()
    parent.write("a", 1)
    clone = parent.clone()
    clone.delete("a")
    assert "a" not in clone
    assert list(clone.keys()) == []
    with pytest.raises(StateKeyError):
        clone.own("a")
    with pytest.raises(StateKeyError):
        clone.clone().read("a")
    assert parent.read("a") == 1


@pytest.mark.parametrize(
    ("make", "change", "look"),
    [
        pytest.param(lambda: Counts(x=1), lambda v: v.counts.update(x=2), lambda v: v.counts, id="by its own clone()"),
        pytest.param(lambda: {"x": 1}, lambda v: v.update(x=2), dict, id="by a shallow copy"),
    ],
)
def test_own_gives_a_clone_its_own_copy(make, change, look):
    parent = CycleState()
    parent.write("k", make())
    clone = parent.clone()
    change(clone.own("k"))
    assert look(parent.read("k")) == {"x": 1}
    assert look(clone.read("k")) == {"x": 2}
    assert clone.own("k") is clone.read("k"), "copied once"


def test_own_at_the_root_copies_nothing():
    state = CycleState()
    value = {"x": 1}
    state.write("k", value)
    assert state.own("k") is value


def test_what_a_parent_owns_and_changes_after_the_clone_is_not_seen_by_the_clone():
    parent = CycleState().clone()
    parent.write("k", {"x": 1})
    clone = parent.clone()
    parent.own("k")["x"] = 2
    parent.write("new", 1)
    parent.delete("k")
    assert clone.read("k") == {"x": 1}
    assert "new" not in clone


def test_skips_are_taken_over_and_then_separate():
    parent = CycleState()
    parent.skip_filter.add("A")
    parent.skip_score.add("B")
    clone = parent.clone()
    clone.skip_filter.add("C")
    assert (parent.skip_filter, clone.skip_filter, clone.skip_score) == ({"A"}, {"A", "C"}, {"B"})


KEYS = ("a", "b", "c")
steps = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from(("write", "delete", "own", "clone")), st.sampled_from(KEYS), st.integers()
    ),
    max_size=30,
)


@given(steps)
def test_clones_behave_as_deep_copies(sequence):
    """Against a plain model: every state is a dict, every clone is a full copy."""
    states: list[CycleState] = [CycleState()]
    models: list[dict[str, list[int]]] = [{}]
    for which, action, key, number in sequence:
        state, model = states[which % len(states)], models[which % len(states)]
        match action:
            case "write":
                state.write(key, [number])
                model[key] = [number]
            case "delete":
                state.delete(key)
                model.pop(key, None)
            case "own" if key in model:
                state.own(key).append(number)
                model[key] = [*model[key], number]
            case "clone":
                states.append(state.clone())
                models.append({k: list(v) for k, v in model.items()})
    assert [_content(state) for state in states] == models


def _content(state: CycleState) -> dict[str, Any]:
    keys = list(state.keys())
    assert [key in state for key in KEYS] == [key in keys for key in KEYS]
    return {key: state.read(key) for key in keys}


def test_many_clones_of_an_unchanged_state_stay_shallow():
    """A dry run clones once per candidate node; reading must not become slower with each."""
    state = CycleState()
    state.write("k", 1)
    for _ in range(10_000):
        clone = state.clone()
    assert clone.read("k") == 1
    depth, walker = 0, clone
    while walker._parent is not None:
        depth, walker = depth + 1, walker._parent
    assert depth <= 2
