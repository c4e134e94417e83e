"""Everything together, in the order in which it is to be created; as YAML, one stream or a folder for
kustomize.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from moorage.api import yaml_text
from moorage.app.configuration import Configuration
from moorage.config.types import LeaderElection
from moorage.manifests import rbac, workload
from moorage.manifests.options import PORT, DeployOptions
from moorage.manifests.rbac import packs

Json = dict[str, Any]


class _Dumper(yaml_text.Dumper):
    """Writes texts of several lines as blocks."""


def _text(dumper: yaml_text.Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(objects: list[Json]) -> str:
    """A stream of documents."""
    return "---\n".join(
        yaml.dump(obj, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=1000)
        for obj in objects
    )


def kustomization(folder: Path, objects: list[Json]) -> list[Path]:
    """Write a base: one file per kind and a kustomization.yaml that names them."""
    folder.mkdir(parents=True, exist_ok=True)
    by_file: dict[str, list[Json]] = {}
    for obj in objects:
        by_file.setdefault(_file(obj), []).append(obj)
    listing = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(by_file),
    }
    written = []
    for name, content in [*by_file.items(), ("kustomization.yaml", [listing])]:
        path = folder / name
        path.write_text(to_yaml(content), encoding="utf-8")
        written.append(path)
    return written


def _file(obj: Json) -> str:
    kind: str = obj["kind"]
    if "Role" in kind or kind == "ServiceAccount":
        return "rbac.yaml"
    return {"Service": "metrics.yaml", "ServiceMonitor": "metrics.yaml"}.get(kind, f"{kind.lower()}.yaml")


DEFAULT_PROFILE = "default-scheduler"
SYSTEM_SPACES = ("default", "kube-system")
"""Namespaces that exist and are not ours to label."""


def default_config(name: str) -> str:
    """For users without a configuration: the default plugins for pods that ask for this scheduler.

    Not for `default-scheduler`: beside the stock scheduler two would bind the same pods.
    """
    return (
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles:\n"
        f"- schedulerName: {name}\n"
    )


def manifests(configuration: Configuration, text: str, options: DeployOptions) -> list[Json]:
    """The objects for a configuration whose file has this text."""
    options.check()
    lease, space = lease_of(configuration.config.leader_election, options)
    found = definitions(configuration)
    found += [] if options.namespace in SYSTEM_SPACES else [workload.namespace(options)]
    found.append(rbac.service_account(options))
    found += rbac.cluster_roles(options, packs(configuration))
    if configuration.config.leader_election.leader_elect:
        found += rbac.election(options, lease, space)
    found.append(rbac.authentication_reader(options))
    found.append(workload.config_map(options, text))
    found.append(workload.deployment(options, text, arguments(configuration, options)))
    if options.replicas > 1:
        found.append(workload.disruption_budget(options))
    if options.service_monitor:
        found += workload.scraping(options)
    return found


def definitions(configuration: Configuration) -> list[Json]:
    """The CustomResourceDefinitions that the enabled plugins bring, each once."""
    classes = (configuration.registry[name] for name in rbac.enabled(configuration))
    by_name = {obj["metadata"]["name"]: dict(obj) for cls in classes for obj in cls.definitions}
    return list(by_name.values())


def warnings(configuration: Configuration, options: DeployOptions) -> list[str]:
    """What an operator should know before applying this."""
    found = []
    names = [profile.scheduler_name for profile in configuration.profiles]
    if DEFAULT_PROFILE in names:
        found.append(
            f"a profile is named {DEFAULT_PROFILE}: run this only in place of kube-scheduler, and see to it "
            f"that Moorage's own pods can be placed without Moorage (a static pod, or another scheduler)"
        )
    if not configuration.config.leader_election.leader_elect and options.replicas > 1:
        found.append(
            f"leader election is off with {options.replicas} replicas: they would bind the same pods; "
            f"set leaderElection.leaderElect or --replicas 1"
        )
    return found


def lease_of(chosen: LeaderElection, options: DeployOptions) -> tuple[str, str]:
    """(name, namespace) of the lease: the file's, or our own where the file keeps kube-scheduler's."""
    if not _is_kube_schedulers(chosen):
        return chosen.resource_name, chosen.resource_namespace
    return options.name, options.namespace


def _is_kube_schedulers(chosen: LeaderElection) -> bool:
    default = LeaderElection()
    return (chosen.resource_name, chosen.resource_namespace) == (
        default.resource_name,
        default.resource_namespace,
    )


def arguments(configuration: Configuration, options: DeployOptions) -> list[str]:
    """The command line of the container."""
    chosen = configuration.config.leader_election
    found = [
        "run",
        f"--config={workload.CONFIG_FOLDER}/{workload.CONFIG_FILE}",
        "--bind-address=$(POD_IP)",
        f"--secure-port={PORT}",
    ]
    if chosen.leader_elect and _is_kube_schedulers(chosen):
        lease, space = lease_of(chosen, options)
        found += [f"--leader-elect-resource-name={lease}", f"--leader-elect-resource-namespace={space}"]
    return found
