"""`moorage what-if`: what would happen if these pods came, this node went, or another configuration ruled."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from moorage.api.errors import MoorageError
from moorage.app.gc_tuning import gc_paused
from moorage.cli.explain import UNSCHEDULABLE, refusals
from moorage.cli.printing import Form, OutputForm, console, fail, line, print_data, printable
from moorage.cli.profile_options import Config, PluginPath, Plugins, ProfileName, configured, configured_by
from moorage.cli.server_options import Authority, Insecure, Server, TokenFile, scheduler_of
from moorage.cli.sources import Context, Kubeconfig, SnapshotFile, configured_as, read
from moorage.explain.explanation import Explanation
from moorage.explain.loaded import LoadedCluster
from moorage.explain.replacing import placed_elsewhere
from moorage.explain.what_if import ClusterCopy, Outcome, ended_by
from moorage.snapshots.manifests import read_manifest

SHOWN = 40
"""Rows of a table for people; JSON has them all."""


def what_if(
    files: Annotated[
        list[Path] | None,
        typer.Option("--filename", "-f", metavar="FILE", help="Manifests that would be applied. Repeatable."),
    ] = None,
    replicas: Annotated[
        str, typer.Option(metavar="N|max", help="Of each workload; max: as many as fit, and what ends it.")
    ] = "",
    drain: Annotated[list[str] | None, typer.Option(metavar="NODE", help="Repeatable.")] = None,
    cordon: Annotated[list[str] | None, typer.Option(metavar="NODE", help="Repeatable.")] = None,
    remove: Annotated[list[str] | None, typer.Option(metavar="[NS/]POD", help="Repeatable.")] = None,
    add_nodes: Annotated[int, typer.Option(metavar="N", help="Nodes that would come.")] = 0,
    like: Annotated[str, typer.Option(metavar="NODE", help="What the nodes of --add-nodes look like.")] = "",
    with_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Which running pods would be placed elsewhere by this configuration."
        ),
    ] = None,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    snapshot: SnapshotFile = None,
    server: Server = "",
    token_file: TokenFile = None,
    authority: Authority = None,
    insecure: Insecure = False,
    config: Config = None,
    profile: ProfileName = "",
    plugins: Plugins = None,
    plugin_path: PluginPath = None,
    output: OutputForm = Form.TABLE,
) -> None:
    """Say what would happen, and change nothing.

    The cluster is read once and copied into memory, with --server as a running scheduler sees it, to be
    judged by its configuration unless --config names another. There the scheduler runs in virtual time with
    what is asked for: new pods, drained, cordoned or added nodes, deleted pods. Shown is where pods go, whom
    they preempt, and why others stay pending. Exit code 0: every pod has a node, 3: some do not, 1: the
    question cannot be answered.
    """
    if bool(add_nodes) != bool(like):
        fail("--add-nodes and --like belong together: say how many nodes, and like which one")
    if replicas and not files:
        fail("--replicas is about the workloads of -f: name a file")
    scheduler = scheduler_of(server, token_file, kubeconfig, context, authority, insecure)
    given = configured(config, profile, plugins, plugin_path)
    try:
        own = configured_as(given, scheduler)
        if with_config is not None:
            other = configured_by(with_config, profile, plugins, plugin_path)
            with gc_paused():
                loaded = LoadedCluster.load(read(own, kubeconfig, context, snapshot, scheduler), other)
            _show_elsewhere(asyncio.run(placed_elsewhere(loaded)), output)
            return
        manifests = [manifest for file in files or () for manifest in read_manifest(file)]
        with gc_paused():
            copied = ClusterCopy(read(own, kubeconfig, context, snapshot, scheduler), own)
        with copied as copy:
            if add_nodes:
                copy.add_nodes(add_nodes, like)
            for name in cordon or ():
                copy.cordon(name)
            for name in remove or ():
                namespace, _, pod = name.rpartition("/")
                copy.remove(pod, namespace)
            for name in drain or ():
                copy.drain(name)
            if replicas == "max":
                outcome = copy.fill(manifests)
            else:
                copy.add(manifests, _number(replicas))
                outcome = copy.settle()
            why = ended_by(copy, outcome)
    except MoorageError as error:
        fail(str(error))
    if output is Form.TABLE:
        _show(outcome, why, replicas == "max")
    else:
        explanation = None if why is None else why.to_dict()
        print_data({**outcome.to_dict(), "explanation": explanation}, output)
    if outcome.pending and replicas != "max":
        raise typer.Exit(UNSCHEDULABLE)


def _number(text: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        fail(f"--replicas: {text!r} is neither a number nor max")
    return int(text)


def _show(outcome: Outcome, why: Explanation | None, filled: bool) -> None:
    if filled:
        line(f"{len(outcome.placed)} replicas fit", style="bold")
    if outcome.placed:
        by_node = Counter(outcome.placed.values())
        if len(outcome.placed) > SHOWN:
            line(f"{len(outcome.placed)} pods would be placed on {len(by_node)} nodes:", style="bold")
            _table(("pods", "node"), ((str(count), node) for node, count in by_node.most_common()))
        else:
            _table(("pod", "would go to"), outcome.placed.items())
    if outcome.moved:
        rows = ((pod, old, new) for pod, (old, new) in outcome.moved.items())
        _table(("pod", "moves from", "to"), rows)
    for key in outcome.preempted:
        line(f"{key} would be preempted", style="bold")
    for key in outcome.lost:
        line(f"{key} would be lost: no controller makes it again", style="bold")
    by_message: dict[str, list[str]] = {}
    for key, message in outcome.pending.items():
        by_message.setdefault(message, []).append(key)
    for message, keys in by_message.items():
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        line(f"{keys[0]}{more} would stay pending: {message}")
    if why is not None and why.groups:
        line("")
        console().print(refusals(why.groups))
    if not (outcome.placed or outcome.moved or outcome.preempted or outcome.lost or outcome.pending):
        line("Nothing would change: every pod stays where it is.")


def _table(columns: tuple[str, ...], rows: Any) -> None:
    table = Table(*columns, box=None, pad_edge=False)
    shown = list(rows)
    for row in shown[:SHOWN]:
        table.add_row(*map(printable, row))
    console().print(table)
    if len(shown) > SHOWN:
        line(f"and {len(shown) - SHOWN} more")


def _show_elsewhere(moved: list[dict[str, Any]], output: Form) -> None:
    if output is not Form.TABLE:
        print_data({"elsewhere": moved}, output)
        return
    if not moved:
        line("Every running pod would be placed where it is.")
        return
    line(f"{len(moved)} running pods would be placed elsewhere:", style="bold")
    rows = ((m["pod"], m["from"], m["to"] or "nowhere", ", ".join(m["decidedBy"])) for m in moved)
    _table(("pod", "runs on", "would go to", "because of"), rows)
