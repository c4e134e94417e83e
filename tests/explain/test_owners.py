"""`moorage explain deployment/NAME`: which pods exist, why others do not, and what a user with few rights is shown."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from moorage.api import decoding
from moorage.api.errors import MoorageError
from moorage.api.resources import DEPLOYMENTS, EVENTS, JOBS, PODS, Resource
from moorage.cli.root import app
from moorage.explain.owners import REPLICA_SETS, OwnerObjects, explain_owner, owner_kind
from moorage.explain.quotas import quota_remedies
from moorage.explain.reading_owners import read_owner
from moorage.sim.loop import VirtualClock, VirtualLoop
from moorage.store import faults, refusals
from moorage.store.faults import Fault, Faults
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.testing import make_node
from tests.cli.running import runner
from tests.cluster.objects import Json
from tests.explain import stuck_pods
from tests.explain.stuck_pods import FULL, QUOTA_COMMAND, QUOTA_FACT

REFUSED = f'pods "qd-5c8-x" is forbidden: {QUOTA_FACT}'
FAILURE = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": REFUSED}


def owned(kind: str, name: str, uid: str, spec: Json, status: Json | None = None, by: str = "") -> Json:
    meta: Json = {"name": name, "namespace": FULL, "uid": uid}
    if by:
        meta["ownerReferences"] = [{"kind": "Deployment", "name": "qd", "uid": by, "controller": True}]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec, "status": status or {}}


def pod(name: str, owner: str, node: str = "", cpu: str = "1", **status: Any) -> Json:
    made = stuck_pods.inside(FULL, stuck_pods.pod(name, cpu=cpu))
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "qd-1", "uid": owner, "controller": True}
    made["metadata"] |= {"uid": name, "ownerReferences": [reference]}
    made["spec"]["nodeName"] = node
    return {**made, "status": {"phase": "Pending", **status}}


def typed(raw: Json) -> Any:
    return decoding.convert(PODS, raw)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("deploy", "Deployment"), ("deployments", "Deployment"), ("deployment.apps", "Deployment"),
        ("rs", "ReplicaSet"), ("sts", "StatefulSet"), ("jobs", "Job"), ("DaemonSet", "DaemonSet"),
        ("pod", ""), ("service", ""),
    ],
)  # fmt: skip
def test_owners_have_the_names_that_kubectl_knows(text, kind):
    assert owner_kind(text) == kind


def test_a_quota_that_refuses_pods_is_named_and_may_be_raised():
    deployment = owned("Deployment", "qd", "d", {"replicas": 2}, {"conditions": [FAILURE]})
    found = explain_owner(OwnerObjects("Deployment", deployment, (), ()))
    assert found.headline == "Deployment q/qd: 0 of 2 pods exist."
    assert found.facts == [REFUSED]
    assert [remedy.command for remedy in found.remedies] == [QUOTA_COMMAND]
    assert not found.ends_well


def test_events_tell_where_no_condition_does():
    found = explain_owner(
        OwnerObjects("StatefulSet", owned("StatefulSet", "s", "s", {}), (), (), ["webhook denied it"])
    )
    assert (found.headline, found.facts) == ("StatefulSet q/s: 0 of 1 pods exist.", ["webhook denied it"])
    silent = explain_owner(OwnerObjects("StatefulSet", owned("StatefulSet", "s", "s", {}), (), ()))
    assert silent.facts == ["Nothing says why: neither a condition nor an event of q/s names a reason."]


@pytest.mark.parametrize(
    ("kind", "spec", "status", "headline", "fact"),
    [
        ("Job", {"suspend": True}, {}, "Job q/j: 0 of 0 pods exist.", "The job is suspended (spec.suspend)."),
        ("Job", {"parallelism": 5, "completions": 6}, {"succeeded": 4}, "Job q/j: 0 of 2 pods exist.", ""),
        (
            "Job", {}, {"conditions": [{"type": "Failed", "status": "True", "message": "too many"}]},
            "Job q/j: 0 of 0 pods exist.", "The job has ended: Failed. too many",
        ),
        ("DaemonSet", {}, {"desiredNumberScheduled": 3}, "DaemonSet q/j: 0 of 3 pods exist.", ""),
    ],
)  # fmt: skip
def test_jobs_and_daemon_sets_want_what_their_status_allows(kind, spec, status, headline, fact):
    found = explain_owner(OwnerObjects(kind, owned(kind, "j", "j", spec, status), (), ()))
    assert found.headline == headline
    assert not fact or found.facts == [fact]


def test_only_pods_that_are_alive_count_and_pending_ones_are_grouped_by_reason():
    refused: dict[str, Any] = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]}
    raw = [
        pod("a", "d", "n"), pod("b", "d", **refused), pod("c", "d", **refused), pod("e", "d"),
        pod("f", "d", "n", phase="Failed"),
    ]  # fmt: skip
    deployment = owned("ReplicaSet", "qd", "d", {"replicas": 4})
    found = explain_owner(OwnerObjects("ReplicaSet", deployment, (), [*map(typed, raw)]))
    assert found.headline == "ReplicaSet q/qd: 4 of 4 pods exist, and 3 of them are pending."
    assert [(group.reason, len(group.pods)) for group in found.groups] == [
        ("0/1 nodes", 2),
        ("no message of the scheduler default-scheduler", 1),
    ]


def test_a_rollout_has_more_pods_than_wanted():
    pods = [typed(pod(f"p{i}", "r", node="n")) for i in range(3)]
    deployment = owned("Deployment", "qd", "d", {"replicas": 2})
    found = explain_owner(OwnerObjects("Deployment", deployment, (), pods))
    assert found.headline == "Deployment q/qd: 3 pods exist, 1 more than the 2 wanted, and all of them have a node."


def read(*forbidden: tuple[str, Resource], kind: str = "Deployment") -> OwnerObjects:
    """Read a Deployment from a server that refuses some calls: verb and kind."""
    deployment = owned("Deployment", "qd", "d", {"replicas": 2})
    virtual = VirtualLoop(0)
    try:
        clock = VirtualClock(virtual)
        refusing = Faults(random.Random(0))
        for verb, resource in forbidden:
            error = refusals.failure(403, "Forbidden", f"{resource.plural} is forbidden")
            refusing.add(Fault(faults.fail(error), verb=verb, resource=resource, times=None))
        client = LocalClient(Store(clock.wall, random.Random(0)), clock, refusing)

        async def ask() -> OwnerObjects:
            made = await client.create(DEPLOYMENTS, deployment)
            status = {"status": {"replicas": 1}}
            await client.patch(DEPLOYMENTS, "qd", status, namespace=FULL, subresource="status")
            sets = [
                await client.create(REPLICA_SETS, owned("ReplicaSet", name, "", {}, by=by))
                for name, by in (("qd-1", made.uid), ("other", "x"))
            ]
            for name, owner in zip("ab", sets, strict=True):
                await client.create(PODS, pod(name, owner.uid, "n"))
            return await read_owner(client, kind, "qd", FULL)

        return virtual.run_until_complete(ask())
    finally:
        virtual.close()


def test_the_pods_of_a_deployment_are_those_of_its_replica_sets():
    found = read()
    assert [each.name for each in found.pods or ()] == ["a"]
    assert (found.gaps, [each["metadata"]["name"] for each in found.sets]) == ([], ["qd-1"])


def test_a_user_who_may_not_list_pods_is_shown_the_status_and_the_right_that_is_missing():
    found = explain_owner(read(("list", PODS), ("list", EVENTS)))
    assert found.headline == "Deployment q/qd: 1 of 2 pods exist."
    assert found.facts[-2:] == [
        "You may not list pods in namespace q, so the number of pods comes from its status, and which are pending is "
        "not known; ask for get and list on pods.",
        "You may not list events in namespace q, so only conditions tell why pods are missing; ask for get and list "
        "on events.",
    ]


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    deployment = owned("Deployment", "qd", "d", {"replicas": 3}, {"conditions": [FAILURE]})
    objects = {
        "nodes": [decoding.to_builtins(make_node("n", cpu="4"))],
        "replicaSets": [owned("ReplicaSet", "qd-1", "r", {"replicas": 3}, by="d")],
        "pods": [pod("a", "r", "n"), pod("b", "r", cpu="6")],
        "custom": {"deployments.v1.apps": [deployment]},
    }
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(objects))
    return path


def ask(snapshot: Path, *args: str) -> Result:
    return runner.invoke(app, ["explain", *args, "-n", FULL, "--snapshot", str(snapshot)], env={"COLUMNS": "160"})


def test_the_command_shows_missing_and_pending_pods(snapshot):
    result = ask(snapshot, "deploy/qd")
    assert result.exit_code == 3
    printed = result.stdout.splitlines()
    assert printed[0] == "Deployment q/qd: 2 of 3 pods exist, and 1 of them is pending."
    assert printed[1] == REFUSED
    assert "1 pod is pending: b" in printed
    assert "No node has 6 cpu: the largest is n with 4." in printed


def test_the_command_has_the_same_as_data(snapshot):
    found = json.loads(ask(snapshot, "deployment/qd", "-o", "json").stdout)
    assert (found["kind"], found["owner"], found["wanted"], found["existing"]) == ("Deployment", "q/qd", 3, 2)
    assert found["pending"][0]["explanation"]["state"] == "pending"
    assert found["remedies"][0]["command"].startswith("kubectl -n q patch resourcequota/few")


def test_a_snapshot_without_conditions_says_that_it_cannot_tell_why(snapshot):
    result = ask(snapshot, "rs/qd-1")
    assert result.exit_code == 3
    assert result.stdout.splitlines()[:2] == [
        "ReplicaSet q/qd-1: 2 of 3 pods exist, and 1 of them is pending.",
        "A snapshot has no events, and no conditions of this owner: ask the cluster why pods are missing.",
    ]


def test_a_snapshot_without_the_owner_says_what_snapshots_have(snapshot):
    result = ask(snapshot, "job/none")
    assert result.exit_code == 1
    assert "The snapshot has no Job q/none. A snapshot holds the kinds that the plugins read" in result.output
    assert ask(snapshot, "service/x").exit_code == 1


@pytest.mark.parametrize("message", ["", "exceeded quota: q", "exceeded quota: q, requested: x, used: y=?, limited: z"])
def test_other_messages_lead_to_no_proposal(message):
    assert list(quota_remedies(message, "t", 1)) == []


def test_a_quota_of_cpu_is_raised_to_what_all_missing_pods_need():
    message = "exceeded quota: q, requested: pods=1,requests.cpu=500m, used: pods=1,requests.cpu=1, "
    [remedy] = quota_remedies(message + "limited: pods=9,requests.cpu=1", "t", 3)
    assert remedy.command.endswith("""'{"spec":{"hard":{"requests.cpu":"2500m"}}}'""")


def test_an_owner_that_may_not_be_read_is_an_error_that_names_the_right():
    with pytest.raises(MoorageError, match=r"You may not get jobs in namespace q.*ask for get on jobs"):
        read(("get", JOBS), kind="Job")
    with pytest.raises(MoorageError, match="Job 'qd' does not exist in namespace 'q'"):
        read(kind="Job")
