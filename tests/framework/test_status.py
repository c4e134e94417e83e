"""Status: what an answer is, how it is printed, and that a malformed one shows where it is made."""

from __future__ import annotations

import pytest

from moorage.framework import Code, Status
from moorage.framework.status import SUCCESS

ANSWERS = [
    pytest.param(Status.success(), Code.SUCCESS, (), id="success"),
    pytest.param(Status.error("broken"), Code.ERROR, ("broken",), id="error"),
    pytest.param(Status.unschedulable("a", "b"), Code.UNSCHEDULABLE, ("a", "b"), id="refused for two reasons"),
    pytest.param(
        Status.unschedulable("a", resolvable=False),
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        ("a",),
        id="refused, hopeless, by flag",
    ),
    pytest.param(
        Status.unresolvable("a"), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("a",), id="refused, hopeless, by name"
    ),
    pytest.param(Status.wait("w", timeout=3), Code.WAIT, ("w",), id="wait"),
    pytest.param(Status.skip(), Code.SKIP, (), id="skip"),
    pytest.param(Status.pending("p"), Code.PENDING, ("p",), id="pending"),
]


@pytest.mark.parametrize(("status", "code", "reasons"), ANSWERS)
def test_each_constructor_gives_its_code_and_reasons(status, code, reasons):
    assert (status.code, status.reasons) == (code, reasons)
    assert status.message == ", ".join(reasons)
    assert status.is_success == (code is Code.SUCCESS)
    assert status.is_skip == (code is Code.SKIP)
    assert status.is_wait == (code is Code.WAIT)
    refusals = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)
    assert status.is_rejected == (code in refusals)


def test_codes_are_numbered_and_spelled_as_in_kube_scheduler():
    spelled = {code.label: int(code) for code in Code}
    assert spelled == {
        "Success": 0,
        "Error": 1,
        "Unschedulable": 2,
        "UnschedulableAndUnresolvable": 3,
        "Wait": 4,
        "Skip": 5,
        "Pending": 6,
    }


def test_the_first_attribution_stays():
    assert Status.unschedulable("x").by("A").by("B").plugin == "A"


def test_a_status_is_neither_true_nor_false():
    with pytest.raises(TypeError, match="is_success"):
        bool(SUCCESS)


def test_statuses_are_values():
    assert Status.unschedulable("x") == Status.unschedulable("x")
    assert hash(Status.unschedulable("x")) == hash(Status.unschedulable("x"))
    assert Status.unschedulable("x") != Status.unresolvable("x")
    with pytest.raises(AttributeError):
        SUCCESS.code = Code.ERROR  # type: ignore[misc]


MALFORMED = [
    pytest.param(lambda: Status.unschedulable(3), "reason", id="a number as reason"),  # type: ignore[arg-type]
    pytest.param(lambda: Status.error(None), "reason", id="None as message"),  # type: ignore[arg-type]
    pytest.param(lambda: Status(Code.UNSCHEDULABLE, "full"), "reasons", id="a bare text"),  # type: ignore[arg-type]
    pytest.param(lambda: Status(99), "Code", id="an unknown code"),  # type: ignore[arg-type]
    pytest.param(lambda: Status("Unschedulable"), "Code", id="the label of a code"),  # type: ignore[arg-type]
    pytest.param(lambda: Status.wait(timeout="5s"), "timeout", id="a text as timeout"),  # type: ignore[arg-type]
    pytest.param(lambda: Status.wait(timeout=float("nan")), "timeout", id="NaN as timeout"),
]


@pytest.mark.parametrize(("make", "about"), MALFORMED)
def test_a_malformed_status_is_refused_where_it_is_made(make, about):
    """Inside the plugin, so that the failure names it, and not later in the scheduler's own bookkeeping."""
    with pytest.raises(TypeError, match=about):
        make()


def test_a_list_of_reasons_becomes_a_tuple():
    assert Status(Code.UNSCHEDULABLE, ["a", "b"]).reasons == ("a", "b")  # type: ignore[arg-type]
