"""`moorage explain`: why a pod is pending, or why it is on its node, and what would help."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from moorage.api.errors import MoorageError
from moorage.cli import explain_server
from moorage.cli.printing import Form, OutputForm, console, fail, line, print_data, printable
from moorage.cli.profile_options import Config, PluginPath, Plugins, ProfileName, configured
from moorage.cli.scores import scores
from moorage.cli.server_options import Authority, Insecure, Server, TokenFile, scheduler_of
from moorage.cli.sources import Context, Kubeconfig, Namespace, SnapshotFile, load
from moorage.explain.explanation import Explanation, Group, Placement, Victims
from moorage.explain.explanation import explain as ask

NAMED = 4
"""Pods that are named in a cell."""
UNSCHEDULABLE = 3
"""Exit code for a pod that no node takes now."""


def explain(
    pod: Annotated[str, typer.Argument(metavar="POD", help="pod/NAME or NAME.")],
    namespace: Namespace = "",
    node: Annotated[
        list[str] | None,
        typer.Option(
            "--node", metavar="NAME", help="Everything that is in the way on this node. Repeatable."
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
    remedies: Annotated[int, typer.Option(metavar="N", help="Remedies to look for; 0: none.")] = 5,
    output: OutputForm = Form.TABLE,
) -> None:
    """Say why a pod is pending, or why it is on its node, and what would help.

    Works on any cluster, also one without Moorage: its objects are listed once and judged by the plugins of
    --config, or by kube-scheduler's defaults. Nothing is written. Remedies are tried in memory before they
    are shown. With --server a running scheduler is asked what it has decided, and why.

    Exit code 0: a node takes the pod, 3: none does now, 1: the question cannot be answered.
    """
    kind, slash, name = pod.rpartition("/")
    if slash and kind not in ("pod", "pods", "po"):
        fail(f"{pod}: only pods are explained; write pod/NAME, and the namespace with -n")
    scheduler = scheduler_of(server, token_file, kubeconfig, context, authority, insecure)
    if scheduler is not None:
        if snapshot or config or profile or plugins or plugin_path or node:
            fail("--server shows what was recorded: drop --snapshot, --node and --config with its options")
        if explain_server.explain(scheduler, name, namespace, output):
            raise typer.Exit(UNSCHEDULABLE)
        return
    loaded = load(configured(config, profile, plugins, plugin_path), kubeconfig, context, snapshot)
    try:
        found = loaded.pod(name, namespace or loaded.namespace)
        judge = loaded.judge(found, profile)
        answer = asyncio.run(ask(judge, found, nodes=node or (), remedies=remedies))
    except MoorageError as error:
        fail(str(error))
    if unknown := sorted(set(node or ()) - set(judge.nodes.names)):
        fail(f"there is no node {unknown[0]!r}; `kubectl get nodes` names them")
    if output is Form.TABLE:
        show(answer)
    else:
        print_data(answer.to_dict(), output)
    if not answer.feasible and not found.is_assigned:
        raise typer.Exit(UNSCHEDULABLE)


def show(answer: Explanation) -> None:
    """For people."""
    pod = answer.pod
    line(_headline(answer), style="bold")
    if pod.scheduler_name != answer.profile:
        line(f"The pod asks for the scheduler {pod.scheduler_name!r}; judged by {answer.profile!r}.")
    for reason in answer.held_back:
        line(f"Not in the queue: {reason}")
    if answer.message:
        line(answer.message)
    if answer.groups:
        console().print(refusals(answer.groups))
    for name, found in answer.nodes.items():
        line(f"\n{name}: {'nothing is in the way' if not found else ''}", style="bold")
        for each in found:
            reasons = "; ".join(each["reasons"])
            line(f"  {each['plugin']}: {reasons}")
            for detail in each["details"]:
                line(f"    {detail['text']}")
    if answer.placement is not None:
        _show_placement(answer.placement, pod.spec.node_name)
    if answer.candidates:
        line(f"\nPreemption would nominate it to {answer.nominated}:", style="bold")
        console().print(candidates(answer.candidates))
    if answer.remedies:
        line("\nWhat would help (tried on this state of the cluster):", style="bold")
        for remedy in answer.remedies:
            gain = f"{remedy.nodes} nodes" if remedy.nodes != 1 else "1 node"
            where = f" → {gain}, then {remedy.node}" if remedy.nodes else f" → {remedy.node}"
            line(f"  - {remedy.text}{where}")


def _headline(answer: Explanation) -> str:
    pod, total = answer.pod, answer.total
    if pod.spec.node_name:
        return f"{pod.key} runs on {pod.spec.node_name}; {answer.feasible} of {total} nodes would take it now"
    if answer.feasible:
        return f"{pod.key} fits: {answer.feasible} of {total} nodes would take it now"
    return f"{pod.key} is pending: none of {total} nodes takes it"


def refusals(groups: Sequence[Group]) -> Table:
    """Who refuses how many nodes, and why."""
    table = Table("nodes", "only reason", "plugin", "reason, and what is behind it", box=None, pad_edge=False)
    for group in groups:
        reasons = printable("; ".join(group.reasons))
        behind = "".join(f"\n  {printable(text)}" for text in group.details[:6])
        more = f"\n  and {len(group.details) - 6} more" if len(group.details) > 6 else ""
        table.add_row(str(group.nodes), str(group.only), printable(group.plugin), f"{reasons}{behind}{more}")
    return table


def candidates(found: Sequence[Victims]) -> Table:
    """Nodes on which preemption would help, and whom it would cost."""
    table = Table("node", "victims", "reprieved", "PDBs violated", box=None, pad_edge=False)
    for each in found:
        table.add_row(
            printable(each.node), _some(each.victims), _some(each.reprieved), str(each.pdb_violations)
        )
    return table


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return printable(", ".join(names[:NAMED])) + more


def _show_placement(placement: Placement, assigned: str) -> None:
    if placement.own_refused:
        line(f"Its node {assigned} would not take it now: {'; '.join(placement.own_refused)}")
    if not placement.best:
        return
    own = [] if placement.own is None else [placement.own]
    line("")
    console().print(scores([*placement.best, *own], assigned))
    if placement.margin is None:
        return
    if placement.decided_by:
        line(f"{placement.node} is {placement.margin} points ahead, by {', '.join(placement.decided_by)}.")
    else:
        line(f"{placement.node} is taken among equals.")
