"""`moorage explain`: why a pod is pending, or why it is on its node, and what would help."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from moorage.api.errors import MoorageError
from moorage.app.configuration import configure
from moorage.app.gc_tuning import gc_paused
from moorage.app.offline import question_engine
from moorage.cli import explain_server, options
from moorage.cli.explain_server import score_table
from moorage.cli.options import configured, read, scheduler_of
from moorage.cli.printing import Form, OutputForm, console, fail, line, print_data, printable
from moorage.explain.explanation import Explanation, PlacementReason, RefusalGroup, VictimsOnNode
from moorage.explain.explanation import explain as ask
from moorage.explain.judging import Judge, find_pod
from moorage.explain.remedies import Remedy

MAX_PODS = 4
"""Number of pods that are named in a cell."""
MAX_DETAILS = 6
"""Number of details that are shown for a reason."""
UNSCHEDULABLE = 3
"""Exit code for a pod without a feasible node."""


def explain(
    pod: Annotated[str, typer.Argument(metavar="POD", help="pod/NAME or NAME.")],
    namespace: options.Namespace = "",
    node: Annotated[
        list[str] | None, typer.Option("--node", metavar="NAME", help="Show every refusal on this node. Repeatable.")
    ] = None,
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
    remedies: Annotated[int, typer.Option(metavar="N", help="Number of remedies to look for.")] = 5,
    output: OutputForm = Form.TABLE,
) -> None:
    """Explain why a pod is pending, or why it is on its node, and what would help.

    Works on any cluster, also on one without Moorage. The objects are listed once, and the plugins of
    --config, or kube-scheduler's default plugins, are asked in memory. Nothing is written to the cluster.
    Every remedy was tried in memory. With --server, a running scheduler reports what it decided and why.

    Exit codes: 0 if a node is feasible, 3 if none is, 1 if the question cannot be answered.
    """
    kind, slash, name = pod.rpartition("/")
    if slash and kind not in ("pod", "pods", "po"):
        fail(f"{pod}: only pods can be explained; write pod/NAME, and the namespace with -n")
    scheduler = scheduler_of(server, token_file, kubeconfig, context, authority, insecure)
    if scheduler is not None:
        if snapshot or config or profile or plugins or plugin_path or node:
            fail("--server shows recorded attempts; it excludes --snapshot, --node, --config and --profile")
        if explain_server.explain(scheduler, name, namespace, output):
            raise typer.Exit(UNSCHEDULABLE)
        return
    own = configured(config, profile, plugins, plugin_path) or configure()
    try:
        with gc_paused():
            cluster = read(own, kubeconfig, context, snapshot)
            engine = question_engine(own, cluster.changes())
        found = find_pod(engine, name, namespace or cluster.namespace)
        judge = Judge.of(engine, found, profile)
        answer = asyncio.run(ask(judge, found, nodes=node or (), remedies=remedies))
    except MoorageError as error:
        fail(str(error))
    if unknown := sorted(set(node or ()) - set(judge.nodes.names)):
        fail(f"node {unknown[0]!r} does not exist; `kubectl get nodes` lists the nodes")
    if output is Form.TABLE:
        show(answer)
    else:
        print_data(answer.to_dict(), output)
    if not answer.feasible and not found.is_assigned:
        raise typer.Exit(UNSCHEDULABLE)


def show(answer: Explanation) -> None:
    """Print an explanation for people."""
    pod = answer.pod
    line(_headline(answer), style="bold")
    if pod.scheduler_name != answer.profile:
        line(f"The pod names scheduler {pod.scheduler_name!r}; profile {answer.profile!r} was asked instead.")
    if pod.is_terminating:
        line("The pod is being deleted, so the scheduler does not try it.")
    for reason in answer.held_back:
        line(f"The pod is gated: {reason}")
    if answer.message:
        line(answer.message)
    if answer.groups:
        console().print(refusals(answer.groups))
    for name, refused in answer.nodes.items():
        line(f"\n{name}:" if refused else f"\n{name}: no plugin refuses it.", style="bold")
        for each in refused:
            line(f"  {each['plugin']}: {'; '.join(each['reasons'])}")
            for detail in each["details"]:
                line(f"    {detail['text']}")
    if answer.placement is not None:
        _show_placement(answer.placement, pod.spec.node_name)
    if answer.candidates:
        line(f"\nPreemption would nominate the pod to {answer.nominated}:", style="bold")
        console().print(candidates(answer.candidates))
    if answer.remedies:
        line("\nWhat would help (each was tried on a copy of this cluster):", style="bold")
        for remedy in answer.remedies:
            line(f"  - {remedy.text[:1].upper()}{remedy.text[1:]}. {_effect(remedy)}")


def _effect(remedy: Remedy) -> str:
    if not remedy.nodes:
        return f"Nominates the pod to {remedy.node}."
    if remedy.nodes == 1:
        return f"Makes 1 node feasible ({remedy.node})."
    return f"Makes {remedy.nodes} nodes feasible (best: {remedy.node})."


def _headline(answer: Explanation) -> str:
    pod, feasible = answer.pod, f"{answer.feasible} of {answer.total} nodes"
    if pod.spec.node_name:
        return f"{pod.key} runs on {pod.spec.node_name}. If it were created now, {feasible} would be feasible."
    state = "can be scheduled" if answer.feasible else "is pending"
    return f"{pod.key} {state}: {feasible} are feasible."


def refusals(groups: Sequence[RefusalGroup]) -> Table:
    """Show how many nodes each plugin refuses, and why."""
    table = Table("nodes", "sole reason", "plugin", "reason", box=None, pad_edge=False)
    for group in groups:
        reasons = printable("; ".join(group.reasons))
        details = "".join(f"\n  {printable(text)}" for text in group.details[:MAX_DETAILS])
        hidden = len(group.details) - MAX_DETAILS
        more = f"\n  and {hidden} more" if hidden > 0 else ""
        table.add_row(str(group.nodes), str(group.only), printable(group.plugin), f"{reasons}{details}{more}")
    return table


def candidates(found: Sequence[VictimsOnNode]) -> Table:
    """Show the nodes on which preemption would help, and their victims."""
    table = Table("node", "victims", "spared", "PDB violations", box=None, pad_edge=False)
    for each in found:
        table.add_row(printable(each.node), _some(each.victims), _some(each.reprieved), str(each.pdb_violations))
    return table


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_PODS} more" if len(names) > MAX_PODS else ""
    return printable(", ".join(names[:MAX_PODS])) + more


def _show_placement(placement: PlacementReason, assigned: str) -> None:
    if placement.own_refused:
        line(f"Its node {assigned} would not be feasible now: {'; '.join(placement.own_refused)}")
    if not placement.best:
        return
    own = [] if placement.own is None else [placement.own]
    line("")
    console().print(score_table([*placement.best, *own], assigned))
    if placement.margin is None:
        return
    ahead = f"{placement.node} scores {placement.margin} points more than the next node"
    if placement.decided_by:
        line(f"{ahead}, because of {', '.join(placement.decided_by)}.")
    else:
        line(f"{placement.node} and the next node have equal scores; the first one is chosen.")
