"""The plugins of contrib on the embedded cluster: annotations say what pods use, kubectl makes and reads
everything, and `moorage run` schedules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from moorage.embedded.kubelet.decisions import STOP, USAGE_CPU
from tests.cluster import objects
from tests.cluster.api import eventually
from tests.cluster.moorage_process import MoorageProcess
from tests.cluster.objects import Json
from tests.contrib import scenarios
from tests.contrib.scenarios import CPUS, IDS, LOAD, MACHINES, SCENARIOS, Machine, Scenario
from tests.kubectl.cluster import Cluster
from tests.kubectl.runner import Kubectl

pytestmark = pytest.mark.slow

MEASURED = (
    "LowCpuScheduler", "TargetLoadPacking", "LoadVariationRiskBalancing", "LowRiskOverCommitment", "Peaks",
)  # fmt: skip
EVERY_SECOND = {"metricProvider": {"intervalSeconds": 1}}
TEMPERATURE = "moorage.dev/temperature-celsius"


class Embedded:
    """The embedded cluster, seen through kubectl; implements `scenarios.Cluster`."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl

    def create(self, *items: Json) -> None:
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        self.kubectl("apply", "-f", "-", stdin=manifest)

    def wait_bound(self, name: str) -> str:
        return self._read(name, "{.spec.nodeName}")

    def wait_refused(self, name: str) -> str:
        return self._read(name, '{.status.conditions[?(@.type=="PodScheduled")].message}')

    def calm(self, machine: Machine) -> None:
        if machine.temperature is None:
            self.use(machine, 0)
        else:
            self.kubectl("annotate", "--overwrite", "node", machine.name, f"{TEMPERATURE}=20")

    def use(self, machine: Machine, percent: int) -> None:
        """What the pod of the node uses from now on."""
        pod = LOAD + machine.name
        self.kubectl("annotate", "--overwrite", "pod", pod, f"{USAGE_CPU}={usage(percent)}")

    def _read(self, name: str, path: str) -> str:
        return self.kubectl.until(bool, "get", "pod", name, "-o", f"jsonpath={path}")


@pytest.fixture(scope="module")
def embedded(programs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """With all scenarios, and a scheduler that has measured what is used."""
    home = tmp_path_factory.mktemp("contrib")
    cluster = Cluster(home / "kubeconfig")
    cluster.start()
    made = Embedded(Kubectl(programs[0], cluster.kubeconfig, home))
    profiles = scenarios.profiles(dict.fromkeys(MEASURED, EVERY_SECOND))
    config = objects.scheduler_config(*profiles, leaderElection={"leaderElect": False})
    process = MoorageProcess(home, "contrib", cluster.kubeconfig, config)
    try:
        make_world(made)
        process.start_ready()
        let_usage_vary(made, process)
        yield made
    finally:
        process.stop()
        cluster.stop()


def make_world(embedded: Embedded) -> None:
    kubectl, loads = embedded.kubectl, [pod for machine in MACHINES if (pod := annotated(machine))]
    embedded.create(*scenarios.NODES, scenarios.QUEUE_NODE, *loads, *scenarios.queued())
    for machine in MACHINES:
        if machine.temperature is not None:
            kubectl("annotate", "node", machine.name, f"{TEMPERATURE}={machine.temperature}")
    running = [f"pod/{pod['metadata']['name']}" for pod in loads]
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", *running, "--timeout=20s")
    kubectl("delete", "--wait=false", *(f"pod/{LOAD}{m.name}" for m in MACHINES if m.leaving))


def annotated(machine: Machine) -> Json | None:
    """The pod of a node, and what the kubelets have to know of it."""
    pod = machine.load()
    if pod is not None:
        pod["metadata"]["annotations"] = {USAGE_CPU: usage(machine.used - machine.deviation), STOP: "300"}
    return pod


def usage(percent: int) -> str:
    return f"{percent * CPUS * 10}m"


def let_usage_vary(embedded: Embedded, process: MoorageProcess) -> None:
    """Some of it is measured before, some after."""
    wait_for_measurements(embedded.kubectl, process)
    for machine in MACHINES:
        if machine.deviation:
            embedded.use(machine, machine.used + machine.deviation)
    wait_for_measurements(embedded.kubectl, process)


def wait_for_measurements(kubectl: Kubectl, process: MoorageProcess) -> None:
    """Two: one may have begun before."""
    token = yaml.safe_load(kubectl("config", "view", "--raw"))["users"][0]["user"]["token"]

    def measured() -> float:
        return process.metric("moorage_usage_refreshes_total", token, result="success")

    before = measured()
    eventually(lambda: measured() >= before + 2, 30, "usage is measured")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=IDS)
def test_a_pod_goes_where_the_plugin_says_and_elsewhere_without_it(embedded: Embedded, scenario: Scenario) -> None:
    scenario.check(embedded)


def test_qos_sort_takes_pods_of_a_better_class_first(embedded: Embedded) -> None:
    scenarios.check_queue(embedded)
