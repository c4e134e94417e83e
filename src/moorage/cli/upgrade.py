"""The upgrade preview of `moorage what-if --upgrade-to`: read configuration and cluster, and print the report."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from moorage.api.versions import Behaviour, upgrade_path
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration, find_plugin, plugin_folders, read_file
from moorage.app.gc_tuning import gc_paused
from moorage.cli.explain import UNSCHEDULABLE
from moorage.cli.options import RunningScheduler, read
from moorage.cli.printing import Form, console, current_folder, line, print_data, printable
from moorage.config import ConfigError
from moorage.explain.upgrading import PodChange, UpgradePreview, going_away, preview
from moorage.explain.versioned import ConfigurationText
from moorage.extender.asking import asked_extenders

MAX_ROWS = 40
"""Number of pods in the report for people; JSON has them all."""
ASPECTS = {"node": "node", "feasible": "feasible nodes", "order": "order of nodes", "preemption": "preemption"}
"""What is shown of the aspects of a difference; a changed message is shown in full below the table."""
SKIPPED = {"otherScheduler": "of other schedulers", "gated": "gated", "ending": "ending"}


def given_configuration(
    config: Path | None,
    plugins: Sequence[str],
    plugin_path: Sequence[str],
    scheduler: RunningScheduler | None,
    **fields: Any,
) -> ConfigurationText:
    """Return the configuration of the user, else that of the running scheduler, else the default one, before it is read
    for a version."""
    if config is None and scheduler is not None:
        return ConfigurationText.of(asyncio.run(scheduler.configuration()), source=scheduler.server, **fields)
    folders = tuple(plugin_folders(plugin_path)) if plugin_path else current_folder()
    named = [find_plugin(reference, folders) for reference in plugins]
    if config is not None:
        fields |= {"text": read_file(config), "source": str(config)}
    return ConfigurationText.given(named, folders=folders, **fields)


def show_upgrade(
    to: str,
    since: str,
    given: ConfigurationText,
    cluster: tuple[str, str, Path | None, RunningScheduler | None],
    output: Form,
) -> None:
    """Print the preview, and end the command with 3 if something that has an effect differs. `cluster` is what selects
    it: kubeconfig, context, snapshot, running scheduler."""
    path = upgrade_path(to, since)
    configured = _usable(given, path)
    with asked_extenders(configured.config.extenders, SystemClock()) as asked:
        with gc_paused():
            objects = read(configured, *cluster, also=going_away(path))
        found = asyncio.run(preview(objects, given, path, asked))
    if output is Form.TABLE:
        _print(found)
    else:
        print_data(found.to_dict(), output)
    for extender in asked:
        if extender.problem:
            line(f"Warning: an extender failed: {extender.problem}", style="yellow", stderr=True)
    if found.has_effect:
        raise typer.Exit(UNSCHEDULABLE)


def _usable(given: ConfigurationText, path: tuple[Behaviour, Behaviour]) -> Configuration:
    """Return the configuration as one of the versions reads it, which says what to read of the cluster."""
    problems = []
    for behaviour in path:
        found, wrong = given.read(given.gates(behaviour.minor)[0])
        if found is not None:
            return found
        problems = wrong
    raise ConfigError(problems, given.source)


def _print(found: UpgradePreview) -> None:
    versions = f"kube-scheduler {found.after} than by {found.before}"
    if found.pods:
        some = f"{len(found.pods)} of {found.judged} pods"
        line(f"{some} would be decided differently by {versions}.", style="bold")
    else:
        were = "was" if found.judged == 1 else "were"
        line(f"No pod would be decided differently by {versions}. {found.judged} {were} judged.", style="bold")
    if found.skipped:
        each = ", ".join(f"{count} {SKIPPED[why]}" for why, count in found.skipped.items())
        line(f"Pods that were not judged: {each}.")
    _print_configuration(found)
    for removed in found.removed:
        names = ", ".join(removed.names[:3]) + (f" and {len(removed.names) - 3} more" if len(removed.names) > 3 else "")
        line("")
        line(f"{found.after} no longer serves {removed.kind} of {removed.api_version}. Delete {names} first.")
    shown = 0
    for reasons, pods in _grouped(found.pods).items():
        line("")
        texts = " ".join(found.reasons[name] for name in reasons)
        line(f"{len(pods)} pod{'s' if len(pods) > 1 else ''}: {texts}", style="bold")
        if shown < MAX_ROWS:
            _print_pods(pods[: MAX_ROWS - shown], found)
        if len(pods) > MAX_ROWS - shown:
            line(f"and {len(pods) - max(0, MAX_ROWS - shown)} more; -o json shows all")
        shown = min(MAX_ROWS, shown + len(pods))
    if found.without_effect or found.also_changes:
        line("")
    if found.without_effect:
        line(f"Differences without effect: {found.without_effect} pods have other scores and keep the order of nodes.")
    if found.also_changes:
        count = len(found.also_changes)
        line(f"{count} other changes (queue, binding, metrics) do not depend on the state; -o json lists them.")


def _print_configuration(found: UpgradePreview) -> None:
    if found.configuration:
        line("")
        line("Configuration:", style="bold")
    for change in found.configuration:
        style = "red" if change.kind == "error" else ""
        line(f"  {change.path}: {change.text}" if change.path else f"  {change.text}", style=style)


def _grouped(pods: Iterable[PodChange]) -> Mapping[tuple[str, ...], list[PodChange]]:
    """Return the pods by what is responsible, the largest group first."""
    groups: dict[tuple[str, ...], list[PodChange]] = {}
    for pod in pods:
        groups.setdefault(pod.reasons, []).append(pod)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


def _print_pods(pods: Sequence[PodChange], found: UpgradePreview) -> None:
    table = Table("pod", "differs in", found.before, found.after, box=None, pad_edge=False)
    for pod in pods:
        answer = pod.answer
        differs = [ASPECTS.get(aspect, aspect) for aspect in answer["differs"] if aspect not in ("scores", "refusals")]
        row = (answer["pod"], ", ".join(differs), answer["before"]["text"], answer["after"]["text"])
        table.add_row(*map(printable, row))
    console().print(table)
    for text in _messages(pods[0], found):
        line(f"  {text}")


def _messages(pod: PodChange, found: UpgradePreview) -> Iterator[str]:
    """Yield both messages of a pod that stays pending with another one."""
    if "message" in pod.answer["differs"]:
        for version, side in ((found.before, "before"), (found.after, "after")):
            if text := pod.answer[side]["message"]:
                yield f"{version}: {text}"
