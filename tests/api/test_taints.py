"""Tolerations against taints."""

# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False

import pytest

from moorage.api.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
    find_untolerated,
    tolerates,
)

GPU = Taint(key="gpu", value="a100", effect=NO_SCHEDULE)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration(key="gpu", value="a100", effect=NO_SCHEDULE), True, id="Equal is the default"),
        pytest.param(Toleration(key="gpu", operator="Equal", value="h100"), False, id="other value"),
        pytest.param(Toleration(key="gpu", operator="Exists"), True, id="Exists ignores the value"),
        pytest.param(Toleration(operator="Exists"), True, id="empty key with Exists matches all"),
        pytest.param(Toleration(), False, id="empty key with Equal compares the value"),
        pytest.param(Toleration(key="gpu", operator="Exists", effect=NO_EXECUTE), False, id="other effect"),
        pytest.param(Toleration(key="cpu", operator="Exists"), False, id="other key"),
        pytest.param(Toleration(key="gpu", operator="Sometimes"), False, id="unknown operator"),
    ],
)
def test_tolerates(toleration, expected):
    assert expected is tolerates(toleration, GPU)


@pytest.mark.parametrize(
    ("operator", "taint", "toleration", "expected"),
    [
        ("Lt", "5", "10", True),
        ("Lt", "10", "10", False),
        ("Gt", "11", "10", True),
        ("Gt", "x", "10", False),
        ("Gt", "11", "", False),
        ("Gt", "\u0661\u0661", "1", False),
    ],
)
def test_comparison_operators_work_only_when_switched_on(operator, taint, toleration, expected):
    tolerated = Toleration(key="k", operator=operator, value=toleration)
    on_node = Taint(key="k", value=taint, effect=NO_SCHEDULE)
    assert expected is tolerates(tolerated, on_node, comparison=True)
    assert tolerates(tolerated, on_node) is False


def test_find_untolerated_gives_the_first_of_the_asked_effects():
    soft = Taint(key="soft", effect=PREFER_NO_SCHEDULE)
    hard = Taint(key="hard", effect=NO_EXECUTE)
    assert find_untolerated([soft, GPU, hard], []) == GPU
    assert find_untolerated([soft, GPU, hard], [Toleration(key="gpu", operator="Exists")]) == hard
    assert find_untolerated([soft, hard], [], [PREFER_NO_SCHEDULE]) == soft
    assert find_untolerated([soft], []) is None
