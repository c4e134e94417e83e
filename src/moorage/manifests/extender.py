"""What a cluster needs so that `moorage extender` runs on it: reading rights, Deployment, Service."""

from __future__ import annotations

import dataclasses
from typing import Any

from moorage.manifests import rbac, workload
from moorage.manifests.bundle import SYSTEM_SPACES
from moorage.manifests.options import DeployOptions
from moorage.run.extender.options import PORT, ExtenderOptions, config_block
from moorage.run.extender.selecting import ServedProfile

Json = dict[str, Any]


def extender_manifests(served: ServedProfile, text: str, options: DeployOptions) -> list[Json]:
    """The objects for what is served of a configuration whose file has this text. The Secret `<name>-tls` is
    the operator's: its certificate has to be one that kube-scheduler trusts."""
    options = dataclasses.replace(
        options, component="extender", port=PORT, tls_secret=f"{options.name}-tls", service_monitor=False
    )
    options.check()
    found = [] if options.namespace in SYSTEM_SPACES else [workload.namespace(options)]
    found.append(rbac.service_account(options))
    found += rbac.cluster_roles(options, rbac.packs(served.configuration, rbac.READING, ()))
    found.append(workload.config_map(options, text))
    found.append(workload.deployment(options, text, _arguments(served)))
    found.append(workload.service(options, options.name))
    if options.replicas > 1:
        found.append(workload.disruption_budget(options))
    return found


def block_of(served: ServedProfile, options: DeployOptions) -> str:
    """For kube-scheduler's configuration."""
    url = f"https://{options.name}.{options.namespace}.svc:{PORT}"
    return config_block(served, ExtenderOptions(client_ca_file=_client_ca(served)), url)


def _client_ca(served: ServedProfile) -> str:
    """Only kube-scheduler may bind."""
    return f"{workload.TLS_FOLDER}/ca.crt" if "bind" in served.verbs else ""


def _arguments(served: ServedProfile) -> list[str]:
    """The command line of the container."""
    found = [
        "extender",
        f"--config={workload.CONFIG_FOLDER}/{workload.CONFIG_FILE}",
        "--bind-address=$(POD_IP)",
        f"--port={PORT}",
        f"--tls-cert-file={workload.TLS_FOLDER}/tls.crt",
        f"--tls-private-key-file={workload.TLS_FOLDER}/tls.key",
    ]
    if authority := _client_ca(served):
        found.append(f"--client-ca-file={authority}")
    return found
