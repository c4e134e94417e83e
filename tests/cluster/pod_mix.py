"""A seeded world and pods with every kind of constraint, for the comparison with kube-scheduler."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.cluster import objects

Json = dict[str, Any]
ZONE, HOST, RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack"
ZONES = ("a", "b", "c")
APPS = ("web", "db", "cache", "batch")
GPU = "example.com/gpu"
SPACES = {"default": {}, "blue": {"team": "blue"}, "green": {"team": "green"}}
PRIORITIES = {"low": 10, "mid": 100, "high": 1000}
IMAGES = {f"registry.example/{app}:1": (90 + 230 * i) * 1024 * 1024 for i, app in enumerate(APPS)}
"""One size everywhere: where nodes disagree, kube-scheduler takes the size that it happened to see first."""
CSI = "csi.example.com"
LARGE = ({"cpu": "5"}, {"memory": "12Gi"}, {"cpu": "20"})
NODES = 24


class Mix:
    """`world` once, then `pod(i)` in order; claims of a pod come with it."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._claims = 0

    # The world.

    def nodes(self) -> list[Json]:
        return [self._node(number) for number in range(NODES)]

    def _node(self, number: int) -> Json:
        draw = self._draw
        labels = {RACK: f"r{number % 8}", "size": draw.choice(["small", "large"]), "rank": str(number)}
        if number % 11:
            labels[ZONE] = ZONES[number % 3]
        if draw.random() < 0.5:
            labels["disk"] = draw.choice(["ssd", "hdd"])
        taints = []
        if number % 7 == 3:
            taints.append({"key": "dedicated", "value": "batch", "effect": "NoSchedule"})
        if number % 5 == 2:
            taints.append({"key": "slow", "effect": "PreferNoSchedule"})
        return objects.node(
            f"n-{number:02}",
            cpu=draw.choice(["4", "6", "8"]),
            memory=draw.choice(["8Gi", "16Gi", "24Gi"]),
            pods=draw.choice(["16", "30"]),
            labels=labels,
            taints=taints,
            unschedulable=number == 5,
            images=[{"names": [image], "sizeBytes": size} for image, size in IMAGES.items() if draw.random() < 0.4],
            extended={GPU: "2"} if number % 6 == 1 else None,
        )

    def others(self) -> list[Json]:
        """Namespaces, priorities, services, storage."""
        found = [objects.namespace(name, labels) for name, labels in SPACES.items() if labels]
        found += [objects.priority_class(name, value) for name, value in PRIORITIES.items()]
        found.append(objects.priority_class("patient", 500, "Never"))
        found += [objects.service(app, {"app": app}) for app in APPS[:2]]
        found.append(objects.storage_class("local"))
        found.append(objects.storage_class("static", mode="Immediate"))
        found += [objects.volume(f"local-{i:02}", f"n-{i % NODES:02}", "local") for i in range(NODES)]
        found += [self._zonal_volume(f"zonal-{i}", ZONES[i % 3]) for i in range(6)]
        found += [objects.claim(f"zonal-{i}", "static", "1Gi") for i in range(6)]
        found += [
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": f"n-{i:02}"},
                "spec": {"drivers": [{"name": CSI, "nodeID": f"n-{i:02}", "allocatable": {"count": 1}}]},
            }
            for i in range(0, NODES, 2)
        ]
        found += [self._csi_volume(i) for i in range(16)]
        found += [objects.claim(f"csi-{i:02}", "static", "3Gi") | {} for i in range(16)]
        for obj in found:
            if obj["kind"] == "PersistentVolumeClaim":
                obj["spec"]["volumeName"] = obj["metadata"]["name"]
        return found

    def _zonal_volume(self, name: str, zone: str) -> Json:
        made = objects.volume(name, "", "static", "2Gi")
        made["metadata"]["labels"] = {ZONE: zone}
        made["spec"].pop("nodeAffinity")
        made["spec"].pop("local")
        made["spec"]["hostPath"] = {"path": f"/mnt/{name}"}
        return made

    def _csi_volume(self, number: int) -> Json:
        made = self._zonal_volume(f"csi-{number:02}", ZONES[0])
        made["metadata"].pop("labels")
        made["spec"].pop("hostPath")
        made["spec"]["capacity"] = {"storage": "4Gi"}
        made["spec"]["csi"] = {"driver": CSI, "volumeHandle": f"handle-{number}"}
        return made

    # Pods.

    def pod(self, number: int) -> tuple[list[Json], Json]:
        """(objects that it needs, the pod)."""
        draw = self._draw
        app = draw.choice(APPS)
        pod = objects.pod(
            f"p-{number:03}",
            labels={"app": app, "tier": draw.choice(["front", "back"])},
            image=f"registry.example/{app}:1",
            requests=self._requests(),
        )
        pod["metadata"]["namespace"] = draw.choice(list(SPACES))
        needed: list[Json] = []
        for make in draw.sample(KINDS, draw.choice([0, 1, 1, 1, 2, 2, 3])):
            needed += make(self, pod) or []
        if "resources" in pod["spec"] and pod["spec"]["containers"][0]["resources"]["requests"] in LARGE:
            del pod["spec"]["resources"]  # less than its containers ask for: not a valid pod
        return needed, pod

    def _requests(self) -> dict[str, str]:
        draw = self._draw
        found = {}
        if draw.random() < 0.9:
            found["cpu"] = draw.choice(["50m", "100m", "250m", "500m", "1", "1500m", "3"])
        if draw.random() < 0.8:
            found["memory"] = draw.choice(["64Mi", "256Mi", "512Mi", "1Gi", "3Gi"])
        return found

    def selector(self, pod: Json) -> None:
        pod["spec"]["nodeSelector"] = self._draw.choice([{"size": "large"}, {"disk": "ssd"}, {ZONE: "b"}])

    def node_affinity(self, pod: Json) -> None:
        draw = self._draw
        terms: list[Json] = [
            {"matchExpressions": [{"key": ZONE, "operator": "In", "values": draw.sample(ZONES, 2)}]},
            {"matchExpressions": [{"key": "rank", "operator": draw.choice(["Gt", "Lt"]), "values": ["11"]}]},
            {"matchExpressions": [{"key": "disk", "operator": draw.choice(["Exists", "DoesNotExist"])}]},
            {"matchExpressions": [{"key": "size", "operator": "NotIn", "values": ["small"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n-{draw.randrange(30):02}"]}]},
        ]
        affinity: Json = {}
        if draw.random() < 0.6:
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
                "nodeSelectorTerms": draw.sample(terms, draw.choice([1, 1, 2]))
            }
        if draw.random() < 0.7:
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": draw.randrange(1, 100), "preference": draw.choice(terms[:4])} for _ in range(2)
            ]
        pod["spec"].setdefault("affinity", {})["nodeAffinity"] = affinity

    def tolerations(self, pod: Json) -> None:
        pod["spec"]["tolerations"] = self._draw.choice(
            [
                [{"operator": "Exists"}],
                [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}],
                [{"key": "slow", "operator": "Exists"}],
                [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}],
            ]
        )

    def spread(self, pod: Json) -> None:
        draw = self._draw
        labels = pod["metadata"]["labels"]
        pod["spec"]["topologySpreadConstraints"] = [
            self._constraint(key, labels) for key in draw.sample([ZONE, HOST, RACK], draw.choice([1, 2]))
        ]

    def _constraint(self, key: str, labels: dict[str, str]) -> Json:
        draw = self._draw
        when = draw.choice(["DoNotSchedule", "ScheduleAnyway"])
        found: Json = {
            "maxSkew": draw.choice([1, 1, 2, 5]),
            "topologyKey": key,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": labels["app"]}},
        }
        if when == "DoNotSchedule" and draw.random() < 0.2:
            found["minDomains"] = draw.choice([2, 4])
        if draw.random() < 0.3:
            found["nodeTaintsPolicy"] = draw.choice(["Honor", "Ignore"])
        if draw.random() < 0.3:
            found["nodeAffinityPolicy"] = draw.choice(["Honor", "Ignore"])
        if draw.random() < 0.2:
            found["matchLabelKeys"] = ["tier"]
        return found

    def pod_affinity(self, pod: Json) -> None:
        pod["spec"].setdefault("affinity", {})["podAffinity"] = self._near(pod, required=0.4)

    def pod_anti_affinity(self, pod: Json) -> None:
        pod["spec"].setdefault("affinity", {})["podAntiAffinity"] = self._near(pod, required=0.5)

    def _near(self, pod: Json, required: float) -> Json:
        draw = self._draw
        found: Json = {}
        if draw.random() < required:
            found["requiredDuringSchedulingIgnoredDuringExecution"] = [self._term(pod)]
        if not found or draw.random() < 0.5:
            found["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": draw.randrange(1, 100), "podAffinityTerm": self._term(pod)}
            ]
        return found

    def _term(self, pod: Json) -> Json:
        draw = self._draw
        term: Json = {
            "topologyKey": draw.choice([ZONE, HOST, RACK]),
            "labelSelector": {"matchLabels": {"app": draw.choice([pod["metadata"]["labels"]["app"], "db"])}},
        }
        match draw.randrange(5):
            case 0:
                term["namespaces"] = draw.sample(sorted(SPACES), 2)
            case 1:
                term["namespaceSelector"] = draw.choice([{}, {"matchLabels": {"team": "blue"}}])
            case 2:
                term["matchLabelKeys"] = ["tier"]
        return term

    def port(self, pod: Json) -> None:
        draw = self._draw
        port = {"containerPort": 80, "hostPort": draw.choice([8080, 8081]), "protocol": "TCP"}
        if draw.random() < 0.3:
            port["hostIP"] = "127.0.0.1"
        pod["spec"]["containers"][0]["ports"] = [port]

    def gpu(self, pod: Json) -> None:
        resources = pod["spec"]["containers"][0]["resources"]
        resources["requests"] = {**resources["requests"], GPU: "1"}
        resources["limits"] = {GPU: "1"}

    def init_containers(self, pod: Json) -> None:
        draw = self._draw
        first = {"name": "init", "image": draw.choice(list(IMAGES)), "resources": {"requests": {"cpu": "1200m"}}}
        side = {
            "name": "side",
            "image": draw.choice(list(IMAGES)),
            "restartPolicy": "Always",
            "resources": {"requests": {"cpu": "200m", "memory": "100Mi"}},
        }
        pod["spec"]["initContainers"] = draw.choice([[first], [side], [side, first]])

    def pod_level_resources(self, pod: Json) -> None:
        amounts = {"cpu": "3500m", "memory": "4Gi"}
        pod["spec"]["resources"] = {"requests": amounts, "limits": amounts}

    def priority(self, pod: Json) -> None:
        pod["spec"]["priorityClassName"] = self._draw.choice([*PRIORITIES, "high", "patient"])

    def large(self, pod: Json) -> None:
        pod["spec"]["containers"][0]["resources"] = {"requests": dict(self._draw.choice(LARGE))}

    def local_claim(self, pod: Json) -> list[Json]:
        self._claims += 1
        made = objects.claim(f"claim-{self._claims}", "local")
        made["metadata"]["namespace"] = pod["metadata"]["namespace"]
        pod["spec"]["volumes"] = objects.uses_claim(made["metadata"]["name"])
        return [made]

    def bound_claim(self, pod: Json) -> None:
        draw = self._draw
        name = draw.choice([*(f"zonal-{i}" for i in range(6)), *(f"csi-{i:02}" for i in range(16))])
        pod["metadata"]["namespace"] = "default"
        pod["spec"]["volumes"] = objects.uses_claim(name)

    def missing_claim(self, pod: Json) -> None:
        if self._draw.random() < 0.3:
            pod["spec"]["volumes"] = objects.uses_claim("nowhere")


KINDS: tuple[Callable[[Mix, Json], list[Json] | None], ...] = (
    Mix.selector,
    Mix.node_affinity,
    Mix.node_affinity,
    Mix.tolerations,
    Mix.spread,
    Mix.spread,
    Mix.pod_affinity,
    Mix.pod_anti_affinity,
    Mix.port,
    Mix.gpu,
    Mix.init_containers,
    Mix.pod_level_resources,
    Mix.priority,
    Mix.priority,
    Mix.large,
    Mix.local_claim,
    Mix.bound_claim,
    Mix.missing_claim,
)
