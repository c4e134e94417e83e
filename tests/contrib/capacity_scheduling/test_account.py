"""The account is a function of the pods and quotas that there are, in whatever order they were reported."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moorage.api.resources import Unstructured
from moorage.contrib.capacity_scheduling.account import Account
from moorage.testing import make_pod
from tests.contrib.capacity_scheduling.tenants import quota

UIDS = ("u0", "u1", "u2")
ACTIONS = ("pending", "reserve", "unreserve", "bound", "resized", "ended", "deleted")


def pod(uid, cpu="1", **fields):
    return make_pod(uid, uid=uid, namespace="ab"[int(uid[1]) % 2], cpu=cpu, **fields)


@given(st.lists(st.tuples(st.sampled_from(UIDS), st.sampled_from(ACTIONS)), max_size=30), st.integers(0, 30))
def test_what_is_used_is_the_sum_over_pods_with_a_node_and_reserved_ones(steps, quota_comes_at):
    account = Account()
    bound: dict[str, int] = {}
    reserved: dict[str, int] = {}
    for number, (uid, action) in enumerate(steps):
        if number == quota_comes_at:
            account.set_quota("a", [Unstructured(quota("a", 1, 2))])
        apply(account, bound, reserved, uid, action)
    account.set_quota("a", [Unstructured(quota("a", 1, 2))])
    counted = {**reserved, **bound}
    expected = sum(cpu for uid, cpu in counted.items() if pod(uid).namespace == "a")
    assert account.quotas["a"].used.get("cpu", 0) == expected
    assert account.root.exhausted_with({"cpu": 1000 - expected}, {}) is False
    assert account.root.exhausted_with({"cpu": 1001 - expected}, {}) is True


def apply(account, bound, reserved, uid, action):
    if action == "reserve":
        if uid not in bound:
            account.reserve(pod(uid))
            reserved[uid] = 1000
    elif action == "unreserve":
        account.unreserve(pod(uid))
        reserved.pop(uid, None)
    elif action == "pending":
        if uid not in bound:
            account.pod_changed(None, pod(uid))
    elif action in ("bound", "resized"):
        cpu = 1000 if action == "bound" else 2000
        account.pod_changed(None, pod(uid, f"{cpu}m", node="n"))
        bound[uid] = cpu
        reserved.pop(uid, None)
    else:
        ended = pod(uid, node="n", phase="Succeeded") if action == "ended" else None
        account.pod_changed(pod(uid, node="n"), ended)
        bound.pop(uid, None)
        reserved.pop(uid, None)


def test_only_pods_that_are_there_are_kept_and_reserved_ones():
    account = Account()
    account.set_quota("a", [Unstructured(quota("a", 1))])
    account.pod_changed(None, pod("u0", node="n"))
    account.pod_changed(None, pod("u2", node="n"))
    account.reserve(pod("u4"))
    account.keep_only([pod("u2", node="n")])
    assert account.quotas["a"].used == {"cpu": 2000}
