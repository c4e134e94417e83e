"""`moorage manifests`: prints the Kubernetes objects that run Moorage on a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import moorage
from moorage.api.errors import MoorageError
from moorage.app.configuration import configure
from moorage.cli.printing import current_folder, fail, line
from moorage.config import ConfigError
from moorage.manifests import DeployOptions, kustomization, to_yaml
from moorage.manifests.bundle import block_of, default_config, extender_manifests, warnings
from moorage.manifests.bundle import manifests as make
from moorage.run.extender import select

OWN_PODS = (
    "kube-scheduler also calls the extender for the extender's own pods. Let them run before you add the "
    "block, and set ignorable or managedResources if kube-scheduler must place them while none is running."
)


def manifests(
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="KubeSchedulerConfiguration (default: the default plugins).")
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            help="Name of the objects, of the lease and, without --config, of the profile.",
            show_default="moorage; with --extender moorage-extender",
        ),
    ] = "",
    namespace: Annotated[str, typer.Option(help="Namespace of the objects.")] = "moorage",
    image: Annotated[
        str, typer.Option(metavar="REF", help="Container image (default: moorage with this version).")
    ] = "",
    replicas: Annotated[int, typer.Option(metavar="N", help="Number of replicas. One leads, the others stand by.")] = 2,
    service_monitor: Annotated[
        bool, typer.Option("--service-monitor", help="Add a ServiceMonitor for the Prometheus operator.")
    ] = False,
    extender: Annotated[
        bool,
        typer.Option(
            "--extender",
            help="Run `moorage extender` instead, with the plugins of the first profile of --config, for "
            "kube-scheduler.",
        ),
    ] = False,
    kustomize: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a kustomize base to DIR instead of printing the objects.")
    ] = None,
) -> None:
    """Print the Kubernetes objects that run Moorage on a cluster.

    The objects are a ServiceAccount, RBAC rules for exactly what the enabled plugins declare, the CRDs of
    these plugins, a ConfigMap, a Deployment and a PodDisruptionBudget. Apply them with
    [bold]moorage manifests | kubectl apply -f -[/bold].
    """
    name = name or ("moorage-extender" if extender else "moorage")
    if extender and config is None:
        fail("--extender needs a configuration with the plugins to serve. Add --config FILE.")
    if extender and service_monitor:
        fail("--service-monitor cannot be used with --extender. Scrape /metrics of its Service instead.")
    options = DeployOptions(
        name=name,
        namespace=namespace,
        image=image or f"moorage:{moorage.__version__}",
        replicas=replicas,
        service_monitor=service_monitor,
    )
    try:
        options.check()
        text = default_config(name) if config is None else _read(config)
        configuration = configure(text, source=str(config or "<default>"), folders=current_folder())
        served = select(configuration) if extender else None
        objects = extender_manifests(served, text, options) if served else make(configuration, text, options)
        notes = [*served.warnings, OWN_PODS] if served else warnings(configuration, options)
        comment = _comment(block_of(served, options), options) if served else ""
    except (MoorageError, ConfigError) as error:
        fail(str(error))
    for note in notes:
        line(f"warning: {note}", style="bold yellow", stderr=True)
    if kustomize is None:
        sys.stdout.write(comment + to_yaml(objects))
        return
    try:
        written = kustomization(kustomize, objects)
    except OSError as error:
        fail(f"Cannot write {error.filename or kustomize}: {error.strerror}.")
    sys.stdout.write(comment)
    line(f"Wrote {len(written)} files to {kustomize}. Apply them with kubectl apply -k {kustomize}", stderr=True)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        fail(f"Cannot read {path}: {error.strerror}.")
    except UnicodeDecodeError:
        fail(f"Cannot read {path}: it is not UTF-8 text.")


def _comment(block: str, options: DeployOptions) -> str:
    """Return the part of kube-scheduler's configuration that uses the extender, as a comment."""
    head = (
        f"For kube-scheduler's configuration; the Secret {options.name}-tls needs tls.crt and tls.key, for "
        f"{options.name}.{options.namespace}.svc, and ca.crt:\n"
    )
    return "".join(f"# {text}\n" for text in (head + block).splitlines())
