"""Names for shell completion: pods, nodes and contexts. A completion never fails and never takes longer than a second:
without an answer in time, nothing is proposed."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from moorage import snapshots
from moorage.api import yaml_text
from moorage.api.resources import NODES, PODS, Resource
from moorage.snapshots.cluster import read_cluster

SECONDS = 0.8
"""How long to wait for the names; the shell needs the rest of the second."""


def pods(ctx: typer.Context, incomplete: str) -> list[str]:
    """Propose the pods of the namespace, or of all namespaces without one."""
    namespace = ctx.params.get("namespace") or ""
    return _in_time(incomplete, lambda: _names(ctx, PODS, namespace))


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Propose the nodes of the cluster."""
    return _in_time(incomplete, lambda: _names(ctx, NODES))


def contexts(ctx: typer.Context, incomplete: str) -> list[str]:
    """Propose the contexts of the kubeconfig."""
    return _in_time(incomplete, lambda: _contexts(ctx.params.get("kubeconfig") or ""))


def _names(ctx: typer.Context, resource: Resource, namespace: str = "") -> Iterable[str]:
    kubeconfig, context, snapshot = (ctx.params.get(name) or "" for name in ("kubeconfig", "context", "snapshot"))
    if snapshot:
        found = snapshots.load(Path(snapshot), [resource])
    else:
        found = asyncio.run(read_cluster([resource], kubeconfig, context))
    objects = found.objects.get(resource, ())
    return [obj.name for obj in objects if not namespace or obj.namespace == namespace]


def _contexts(kubeconfig: str) -> Iterable[str]:
    paths = kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    for path in filter(None, paths.split(os.pathsep)):
        read = yaml_text.load(Path(path).read_text(encoding="utf-8"))
        yield from (str(entry["name"]) for entry in read.get("contexts") or ())


def _in_time(incomplete: str, names: Callable[[], Iterable[str]]) -> list[str]:
    """Return the names that begin as typed; nothing if they cannot be read in time."""
    found: list[str] = []

    def read() -> None:
        try:
            found.extend(sorted({name for name in names() if name.startswith(incomplete)}))
        except BaseException:  # a message would end up in the line that is being typed
            found.clear()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(SECONDS)
    return [] if thread.is_alive() else found
