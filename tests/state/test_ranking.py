"""Pods by importance: priority, then start; and sums of the less important ones."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.framework.preemption import start_of
from moorage.state.ranking import PodRanking, VictimColumns
from moorage.testing import make_pod

STARTS = (None, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:00.5Z", "2026-01-01T02:00:00+01:00")
pods = st.lists(
    st.builds(
        lambda priority, started: make_pod("p", priority=priority, start_time=started),
        st.integers(-2, 2) | st.none(),
        st.sampled_from(STARTS),
    ),
    max_size=8,
)


@given(pods)
def test_higher_priority_comes_first_then_the_earlier_start(given_pods):
    ranked = PodRanking((pod, {}) for pod in given_pods)
    expected = sorted(given_pods, key=lambda pod: (-pod.priority, start_of(pod)))
    assert list(ranked.pods) == expected


@given(pods, st.integers(-3, 3))
def test_below_a_priority_are_all_pods_of_lower_priority(given_pods, priority):
    lower = PodRanking((pod, {}) for pod in given_pods).below(priority)
    assert sorted(pod.priority for pod in lower) == sorted(p.priority for p in given_pods if p.priority < priority)
    assert len(lower) == len(list(lower))


def test_a_pod_that_has_not_started_is_the_least_important_of_its_priority():
    late, never = make_pod("late", start_time="2030-01-01T00:00:00Z"), make_pod("never")
    assert [pod.name for pod in PodRanking([(never, {}), (late, {})]).pods] == ["late", "never"]


def test_lower_pods_of_many_nodes_are_one_long_list():
    first = PodRanking([(make_pod("a", priority=2), {"cpu": 5}), (make_pod("b"), {"cpu": 3, "gpu": 1})])
    second = PodRanking([(make_pod("c", priority=-1), {"cpu": 7})])
    victims = VictimColumns([first.below(2), second.below(9), second.below(-1), first.below(9)])
    assert victims.lengths.tolist() == [1, 1, 0, 2]
    assert victims.offsets.tolist() == [0, 1, 2, 2]
    assert victims.column("cpu").tolist() == [3, 7, 5, 3]
    assert victims.priorities.tolist() == [0, -1, 2, 0]
    assert victims.totals("cpu").tolist() == [3, 7, 0, 8]
    assert victims.totals("gpu").tolist() == [1, 0, 0, 1]
    assert victims.totals("pods").tolist() == [1, 1, 0, 2]
    assert [pod.name for pod in victims.pods(np.array([3, 1, 0, 2]))] == ["b", "c", "b", "a"]
    assert (len(victims), victims.size) == (4, 4)


def test_starts_are_read_whatever_their_form():
    texts = ["2026-01-01T00:00:01Z", "2026-01-01T00:00:00.5Z", "2026-13-01T00:00:00Z", None]
    for some in (texts, texts[:1], texts[2:3]):
        ranked = PodRanking(((make_pod(start_time=text), {}) for text in some), ranked=True)
        assert VictimColumns([ranked.below(1)]).starts().tolist() == [start_of(pod) for pod in ranked.pods]


def test_lower_pods_are_a_sequence():
    ranked = PodRanking([(make_pod("a", priority=2), {}), (make_pod("b", priority=1), {}), (make_pod("c"), {})])
    lower = ranked.below(2)
    assert [pod.name for pod in lower] == ["b", "c"]
    assert (lower[0].name, lower[-1].name, [p.name for p in lower[1:]]) == ("b", "c", ["c"])
