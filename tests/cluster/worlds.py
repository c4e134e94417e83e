"""The cluster that a scenario runs on: a real control plane or the embedded one, seen in the same way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moorage.api.resources import EVENTS, NODES, PODS, Resource
from tests.cluster import objects
from tests.cluster.api import Api, Json, eventually
from tests.cluster.moorage_process import MoorageProcess

SCHEDULER = "moorage"


class World:
    """An API, and Moorage processes on it. `stop` ends what was started."""

    def __init__(self, kind: str, api: Api, folder: Path, kubeconfig: Path) -> None:
        self.kind = kind
        self.api = api
        self.folder = folder
        self.kubeconfig = kubeconfig
        self.processes: list[MoorageProcess] = []

    def moorage(
        self,
        *profiles: Json,
        name: str = "",
        kubeconfig: Path | None = None,
        wait: bool = True,
        arguments: tuple[str, ...] = (),
        qps: int = 1000,
        **fields: Any,
    ) -> MoorageProcess:
        """Start a replica; without profiles the default plugins under the name `moorage`."""
        chosen = profiles or ({"schedulerName": SCHEDULER},)
        connection = {"qps": qps, "burst": qps}
        config = objects.scheduler_config(*chosen, clientConnection=connection, **fields)
        name = name or f"moorage-{len(self.processes)}"
        process = MoorageProcess(self.folder, name, kubeconfig or self.kubeconfig, config, *arguments)
        self.processes.append(process)
        if wait:
            process.start_ready()
        else:
            process.start()
        return process

    def stop(self) -> None:
        for process in self.processes:
            process.stop()
        self.processes.clear()

    # Shorthands.

    def pod(self, name: str, **spec: Any) -> Json:
        return self.api.create(objects.pod(name, **{"scheduler": SCHEDULER, **spec}))

    def nodes(self, *names: str, **spec: Any) -> None:
        for name in names:
            self.api.create(objects.node(name, **spec))

    def label(self, node: str, **labels: str | None) -> None:
        self.api.patch(NODES, node, {"metadata": {"labels": labels}}, "")

    def node_of(self, name: str, namespace: str = "default") -> str:
        found = self.api.find(PODS, name, namespace)
        return found["spec"].get("nodeName", "") if found else ""

    def wait_bound(self, name: str, seconds: float = 30.0) -> str:
        return str(eventually(lambda: self.node_of(name), seconds, f"pod {name} is bound"))

    def wait_refused(self, name: str, seconds: float = 30.0) -> str:
        """The message of the condition that says why the pod waits."""
        return str(eventually(lambda: self.refusal_of(name), seconds, f"pod {name} is refused"))

    def refusal_of(self, name: str) -> str:
        found = self.api.find(PODS, name)
        for condition in (found or {}).get("status", {}).get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return str(condition.get("message", ""))
        return ""

    def events_of(self, name: str, reason: str = "") -> list[Json]:
        return [
            event
            for event in self.api.list(EVENTS)
            if event["regarding"].get("name") == name and reason in ("", event["reason"])
        ]

    def bound(self, label: str = "") -> dict[str, str]:
        """Pod → node of all bound pods."""
        query = {"labelSelector": label} if label else {}
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.api.list(PODS, **query)
            if pod["spec"].get("nodeName")
        }

    def wait_all_bound(self, count: int, seconds: float, label: str = "") -> dict[str, str]:
        eventually(lambda: len(self.bound(label)) >= count, seconds, f"{count} pods are bound")
        return self.bound(label)

    def wait_gone(self, resource: Resource, name: str, seconds: float = 30.0) -> None:
        eventually(lambda: self.api.find(resource, name) is None, seconds, f"{resource} {name} is gone")


def with_sample(scheduler: str = "sample-scheduler") -> Json:
    """The profile of the tutorial."""
    plugin = {"name": "tests.cluster.sample_plugins:Sample"}
    return {"schedulerName": scheduler, "plugins": {"filter": {"enabled": [plugin]}}}


def dump(obj: object) -> str:
    return json.dumps(obj, indent=1)[:2000]


Check = Callable[[World], None]
