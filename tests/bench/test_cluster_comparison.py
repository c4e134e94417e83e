"""`moorage bench cluster` on a store in memory: what it creates, measures, keeps and deletes."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moorage.api.errors import MoorageError
from moorage.api.resources import NAMESPACES, NODES, PODS, PRIORITY_CLASSES, Resource
from moorage.app.clock import SystemClock
from moorage.bench.cluster.bed import LABEL, MEASURED, ClusterBed
from moorage.bench.cluster.ceiling import bind_all
from moorage.bench.cluster.comparison import SchedulerComparison, planned
from moorage.bench.cluster.results import ResultsFile
from moorage.bench.cluster.schedulers import SchedulerProcess, child_kubeconfig, parse_beside
from moorage.bench.cluster.workloads import ClusterWorkload, read_workloads
from moorage.store.local import LocalClient
from moorage.store.store import Store

SLEEPING = parse_beside(f"sleeping={sys.executable} -c 'import time; time.sleep(60)'")
ENDING = parse_beside(f"ending={sys.executable} -c 'print(\"no lease\"); raise SystemExit(3)'")


class Cluster:
    """A store without controllers, as an API server of its own is."""

    def __init__(self) -> None:
        self.store = Store(SystemClock.wall, Random(0))
        self.client = LocalClient(self.store, SystemClock())
        self.bed = ClusterBed(self.client, "test")

    def listed(self, resource: Resource) -> list[Any]:
        return [stored.typed for stored in self.store.list(resource).items]

    def names(self, resource: Resource) -> list[str]:
        return sorted(found.name for found in self.listed(resource))

    def comparison(self, folder: Path, timeout: float = 30.0) -> SchedulerComparison:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.touch()
        return SchedulerComparison(self.client, self.bed, kubeconfig, folder, ResultsFile(folder / "out"), timeout)


def workload(name: str, nodes: int = 4, pods: int = 6) -> ClusterWorkload:
    [found] = read_workloads(params={"nodes": nodes, "pods": pods}, names=[name])
    return found


def pod_specs(cluster: Cluster) -> list[Any]:
    return [pod.spec for pod in cluster.listed(PODS)]


def test_a_cluster_with_other_nodes_is_refused_and_not_changed() -> None:
    async def main() -> None:
        cluster = Cluster()
        cluster.store.create(NODES, {"metadata": {"name": "production"}})
        with pytest.raises(MoorageError, match=r"1 nodes that this command did not create \(production\).*--force"):
            await cluster.bed.begin(force=False)
        assert cluster.names(NODES) == ["production"]
        assert not cluster.names(NAMESPACES)
        await cluster.bed.begin(force=True)
        await cluster.bed.prepare(workload("plain"))
        await cluster.bed.remove()
        assert cluster.names(NODES) == ["production"]

    asyncio.run(main())


def test_the_remains_of_a_killed_run_are_deleted_first_and_nothing_else() -> None:
    async def main() -> None:
        cluster = Cluster()
        cluster.store.create(NAMESPACES, {"metadata": {"name": "team"}})
        cluster.store.create(PODS, {"metadata": {"name": "other", "namespace": "team"}})
        killed = ClusterBed(cluster.client, "killed")
        await killed.begin(force=False)
        await killed.prepare(workload("preemption"))
        assert len(cluster.names(PODS)) == 17
        await cluster.bed.begin(force=False)
        assert cluster.names(PODS) == ["other"]
        assert not cluster.names(NODES)
        assert not cluster.names(PRIORITY_CLASSES)
        await cluster.bed.remove()
        assert "team" in cluster.names(NAMESPACES)

    asyncio.run(main())


def test_prepared_pods_are_bound_and_only_missing_ones_are_created_again() -> None:
    async def main() -> None:
        cluster = Cluster()
        await cluster.bed.begin(force=False)
        wanted = workload("preemption")
        await cluster.bed.prepare(wanted)
        before = {pod.name: pod.uid for pod in cluster.listed(PODS)}
        assert sorted(spec.node_name for spec in pod_specs(cluster)) == sorted(cluster.names(NODES) * 4)
        victim = cluster.listed(PODS)[0]
        cluster.store.delete(PODS, victim.name, namespace=victim.namespace, grace_period=0)
        await cluster.bed.create_pods(wanted.steps[-1], MEASURED)
        await cluster.bed.prepare(wanted)
        after = {pod.name: pod.uid for pod in cluster.listed(PODS)}
        assert after.keys() == before.keys()
        assert [name for name in after if after[name] != before[name]] == [victim.name]
        await cluster.bed.prepare(workload("plain"))
        assert not cluster.names(PODS)

    asyncio.run(main())


def test_pods_get_the_names_of_this_run(tmp_path) -> None:
    term = "{topologyKey: zone, namespaces: [sched-0], labelSelector: {}}"
    (tmp_path / "pod.yaml").write_text(
        "spec: {priority: 10, containers: [{name: c, image: pause}], affinity: {podAffinity: "
        f"{{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}}}"
    )
    file = tmp_path / "config.yaml"
    file.write_text("""
    - name: Case
      workloadTemplate:
        - {opcode: createNodes, count: 1, uniqueNodeLabelStrategy: {labelKey: slot}}
        - {opcode: createNamespaces, prefix: sched, count: 1}
        - {opcode: createPods, count: 2, collectMetrics: true, namespace: sched-0, podTemplatePath: pod.yaml}
      workloads: [{name: small}]
    """)

    async def main() -> None:
        cluster, [read] = Cluster(), read_workloads(file)
        await cluster.bed.begin(force=False)
        await cluster.bed.prepare(read)
        await cluster.bed.create_pods(read.steps[-1], MEASURED)
        pod = cluster.listed(PODS)[0]
        assert pod.namespace == "moorage-bench-test-sched-0"
        assert pod.spec.scheduler_name == "moorage-bench-test"
        assert pod.spec.priority_class_name == cluster.names(PRIORITY_CLASSES)[0] == "moorage-bench-test-priority-10"
        [found] = pod.spec.affinity.pod_affinity.required_during_scheduling_ignored_during_execution
        assert list(found.namespaces) == ["moorage-bench-test-sched-0"]
        assert cluster.listed(NODES)[0].labels["slot"] == "0"

    asyncio.run(main())


async def measured(
    cluster: Cluster, comparison: SchedulerComparison, wanted: ClusterWorkload, rounds: int
) -> list[Any]:
    """Run the comparison, with a scheduler that binds everything."""

    async def bind() -> None:
        while True:
            if cluster.names(NODES):
                await bind_all(cluster.client)
            await asyncio.sleep(0.05)

    found: list[Any] = []
    binding = asyncio.create_task(bind())
    await comparison.run(list(planned([wanted], rounds, [SLEEPING])), found.append)
    binding.cancel()
    return found


def test_each_measurement_is_written_and_a_second_run_makes_only_the_missing_ones(tmp_path) -> None:
    async def main() -> None:
        cluster, wanted = Cluster(), workload("many-pending")
        await cluster.bed.begin(force=False)
        [first] = await measured(cluster, cluster.comparison(tmp_path), wanted, 1)
        assert (first.scheduler, first.round, first.nodes, first.pods) == ("sleeping", 0, 4, 6)
        assert first.pods_per_second > 0
        assert first.start_seconds > 0
        assert first.peak_mb > 1
        assert sum(not spec.node_name for spec in pod_specs(cluster)) == 6, "pods that fit nowhere stay pending"
        [second] = await measured(cluster, cluster.comparison(tmp_path), wanted, 2)
        assert second.round == 1
        assert (tmp_path / "out" / "results.jsonl").read_text().count("\n") == 2
        assert (tmp_path / "out" / "logs" / "many-pending-1-sleeping.log").exists()

    asyncio.run(main())


def spying(monkeypatch: pytest.MonkeyPatch) -> list[SchedulerProcess]:
    """Collect the processes that are started."""
    started: list[SchedulerProcess] = []
    start: Callable[[SchedulerProcess], None] = SchedulerProcess.start

    def spy(process: SchedulerProcess) -> None:
        start(process)
        started.append(process)

    monkeypatch.setattr(SchedulerProcess, "start", spy)
    return started


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        (SLEEPING, "sleeping has bound 0 of 6 pods of plain in 0.5 s.*--timeout"),
        (ENDING, "(?s)ending ended with exit code 3.*no lease"),
        (parse_beside("absent=/none/such"), r"Cannot start absent \(/none/such\): No such file"),
    ],
)
def test_a_scheduler_that_does_not_bind_is_reported_and_ended(tmp_path, monkeypatch, scheduler, message) -> None:
    started = spying(monkeypatch)

    async def main() -> None:
        cluster = Cluster()
        await cluster.bed.begin(force=False)
        comparison = cluster.comparison(tmp_path, timeout=0.5 if scheduler is SLEEPING else 20)
        with pytest.raises(MoorageError, match=message):
            await comparison.measure(workload("plain"), 0, scheduler)

    asyncio.run(main())
    for process in started:
        with pytest.raises(MoorageError, match="exit code"):
            process.check()


def test_a_cancelled_measurement_ends_its_process_and_everything_is_deleted(tmp_path, monkeypatch) -> None:
    started = spying(monkeypatch)

    async def main() -> None:
        cluster = Cluster()
        await cluster.bed.begin(force=False)
        task = asyncio.create_task(cluster.comparison(tmp_path).measure(workload("plain"), 0, SLEEPING))
        while not started:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await cluster.bed.remove()
        assert not cluster.names(NODES)
        assert not cluster.names(PODS)

    asyncio.run(main())
    with pytest.raises(MoorageError, match="exit code -15"):
        started[0].check()


def test_churn_and_barriers_run_with_the_scheduler(tmp_path) -> None:
    (tmp_path / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {generateName: churn-}\nspec: {containers: [{name: c, image: pause}]}"
    )
    file = tmp_path / "config.yaml"
    file.write_text("""
    - name: Case
      workloadTemplate:
        - {opcode: createNodes, count: 2}
        - {opcode: churn, mode: recreate, number: 2, intervalMilliseconds: 1, templatePaths: [pod.yaml]}
        - {opcode: createPods, count: 3, skipWaitToCompletion: true, namespace: first}
        - {opcode: barrier, namespaces: [first]}
        - {opcode: createPods, count: 2, collectMetrics: true}
      workloads: [{name: small}]
    """)

    async def main() -> None:
        cluster, [wanted] = Cluster(), read_workloads(file)
        await cluster.bed.begin(force=False)
        measuring = asyncio.create_task(cluster.comparison(tmp_path).measure(wanted, 0, SLEEPING))
        seen: set[str] = set()
        while not measuring.done():
            await asyncio.sleep(0.05)
            pods = cluster.listed(PODS)
            seen |= {pod.name for pod in pods if pod.name.startswith("churn")}
            for pod in pods:
                is_last = pod.labels[LABEL] == MEASURED and pod.name.endswith("-1")
                if not pod.spec.node_name and pod.name not in seen and (len(seen) > 2 or not is_last):
                    await cluster.client.bind(pod.name, pod.namespace, pod.uid, cluster.names(NODES)[0])
        assert (await measuring).pods == 2
        assert len(seen) > 2, "objects of a churn are deleted and created again"

    asyncio.run(main())


def test_words_in_a_command_are_replaced_after_it_is_split() -> None:
    command = parse_beside("kube=/bin/kube --config={config} '--name=a b' --secure-port={port}")
    found = command.arguments(kubeconfig="/k", config="/with space/c", port=1)
    assert found == ["/bin/kube", "--config=/with space/c", "--name=a b", "--secure-port=1"]


@pytest.mark.parametrize("text", ["kube", "Kube=x", "=x", "kube=", "moorage=x", "ceiling=x", "k=x {other}", "k='x"])
def test_a_command_that_cannot_be_used_is_refused(text) -> None:
    with pytest.raises(MoorageError, match="--beside"):
        parse_beside(text)


def test_a_context_is_chosen_in_a_private_copy(tmp_path) -> None:
    mine = tmp_path / "config"
    mine.write_text("""
    {current-context: a, clusters: [{name: c, cluster: {server: "https://x", certificate-authority: ca.crt}}],
     users: [{name: u, user: {token: t}}]}
    """)
    assert child_kubeconfig(str(mine), "", tmp_path) == mine
    copy = child_kubeconfig(str(mine), "b", tmp_path)
    assert "current-context: b" in copy.read_text()
    assert str(tmp_path / "ca.crt") in copy.read_text()
    assert copy.stat().st_mode & 0o077 == 0
    with pytest.raises(MoorageError, match="not a kubeconfig file"):
        child_kubeconfig(str(tmp_path / "none"), "", tmp_path)


def test_the_label_marks_everything() -> None:
    async def main() -> None:
        cluster = Cluster()
        await cluster.bed.begin(force=False)
        await cluster.bed.prepare(workload("start-filled"))
        for resource in (NODES, PODS, NAMESPACES):
            assert all(LABEL in found.labels for found in cluster.listed(resource)), resource

    asyncio.run(main())
