"""The status of a PodGroup follows from its pods, and says what the group waits for."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import PODS, Unstructured
from moorage.contrib.coscheduling.controller import Ended, status
from moorage.contrib.coscheduling.groups import PODGROUPS
from moorage.store import faults
from moorage.store.faults import Fault
from moorage.testing import Cluster
from tests.contrib.configs import enabling
from tests.contrib.coscheduling.gangs import cluster, gang, member, nodes, podgroup


def pods(phases: str) -> list[Any]:
    """R runs, P is pending."""
    named = {"R": "Running", "P": "Pending"}
    return [member("train", number, phase=named[phase]) for number, phase in enumerate(phases)]


@pytest.mark.parametrize(
    ("phases", "ended", "expected"),
    [
        ("", (0, 0), "Pending"),
        ("PP", (0, 0), "Pending"),
        ("PPP", (0, 0), "Scheduling"),
        ("RRP", (0, 0), "Scheduling"),
        ("RRR", (0, 0), "Running"),
        ("RR", (1, 0), "Running"),
        ("", (3, 0), "Finished"),
        ("R", (3, 1), "Finished"),
        ("RR", (0, 1), "Failed"),
        ("PP", (0, 1), "Scheduling"),
        ("RRR", (0, 1), "Failed"),
    ],
)
def test_sp166_sp361_sp386_sp446_sp578_the_phase_is_derived_from_the_pods_each_time(phases, ended, expected):
    found = status(Unstructured(podgroup("train", 3)), pods(phases), Ended(*ended), "")
    assert found["phase"] == expected
    assert (found["running"], found["succeeded"], found["failed"]) == (phases.count("R"), *ended)


def status_of(found: Cluster, name: str) -> dict[str, Any]:
    stored: dict[str, Any] = found.store.get(PODGROUPS, name, "default").raw.get("status", {})
    return stored


def test_the_status_says_what_the_group_waits_for():
    with cluster() as found:
        group, *members = gang("train", 3)
        found.add(nodes(2), group, members[:2])
        found.settle(3)
        assert status_of(found, "train")["phase"] == "Pending"
        assert status_of(found, "train")["message"] == "1 more pods"
        found.add(members[2])
        found.settle(3)
        waiting = status_of(found, "train")
        assert waiting["phase"] == "Scheduling"
        assert waiting["message"].startswith("PodGroup default/train does not fit: 2 of 3 members have a node")
        assert waiting["scheduleStartTime"]
        found.add(nodes(3)[2])
        found.settle(15)
        assert status_of(found, "train")["message"] == ""


def test_a_member_that_waits_says_what_its_group_says():
    with cluster() as found:
        found.add(nodes(3), podgroup("train", 3), member("train", 0))
        found.add(member("train", number, scheduler_name="another") for number in (1, 2))
        found.settle(3)
        [event] = found.events("train-0")
        assert event.reason == "WaitingForPodGroup"
        assert event.note == "PodGroup default/train waits for 2 more members that have a node"
        assert status_of(found, "train")["message"] == "2 more members that have a node"


def test_the_status_follows_the_pods_to_the_end():
    with cluster() as found:
        found.add(nodes(2), gang("train", 2))
        found.settle(3)
        for name in ("train-0", "train-1"):
            found.patch(PODS, name, {"status": {"phase": "Running"}}, "default", subresource="status")
        found.settle(2)
        assert status_of(found, "train")["phase"] == "Running"
        for name in ("train-0", "train-1"):
            found.patch(PODS, name, {"status": {"phase": "Succeeded"}}, "default", subresource="status")
        found.settle(2)
        assert status_of(found, "train")["phase"] == "Finished"
        assert status_of(found, "train")["succeeded"] == 2


def test_a_status_that_could_not_be_written_is_written_later():
    with cluster(allow_background_failures=True) as found:
        refuse = Fault(verb="patch", resource=PODGROUPS, effect=faults.server_error(500), times=2)
        found.faults.add(refuse)
        found.add(nodes(2), podgroup("train", 3), member("train", 0))
        found.settle(10)
        assert status_of(found, "train")["message"] == "2 more pods"


def test_after_a_restart_pods_that_ended_meanwhile_are_counted():
    with cluster() as found:
        found.add(nodes(2), gang("train", 2))
        found.settle(3)
        found.run(found.scheduler.stop())
        for name in ("train-0", "train-1"):
            found.patch(PODS, name, {"status": {"phase": "Succeeded"}}, "default", subresource="status")
        found.restart()
        found.settle(3)
        assert status_of(found, "train")["phase"] == "Finished"


def test_a_reload_keeps_who_waits_and_restarts_the_controller():
    with cluster({"permitWaitingTimeSeconds": 50}) as found:
        group, *members = gang("train", 2, timeout=0)
        found.add(nodes(2), group, members[0], member("train", "x", scheduler_name="another"))
        found.settle(3)
        found.reload(enabling("Coscheduling", {"permitWaitingTimeSeconds": 40}, without=("PrioritySort",)))
        found.add(members[1])
        found.settle(5)
        assert len(found.bound()) == 2
        assert status_of(found, "train")["message"] == ""
