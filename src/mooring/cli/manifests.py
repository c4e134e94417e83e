"""`mooring manifests`: what to apply to a cluster so that Mooring runs there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import mooring
from mooring.api.errors import MooringError
from mooring.app.configuring import Configuration, configure
from mooring.app.deploying import DeployOptions, kustomization, to_yaml
from mooring.app.deploying.manifests import default_config, warnings
from mooring.app.deploying.manifests import manifests as make
from mooring.cli.printing import current_folder, fail, line
from mooring.config import ConfigError


def manifests(
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The scheduler's configuration; without, the default plugins."),
    ] = None,
    name: Annotated[
        str, typer.Option(help="Of the objects, the lease and, without --config, the profile.")
    ] = ("mooring"),
    namespace: Annotated[str, typer.Option(help="Where Mooring runs.")] = "mooring",
    image: Annotated[
        str, typer.Option(metavar="REF", help="The image to run; without, mooring and this version.")
    ] = "",
    replicas: Annotated[int, typer.Option(metavar="N", help="One leads, the others wait.")] = 2,
    service_monitor: Annotated[
        bool, typer.Option("--service-monitor", help="Add a ServiceMonitor, for the Prometheus operator.")
    ] = False,
    kustomize: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a kustomize base there instead of printing one stream."),
    ] = None,
) -> None:
    """Print the Kubernetes objects that run Mooring on a cluster.

    ServiceAccount, RBAC rules for exactly what the enabled plugins declare, the kinds that they bring,
    ConfigMap, Deployment and disruption budget. Apply them with
    [bold]mooring manifests | kubectl apply -f -[/bold].
    """
    options = DeployOptions(
        name=name,
        namespace=namespace,
        image=image or f"mooring:{mooring.__version__}",
        replicas=replicas,
        service_monitor=service_monitor,
    )
    try:
        options.check()
        text = default_config(name) if config is None else _read(config)
        configuration = configure(text, source=str(config or "<default>"), folders=current_folder())
        objects = make(configuration, text, options)
    except (MooringError, ConfigError) as error:
        fail(str(error))
    _warn(configuration, options)
    if kustomize is None:
        sys.stdout.write(to_yaml(objects))
        return
    try:
        written = kustomization(kustomize, objects)
    except OSError as error:
        fail(f"{error.filename or kustomize}: cannot be written: {error.strerror}")
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


def _warn(configuration: Configuration, options: DeployOptions) -> None:
    for note in warnings(configuration, options):
        line(f"warning: {note}", style="bold yellow", stderr=True)
