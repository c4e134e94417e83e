"""`moorage explain` on a cluster that kube-scheduler runs and that has never heard of Moorage: its reasons
are kube-scheduler's, its first remedy works, and it writes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.api import decoding
from moorage.api.resources import NODES, PODS
from moorage.app.configuration import configure
from moorage.app.offline import question_engine
from moorage.explain.explanation import Explanation, explain
from moorage.explain.judging import Judge, find_pod
from moorage.explain.trying import Remedy
from moorage.snapshots.cluster import read_cluster
from tests.cluster import objects
from tests.cluster.api import Api, ApiProblem, Json, eventually
from tests.cluster.controlplane import ControlPlane
from tests.cluster.pod_mix import Mix
from tests.cluster.test_differential import all_bound, refused, start

WANTED = 200
MOST = 1500
SEED = int(os.environ.get("MOORAGE_EXPLAIN_SEED", "7"))
CONFIG = objects.scheduler_config(percentageOfNodesToScore=100)
USER = "system:serviceaccount:default:reader"
READS = ("list", "get")


def reader(plane: ControlPlane, *verbs: str) -> Path:
    """A kubeconfig that may list and what is named, and nothing else."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}
    plane.api.apply({**account, "metadata": {"name": "reader", "namespace": "default"}})
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", *verbs]}]
    plane.api.apply(
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "may-list"}, "rules": rules}
    )
    plane.api.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "may-list"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "may-list"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
        }
    )
    return plane.kubeconfig("reader", token=plane.token("reader", "default"))


def ask(kubeconfig: Path, name: str, namespace: str) -> Explanation:
    async def answer() -> Explanation:
        configured = configure(discover=False)
        cluster = await read_cluster(configured.resources(), str(kubeconfig))
        engine = question_engine(configured, cluster.changes())
        pod = find_pod(engine, name, namespace)
        return await explain(Judge.of(engine, pod), pod)

    return asyncio.run(answer())


def is_created(api: Api, obj: Json) -> bool:
    """False: one of this name is still on its way out."""
    try:
        api.create(obj)
    except ApiProblem as problem:
        if problem.status != 409:
            raise
        return False
    return True


def decided(api: Api, meta: Json) -> Json:
    """The pod when kube-scheduler has placed or refused it."""
    deadline = time.monotonic() + 60
    while True:
        pod = api.get(PODS, meta["name"], meta["namespace"])
        if pod["spec"].get("nodeName") or refused(pod):
            return pod
        assert time.monotonic() < deadline, f"kube-scheduler said nothing about {meta['name']}"
        time.sleep(0.01)


def message_of(pod: Json) -> str:
    """Empty where the pod has a node: an event that was late may have led to one."""
    return next(str(c.get("message", "")) for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")


def both(api: Api, kubeconfig: Path, meta: Json) -> tuple[Explanation, str]:
    """What is explained, and what kube-scheduler says."""
    answer = ask(kubeconfig, meta["name"], meta["namespace"])
    return answer, message_of(api.get(PODS, meta["name"], meta["namespace"]))


def is_helped(api: Api, pod: Json, remedy: Remedy) -> bool:
    """Whether kube-scheduler places the pod once the remedy is applied. Afterwards all is as before, but for
    pods that were deleted."""
    before = {}
    for resource, old, new in remedy.changes:
        if resource == PODS:
            api.delete(PODS, old.name, old.namespace, now=True)
        elif old is None:
            api.create(_manifest(new))
        else:
            before[old.name] = api.get(NODES, old.name)
            api.patch(NODES, old.name, _patch(old, new))
    spec = pod["spec"] if remedy.pod is None else decoding.to_builtins(remedy.pod)["spec"]
    meta = {"name": pod["metadata"]["name"] + "-again", "namespace": pod["metadata"]["namespace"]}
    meta["labels"] = pod["metadata"].get("labels", {})
    made = api.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _as_written(spec)})
    # The pod may reach kube-scheduler before the change of the node does, which then wakes it.
    deadline = time.monotonic() + 20
    while not (placed := "nodeName" in decided(api, made["metadata"])["spec"]):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    api.delete(PODS, meta["name"], meta["namespace"], now=True)
    for resource, old, new in remedy.changes:
        if resource == NODES and old is None:
            api.delete(NODES, new.name)
        elif resource == NODES:
            api.patch(NODES, old.name, _patch(new, old))
    return placed


def _as_written(value: Any) -> Any:
    """Without the keys that the API server has merged into selectors, and would refuse to merge again."""
    if isinstance(value, dict):
        return {key: _as_written(item) for key, item in value.items() if key != "matchLabelKeys"}
    return [_as_written(item) for item in value] if isinstance(value, list) else value


def _manifest(obj: Any) -> Json:
    made = decoding.to_builtins(obj)
    meta = {"name": obj.name, "labels": dict(obj.labels)}
    return {**made, "apiVersion": "v1", "kind": "Node", "metadata": meta}


def _patch(old: Any, new: Any) -> Json:
    """What differs, as a merge patch: labels, taints, the cordon."""
    gone = {key: None for key in old.labels if key not in new.labels}
    taints = [msgspec.to_builtins(taint) for taint in new.taints]
    return {
        "metadata": {"labels": {**gone, **new.labels}},
        "spec": {"taints": taints or None, "unschedulable": new.unschedulable or None},
    }


def test_200_pending_pods_are_explained_in_kube_schedulers_words_and_their_first_remedy_works(
    plane: ControlPlane, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mix, api = Mix(SEED), plane.api
    api.create_all(mix.nodes())
    for obj in mix.others():
        eventually(partial(is_created, api, obj), 60, f"{obj['kind']} of an earlier test is gone")
    eventually(lambda: all_bound(api), 60, "static claims are bound")
    kubeconfig = reader(plane)
    kube = plane.start_kube_scheduler(CONFIG)
    seen: Counter[str] = Counter()
    faults: list[str] = []
    try:
        for number in range(MOST):
            if seen["pending"] >= WANTED:
                break
            needed, wanted = mix.pod(number)
            for obj in needed:
                api.create(obj)
            pod = decided(api, api.create(wanted)["metadata"])
            meta = pod["metadata"]
            if pod["spec"].get("nodeName"):
                start(api, meta["name"], meta["namespace"], number)
                continue
            if pod["status"].get("nominatedNodeName") or "not found" in message_of(pod):
                api.delete(PODS, meta["name"], meta["namespace"], now=True)
                continue
            seen["pending"] += 1
            answer, said = both(api, kubeconfig, meta)
            if answer.message != said:
                # The node that was just cordoned again may have reached kube-scheduler after the pod did.
                time.sleep(1.0)
                api.delete(PODS, meta["name"], meta["namespace"], now=True)
                if "nodeName" in decided(api, api.create(wanted)["metadata"])["spec"]:
                    start(api, meta["name"], meta["namespace"], number)
                    seen["pending"] -= 1
                    continue
                answer, said = both(api, kubeconfig, meta)
            if answer.message != said:
                faults.append(f"{meta['name']}:\n    kube:    {said}\n    explain: {answer.message}")
            if seen["pending"] == 1:
                _check_command(kubeconfig, meta, said, tmp_path)
            api.delete(PODS, meta["name"], meta["namespace"], now=True)
            if answer.remedies and answer.remedies[0].nodes:
                seen["remedied"] += 1
                if not is_helped(api, pod, answer.remedies[0]):
                    faults.append(f"{meta['name']}: {answer.remedies[0].text!r} did not help: {said}")
    finally:
        kube.stop()
    with capsys.disabled():
        print(f"\n  seed {SEED}: {dict(sorted(seen.items()))}")
    assert not faults, f"seed {SEED}: {len(faults)} differences\n" + "\n".join(faults[:30])
    assert seen["pending"] == WANTED, seen
    assert seen["remedied"] > WANTED // 2, seen
    calls = plane.calls(USER)
    assert len(calls) > WANTED
    assert {call.verb for call in calls} <= set(READS), "a command has written"


def _check_command(kubeconfig: Path, meta: Json, said: str, folder: Path) -> None:
    """The command gives the same explanation, from the live cluster and from a snapshot of it."""
    file = folder / "cluster.json.gz"
    moorage = [sys.executable, "-m", "moorage"]
    where = ["--kubeconfig", str(kubeconfig)]
    subprocess.run([*moorage, "snapshot", str(file), *where], check=True, timeout=60)
    for source in (where, ["--snapshot", str(file)]):
        command = [*moorage, "explain", f"pod/{meta['name']}", "-n", meta["namespace"], "-o", "json", *source]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 3, done.stderr
        assert json.loads(done.stdout)["message"] == said
