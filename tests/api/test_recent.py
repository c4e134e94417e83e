"""Recent: the values that were used last, bounded by their weight."""

from moorage.api import recent as recent_module
from moorage.api.recent import Recent


def test_the_least_recently_used_values_go_first():
    recent: Recent[str, int] = Recent(10)
    recent.put("a", 1, 4)
    recent.put("b", 2, 4)
    assert recent.get("a") == 1
    recent.put("c", 3, 4)
    assert list(recent) == ["a", "c"]
    assert recent.get("b") is None
    assert recent.weight == 8


def test_the_newest_value_is_kept_whatever_it_weighs():
    recent: Recent[str, int] = Recent(10)
    recent.put("small", 1)
    recent.put("large", 2, 1000)
    assert list(recent) == ["large"]
    recent.put("small", 1)
    assert list(recent) == ["small"]
    assert recent.weight == 1


def test_a_value_that_is_put_again_or_dropped_is_weighed_once():
    recent: Recent[str, int] = Recent(10)
    recent.put("a", 1, 3)
    recent.put("a", 2, 5)
    assert (recent.get("a"), recent.weight, len(recent)) == (2, 5, 1)
    recent.drop("a")
    recent.drop("a")
    assert (recent.get("a"), recent.weight) == (None, 0)


def test_what_is_not_used_between_two_calls_is_forgotten():
    evicted: list[int] = []
    recent: Recent[str, int] = Recent(10, evicted.append)
    for value, key in enumerate("abc"):
        recent.put(key, value)
    recent.forget_unused()
    assert list(recent) == ["a", "b", "c"]
    recent.get("a")
    recent.put("d", 3)
    recent.forget_unused()
    assert (list(recent), len(recent), recent.weight, evicted) == (["a", "d"], 2, 2, [1, 2])
    recent.forget_unused()
    recent.forget_unused()
    assert (list(recent), len(recent), recent.weight) == ([], 0, 0)


def test_values_that_are_too_heavy_go_before_those_that_were_used_since():
    evicted: list[int] = []
    recent: Recent[str, int] = Recent(3, evicted.append)
    recent.put("a", 1)
    recent.forget_unused()
    for value, key in enumerate("bcd"):
        recent.put(key, value)
    assert (list(recent), evicted) == (["b", "c", "d"], [1])
    recent.put("e", 5)
    assert (list(recent), evicted) == (["c", "d", "e"], [1, 0])


def test_all_caches_of_the_process_forget_together_while_they_live():
    one: Recent[str, int] = Recent(10)
    other: Recent[str, int] = Recent(10)
    one.put("a", 1)
    other.put("b", 1)
    recent_module.forget_unused()
    other.get("b")
    recent_module.forget_unused()
    assert (list(one), list(other)) == ([], ["b"])
