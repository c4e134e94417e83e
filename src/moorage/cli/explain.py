"""`moorage explain`: why a pod is pending, or why it is on its node, and what would help."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from moorage.api.errors import Forbidden, MoorageError
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration, configure
from moorage.app.gc_tuning import gc_paused
from moorage.app.offline import question_engine
from moorage.cli import completing, explain_owner, explain_server, options
from moorage.cli.explain_owner import OwnerQuestion
from moorage.cli.explain_server import score_table, show_remedies
from moorage.cli.options import configured, read, scheduler_of
from moorage.cli.printing import Form, OutputForm, console, fail, line, print_data, printable
from moorage.explain.explanation import Explanation, PlacementReason, VictimsOnNode
from moorage.explain.explanation import explain as ask
from moorage.explain.judging import Judge, find_pod
from moorage.explain.other_schedulers import signs_of
from moorage.explain.owners import owner_kind
from moorage.explain.refusals import RefusalGroup
from moorage.extender.asking import asked_extenders

MAX_PODS = 4
"""Number of pods that are named in a cell."""
MAX_DETAILS = 6
"""Number of details that are shown for a reason."""
UNSCHEDULABLE = 3
"""Exit code for a pod without a feasible node."""


def explain(
    pod: Annotated[
        str,
        typer.Argument(
            metavar="POD",
            help="pod/NAME or NAME; also deployment/NAME, rs, sts, job or ds.",
            autocompletion=completing.pods,
        ),
    ],
    namespace: options.Namespace = "",
    node: Annotated[
        list[str] | None,
        typer.Option(
            "--node",
            metavar="NAME",
            help="Show every refusal on this node. Repeatable.",
            autocompletion=completing.nodes,
        ),
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
    no_extenders: options.NoExtenders = False,
    emulated_version: options.EmulatedVersion = "",
    remedies: Annotated[int, typer.Option(metavar="N", help="Number of remedies to look for.")] = 5,
    output: OutputForm = Form.TABLE,
) -> None:
    """Explain why a pod is pending, or why it is on its node, and what would help.

    Of a Deployment, ReplicaSet, StatefulSet, Job or DaemonSet, the answer shows which pods exist, why others do not,
    and which are pending.

    Works on any cluster, also on one without Moorage. The objects are listed once, and the plugins of
    --config, or kube-scheduler's default plugins, are asked in memory. Nothing is written to the cluster.
    Every remedy was tried in memory. With --server, a running scheduler reports what it decided and why, and remedies
    are tried with its state and its configuration, unless --config names another.

    Exit codes: 0 if the pod has a node or gets one as things are, 3 if it does not, 1 if the question cannot be
    answered. A pod that is gated or waits for another scheduler, for example, is not scheduled although nodes are
    feasible.
    """
    kind, slash, name = pod.rpartition("/")
    owner = owner_kind(kind) if slash else ""
    if slash and not owner and kind not in ("pod", "pods", "po"):
        fail(
            f"{pod}: only pods and their owners can be explained; write pod/NAME, deployment/NAME, replicaset/NAME, "
            "statefulset/NAME, job/NAME or daemonset/NAME, and the namespace with -n"
        )
    scheduler = scheduler_of(server, token_file, kubeconfig, context, authority, insecure)
    given = configured(config, profile, plugins, plugin_path, emulated_version, extenders=not no_extenders)
    if scheduler is not None:
        if owner:
            fail("--server shows the attempts of one pod; name a pod, or leave --server out")
        if snapshot or profile or node or emulated_version:
            fail("--server shows recorded attempts; it excludes --snapshot, --node, --profile and --emulated-version")
        if explain_server.explain(scheduler, name, namespace, output, given, remedies):
            raise typer.Exit(UNSCHEDULABLE)
        return
    own = given or configure(emulated_version=emulated_version)
    if owner:
        if node:
            fail("--node shows the refusals of one pod; name a pod, or leave --node out")
        _explain_owner(
            OwnerQuestion(owner, name, namespace, kubeconfig, context, snapshot, profile, remedies), own, output
        )
        return
    try:
        with asked_extenders(own.config.extenders, SystemClock()) as extenders:
            with gc_paused():
                cluster = read(own, kubeconfig, context, snapshot)
                engine = question_engine(own, cluster.changes(), extenders=extenders)
            found = find_pod(engine, name, namespace or cluster.namespace)
            judge = Judge.of(engine, found, profile)
            foreign = not profile and not found.spec.node_name and found.scheduler_name not in engine.profiles
            signs = asyncio.run(signs_of(found, kubeconfig, context)) if foreign and snapshot is None else ""
            asked = ask(judge, found, nodes=node or (), remedies=remedies, signs=signs, any_scheduler=bool(profile))
            answer = asyncio.run(asked)
    except Forbidden as error:
        _explain_limited(name, namespace, kubeconfig, context, error, output)
        return
    except MoorageError as error:
        fail(str(error))
    if unknown := sorted(set(node or ()) - set(judge.nodes.names)):
        fail(f"node {unknown[0]!r} does not exist; `kubectl get nodes` lists the nodes")
    if output is Form.TABLE:
        show(answer)
    else:
        print_data(answer.to_dict(), output)
    if not answer.standing.ends_well:
        raise typer.Exit(UNSCHEDULABLE)


def _explain_limited(name: str, namespace: str, kubeconfig: str, context: str, error: Forbidden, output: Form) -> None:
    try:
        placed = explain_owner.limited(name, namespace, kubeconfig, context, error, output)
    except MoorageError as problem:
        fail(f"{problem}. {explain_owner.cluster_gap(error)}")
    if not placed:
        raise typer.Exit(UNSCHEDULABLE)


def _explain_owner(question: OwnerQuestion, own: Configuration, output: Form) -> None:
    try:
        found = explain_owner.answer(question, own)
    except MoorageError as error:
        fail(str(error))
    explain_owner.show(found, show, output)
    if not found.ends_well:
        raise typer.Exit(UNSCHEDULABLE)


def show(answer: Explanation) -> None:
    """Print an explanation for people."""
    pod = answer.pod
    line(answer.standing.headline, style="bold")
    for fact in answer.facts:
        line(fact)
    if pod.scheduler_name != answer.profile:
        line(f"The pod names scheduler {pod.scheduler_name!r}; profile {answer.profile!r} was asked instead.")
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
    show_remedies(answer.remedies)


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
