"""`moorage what-if`: what would happen with more pods, fewer nodes or another configuration."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from moorage.api.errors import MoorageError
from moorage.app.clock import SystemClock
from moorage.app.gc_tuning import gc_paused
from moorage.app.offline import question_engine
from moorage.cli import options
from moorage.cli.explain import UNSCHEDULABLE, refusals
from moorage.cli.options import configured, configured_as, configured_by, read, scheduler_of
from moorage.cli.printing import Form, OutputForm, console, fail, line, print_data, printable
from moorage.explain.explanation import Explanation
from moorage.explain.what_if import ClusterCopy, WhatIfOutcome, ended_by, placed_elsewhere
from moorage.extender.asking import AskedExtender, asked_extenders
from moorage.snapshots.manifests import read_manifest

MAX_ROWS = 40
"""Number of rows in a table for people; JSON has them all."""


def what_if(
    files: Annotated[
        list[Path] | None, typer.Option("--filename", "-f", metavar="FILE", help="Manifests to apply. Repeatable.")
    ] = None,
    replicas: Annotated[
        str, typer.Option(metavar="N|max", help="Replicas of each workload; max: as many as fit, and why no more.")
    ] = "",
    drain: Annotated[list[str] | None, typer.Option(metavar="NODE", help="Drain a node. Repeatable.")] = None,
    cordon: Annotated[list[str] | None, typer.Option(metavar="NODE", help="Cordon a node. Repeatable.")] = None,
    remove: Annotated[list[str] | None, typer.Option(metavar="[NS/]POD", help="Delete a pod. Repeatable.")] = None,
    add_nodes: Annotated[int, typer.Option(metavar="N", help="Number of nodes to add.")] = 0,
    like: Annotated[str, typer.Option(metavar="NODE", help="The node to copy for --add-nodes.")] = "",
    with_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Show which running pods this configuration would place elsewhere."),
    ] = None,
    upgrade_to: Annotated[
        str, typer.Option(metavar="VERSION", help="Show what an upgrade of kube-scheduler to this version changes.")
    ] = "",
    feature_gates: Annotated[
        str, typer.Option(metavar="A=true,...", help="The --feature-gates of the scheduler, for --upgrade-to.")
    ] = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.Context = "",
    snapshot: options.SnapshotFile = None,
    server: options.Server = "",
    token_file: options.TokenFile = None,
    authority: options.Authority = None,
    insecure: options.Insecure = False,
    config: options.Config = None,
    profile: options.ProfileName = "",
    plugins: options.Plugins = None,
    plugin_path: options.PluginPath = None,
    no_extenders: options.NoExtenders = False,
    emulated_version: options.EmulatedVersion = "",
    output: OutputForm = Form.TABLE,
) -> None:
    """Show what would happen, and change nothing.

    The cluster is read once and copied into memory; with --server, as the running scheduler sees it and with
    its configuration, unless --config names another. The scheduler then runs on the copy in virtual time,
    with the requested changes: new pods, drained, cordoned or added nodes, deleted pods. The output shows
    where pods go, which pods they preempt, and why others stay pending.

    With --upgrade-to, every pod is judged as two versions of kube-scheduler decide, on the present state.

    Exit codes: 0 if every pod has a node, 3 if some do not, 1 if the question cannot be answered. With
    --upgrade-to, 0 if nothing that has an effect differs, 3 if something does.
    """
    if feature_gates and not upgrade_to:
        fail("--feature-gates needs --upgrade-to: it says how your scheduler is started")
    if bool(add_nodes) != bool(like):
        fail("--add-nodes and --like need each other: the number of nodes, and the node to copy")
    if replicas and not files:
        fail("--replicas needs -f: it sets the replicas of the workloads in the file")
    scheduler = scheduler_of(server, token_file, kubeconfig, context, authority, insecure)
    if upgrade_to:
        if files or drain or cordon or remove or add_nodes or with_config:
            fail("--upgrade-to compares two versions on the cluster as it is; leave out the changes, or try them alone")
        if (profile or plugins or plugin_path) and config is None:
            fail("--profile, --plugin and --plugin-path need --config")
        _preview_upgrade(
            upgrade_to,
            emulated_version,
            (config, plugins or [], plugin_path or [], scheduler),
            {"profile": profile, "feature_gates": feature_gates, "extenders": not no_extenders},
            (kubeconfig, context, snapshot, scheduler),
            output,
        )
        return
    given = configured(config, profile, plugins, plugin_path, emulated_version, extenders=not no_extenders)
    try:
        own = configured_as(given, scheduler, emulated_version)
        own = own.without_extenders() if no_extenders else own
        if with_config is not None:
            version = own.behaviour.minor
            other = configured_by(with_config, profile, plugins, plugin_path, version, extenders=not no_extenders)
            with asked_extenders(other.config.extenders, SystemClock()) as asked:
                with gc_paused():
                    cluster = read(own, kubeconfig, context, snapshot, scheduler)
                    engine = question_engine(other, cluster.changes(), extenders=asked)
                _show_elsewhere(asyncio.run(placed_elsewhere(engine)), output)
                _name_failures(asked)
            return
        manifests = [manifest for file in files or () for manifest in read_manifest(file)]
        with asked_extenders(own.config.extenders, SystemClock()) as asked:
            with gc_paused():
                copied = ClusterCopy(read(own, kubeconfig, context, snapshot, scheduler), own, extenders=asked)
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
            _name_failures(asked)
    except MoorageError as error:
        fail(str(error))
    if output is Form.TABLE:
        _show(outcome, why, replicas == "max")
    else:
        explanation = None if why is None else why.to_dict()
        print_data({**outcome.to_dict(), "explanation": explanation}, output)
    if outcome.blocked or (outcome.pending and replicas != "max"):
        raise typer.Exit(UNSCHEDULABLE)


def _preview_upgrade(
    to: str, since: str, source: tuple[Any, ...], fields: dict[str, Any], cluster: tuple[Any, ...], output: Form
) -> None:
    from moorage.cli.upgrade import given_configuration, show_upgrade  # other questions need none of it

    try:
        show_upgrade(to, since, given_configuration(*source, **fields), cluster, output)
    except MoorageError as error:
        fail(str(error))


def _name_failures(extenders: Sequence[AskedExtender]) -> None:
    """Warn about extenders that failed: the answer lacks what they would have said."""
    for extender in extenders:
        if extender.problem:
            line(f"Warning: an extender failed: {extender.problem}", style="yellow", stderr=True)


def _number(text: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        fail(f'--replicas: {text!r} is neither a number nor "max"')
    return int(text)


def _show(outcome: WhatIfOutcome, why: Explanation | None, filled: bool) -> None:
    if filled:
        line(f"{len(outcome.placed)} replicas fit.", style="bold")
    if outcome.placed:
        by_node = Counter(outcome.placed.values())
        if len(outcome.placed) > MAX_ROWS:
            line(f"{len(outcome.placed)} pods would be placed on {len(by_node)} nodes:", style="bold")
            _table(("pods", "node"), ((str(count), node) for node, count in by_node.most_common()))
        else:
            _table(("pod", "would go to"), outcome.placed.items())
    if outcome.moved:
        rows = ((pod, old, new) for pod, (old, new) in outcome.moved.items())
        _table(("pod", "moves from", "to"), rows)
    for key in outcome.preempted:
        line(f"{key} would be preempted.", style="bold")
    for key in outcome.lost:
        line(f"{key} would be lost: no controller recreates it.", style="bold")
    for key, reason in outcome.blocked.items():
        line(f"{key} would stay on its node: {reason}.", style="bold")
    by_message: dict[str, list[str]] = {}
    for key, message in outcome.pending.items():
        by_message.setdefault(message, []).append(key)
    for message, keys in by_message.items():
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        line(f"{keys[0]}{more} would stay pending: {message}")
    if why is not None and why.groups:
        line("")
        console().print(refusals(why.groups))
    if not (outcome.placed or outcome.moved or outcome.preempted or outcome.lost or outcome.blocked or outcome.pending):
        line("Nothing would change: every pod stays where it is.")


def _table(columns: tuple[str, ...], rows: Any) -> None:
    table = Table(*columns, box=None, pad_edge=False)
    shown = list(rows)
    for row in shown[:MAX_ROWS]:
        table.add_row(*map(printable, row))
    console().print(table)
    if len(shown) > MAX_ROWS:
        line(f"and {len(shown) - MAX_ROWS} more")


def _show_elsewhere(moved: list[dict[str, Any]], output: Form) -> None:
    if output is not Form.TABLE:
        print_data({"elsewhere": moved}, output)
        return
    if not moved:
        line("Every running pod would be placed on its current node.")
        return
    line(f"{len(moved)} running pods would be placed elsewhere:", style="bold")
    rows = ((m["pod"], m["from"], m["to"] or "(pending)", ", ".join(m["decidedBy"])) for m in moved)
    _table(("pod", "runs on", "would go to", "because of"), rows)
