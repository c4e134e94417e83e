"""`moorage manifests`: what to apply to a cluster so that Moorage runs there."""

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
    "kube-scheduler asks the extender about the extender's own pods too: let them run before you add the "
    "block, and set ignorable or managedResources there if it has to place them while none answers"
)


def manifests(
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The scheduler's configuration; without, the default plugins."),
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            help="Of the objects, the lease and, without --config, the profile.",
            show_default="moorage; with --extender moorage-extender",
        ),
    ] = "",
    namespace: Annotated[str, typer.Option(help="Where Moorage runs.")] = "moorage",
    image: Annotated[
        str, typer.Option(metavar="REF", help="The image to run; without, moorage and this version.")
    ] = "",
    replicas: Annotated[int, typer.Option(metavar="N", help="One leads, the others wait.")] = 2,
    service_monitor: Annotated[
        bool, typer.Option("--service-monitor", help="Add a ServiceMonitor, for the Prometheus operator.")
    ] = False,
    extender: Annotated[
        bool,
        typer.Option(
            "--extender",
            help="For `moorage extender` instead: the plugins of the first profile of --config behind "
            "kube-scheduler.",
        ),
    ] = False,
    kustomize: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a kustomize base there instead of printing one stream."),
    ] = None,
) -> None:
    """Print the Kubernetes objects that run Moorage on a cluster.

    ServiceAccount, RBAC rules for exactly what the enabled plugins declare, the kinds that they bring,
    ConfigMap, Deployment and disruption budget. Apply them with
    [bold]moorage manifests | kubectl apply -f -[/bold].
    """
    name = name or ("moorage-extender" if extender else "moorage")
    if extender and config is None:
        fail("--extender serves the plugins of a configuration: name it with --config")
    if extender and service_monitor:
        fail(
            "--service-monitor does not go with --extender: leave it out, and scrape /metrics of its Service"
        )
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
        fail(f"{error.filename or kustomize}: cannot be written: {error.strerror}")
    sys.stdout.write(comment)
    line(
        f"Wrote {len(written)} files to {kustomize}; apply them with kubectl apply -k {kustomize}",
        stderr=True,
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        fail(f"{path}: cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        fail(f"{path}: is not a text in UTF-8")


def _comment(block: str, options: DeployOptions) -> str:
    """What belongs to the objects of an extender and is not among them."""
    head = (
        f"For kube-scheduler's configuration; the Secret {options.name}-tls needs tls.crt and tls.key, for "
        f"{options.name}.{options.namespace}.svc, and ca.crt:\n"
    )
    return "".join(f"# {text}\n" for text in (head + block).splitlines())
