"""All objects for `moorage run` or `moorage extender`, in the order of their creation; as YAML, in one stream
or in a folder for kustomize."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import yaml

from moorage.api import yaml_text
from moorage.app.configuration import Configuration
from moorage.config.types import LeaderElection
from moorage.manifests import rbac, workload
from moorage.manifests.options import PORT, DeployOptions
from moorage.manifests.rbac import packs
from moorage.run.extender.options import PORT as EXTENDER_PORT
from moorage.run.extender.options import ExtenderOptions, config_block
from moorage.run.extender.selecting import ServedProfile

CLIENT_CA = f"{workload.TLS_FOLDER}/ca.crt"
"""The CA of the clients that may call the verbs of an extender."""

Json = dict[str, Any]


class _Dumper(yaml_text.Dumper):
    """Writes texts of several lines as blocks."""


def _text(dumper: yaml_text.Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(objects: list[Json]) -> str:
    """Return a stream of documents."""
    return "---\n".join(
        yaml.dump(obj, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=1000) for obj in objects
    )


def kustomization(folder: Path, objects: list[Json]) -> list[Path]:
    """Write a base: one file per kind, and a kustomization.yaml that lists them. Returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    by_file: dict[str, list[Json]] = {}
    for obj in objects:
        by_file.setdefault(_file(obj), []).append(obj)
    listing = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": list(by_file)}
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
"""Namespaces that exist in every cluster."""


def default_config(name: str) -> str:
    """Return a configuration with the default plugins for pods that ask for this scheduler.

    It does not use `default-scheduler`: beside kube-scheduler, two schedulers would bind the same pods.
    """
    return (
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles:\n"
        f"- schedulerName: {name}\n"
    )


def manifests(configuration: Configuration, text: str, options: DeployOptions) -> list[Json]:
    """Return the objects for a configuration whose file has this text."""
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
    """Return the CustomResourceDefinitions of the enabled plugins, each once."""
    classes = (configuration.registry[name] for name in rbac.enabled(configuration))
    by_name = {obj["metadata"]["name"]: dict(obj) for cls in classes for obj in cls.definitions}
    return list(by_name.values())


def warnings(configuration: Configuration, options: DeployOptions) -> list[str]:
    """Return what an operator should know before applying the objects."""
    found = []
    names = [profile.scheduler_name for profile in configuration.profiles]
    if DEFAULT_PROFILE in names:
        found.append(
            f"a profile is named {DEFAULT_PROFILE}: run this only in place of kube-scheduler, and make sure "
            f"that Moorage's own pods can be scheduled without Moorage (static pods, or another scheduler)"
        )
    if not configuration.config.leader_election.leader_elect and options.replicas > 1:
        found.append(
            f"leader election is off with {options.replicas} replicas: they would bind the same pods; "
            f"set leaderElection.leaderElect or --replicas 1"
        )
    return found


def lease_of(chosen: LeaderElection, options: DeployOptions) -> tuple[str, str]:
    """Return name and namespace of the lease: those of the file, or our own if the file keeps the defaults of
    kube-scheduler."""
    if not _is_kube_schedulers(chosen):
        return chosen.resource_name, chosen.resource_namespace
    return options.name, options.namespace


def _is_kube_schedulers(chosen: LeaderElection) -> bool:
    default = LeaderElection()
    return (chosen.resource_name, chosen.resource_namespace) == (default.resource_name, default.resource_namespace)


def arguments(configuration: Configuration, options: DeployOptions) -> list[str]:
    """Return the command line of the container."""
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


def extender_manifests(served: ServedProfile, text: str, options: DeployOptions) -> list[Json]:
    """Return the objects for an extender whose configuration file has this text. The operator creates the
    Secret `<name>-tls` with a certificate that kube-scheduler trusts."""
    options = dataclasses.replace(
        options, component="extender", port=EXTENDER_PORT, tls_secret=f"{options.name}-tls", service_monitor=False
    )
    options.check()
    found = [] if options.namespace in SYSTEM_SPACES else [workload.namespace(options)]
    found.append(rbac.service_account(options))
    found += rbac.cluster_roles(options, rbac.packs(served.configuration, rbac.READING, ()))
    found.append(workload.config_map(options, text))
    found.append(workload.deployment(options, text, _extender_arguments()))
    found.append(workload.service(options, options.name))
    if options.replicas > 1:
        found.append(workload.disruption_budget(options))
    return found


def block_of(served: ServedProfile, options: DeployOptions) -> str:
    """Return the block for the configuration of kube-scheduler."""
    url = f"https://{options.name}.{options.namespace}.svc:{EXTENDER_PORT}"
    return config_block(served, ExtenderOptions(client_ca_file=CLIENT_CA), url)


def _extender_arguments() -> list[str]:
    """Return the command line of the extender's container."""
    return [
        "extender",
        f"--config={workload.CONFIG_FOLDER}/{workload.CONFIG_FILE}",
        "--bind-address=$(POD_IP)",
        f"--port={EXTENDER_PORT}",
        f"--tls-cert-file={workload.TLS_FOLDER}/tls.crt",
        f"--tls-private-key-file={workload.TLS_FOLDER}/tls.key",
        f"--client-ca-file={CLIENT_CA}",
    ]
