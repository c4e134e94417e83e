"""Old versions of the configuration (v1beta1, v1beta2, v1beta3) -> v1.

Works on one profile's own plugins and args, before they are merged with the defaults of their
version: the default sets with their old weights are in `defaults`. Every name that no longer exists gets its
successor, a note, or a problem; none is dropped silently. Field paths stay those of the file.
"""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.problems import Problem, child, invalid
from moorage.config import versions
from moorage.config.defaults import NEWER_THAN_BETA, default_names_at
from moorage.config.legacy_plugins import V1BETA1_ARGS, Draft, convert_node_label, convert_resource_scores
from moorage.config.types import GROUP, MULTI_POINT, Note, Plugin, Profile
from moorage.framework.args import PluginArgs
from moorage.framework.points import BUILT, BY_NAME

_PER_POINT = ("v1beta1", "v1beta2")  # versions whose defaults stood at each point
_LIST = "List"  # defaultingType of PodTopologySpread
_BIND_ADDRESSES = ("healthzBindAddress", "metricsBindAddress")


class Converted(NamedTuple):
    """A profile in the terms of v1, and what is to be said about it."""

    profile: Profile
    notes: list[Note]
    problems: list[Problem]


def legacy_args(version: str) -> Mapping[str, type[PluginArgs]]:
    """Args types that only this version knows."""
    return V1BETA1_ARGS if version == "v1beta1" else {}


def convert_fields(body: Mapping[str, object], version: str) -> tuple[dict[str, object], list[Note], list[Problem]]:
    """The content of a file without what v1 no longer has; and what came later than the file's version."""
    if version == "v1":
        return dict(body), [], []
    served = f"converted from {GROUP}/{version} (Kubernetes {versions.SERVED[version]})"
    newer = f"the defaults include what came later: {', '.join(NEWER_THAN_BETA)}"
    notes = [Note(path="", message=f"{served}; {newer}")]
    kept = dict(body)
    for name in _BIND_ADDRESSES if version in _PER_POINT else ():
        if kept.pop(name, None) is not None:
            notes.append(Note(path=name, message="dropped: the insecure port is gone, use --bind-address"))
    return kept, notes, [_too_new(path, version) for path in _newer_fields(body, version)]


def _newer_fields(body: Mapping[str, object], version: str) -> list[str]:
    found = [name for name in ("delayCacheUntilActive",) if body.get(name) is not None]
    profiles = body.get("profiles")
    for index, profile in enumerate(profiles if isinstance(profiles, list) else ()):
        if not isinstance(profile, Mapping):
            continue
        path = child("profiles", index)
        if profile.get("percentageOfNodesToScore") is not None:
            found.append(child(path, "percentageOfNodesToScore"))
        plugins = profile.get("plugins")
        if version == "v1beta1" and isinstance(plugins, Mapping):
            found += [child(path, "plugins", name) for name in (MULTI_POINT, "preEnqueue") if name in plugins]
    return found


def _too_new(path: str, version: str) -> Problem:
    name = path.rpartition(".")[2]
    return Problem(path=path, message=f'unknown field "{name}"', hint=f"{version} does not have it, v1 does")


def convert_args(raw: object, name: str, version: str) -> object:
    """Arguments with the defaults that only an old version had."""
    # v1beta1 took a list of constraints as the request to use it; later versions want defaultingType: List.
    if version != "v1beta1" or name != "PodTopologySpread" or not isinstance(raw, dict):
        return raw
    if raw.get("defaultConstraints") and not raw.get("defaultingType"):
        return {**raw, "defaultingType": _LIST}
    return raw


def convert_profile(profile: Profile, written_args: Mapping[str, object], version: str, path: str) -> Converted:
    """A profile of an old version in the terms of v1; args that changed are plain mappings.

    `written_args` has the args of plugins as the file has them.
    """
    if version == "v1":
        return Converted(profile, [], [])
    draft = Draft(profile, written_args, version, path)
    if version in _PER_POINT:
        _settle_relisted(draft)
    if version == "v1beta1":
        convert_resource_scores(draft)
        convert_node_label(draft)
        _report_service_affinity(draft)
        _report_prefer_avoid_pods(draft)
    else:
        _refuse_gone(draft)
    _convert_selector_spread(draft)
    _convert_limits(draft)
    converted = replace(profile, plugins=draft.plugins(), plugin_config=draft.plugin_config())
    return Converted(converted, draft.notes, draft.problems)


def _settle_relisted(draft: Draft) -> None:
    """Defaults that are enabled again: an error in v1beta1, an override in place in v1beta2."""
    for point in BUILT:
        defaults = default_names_at(draft.version, point)
        for name in draft.enabled(point):
            if name not in defaults or draft.is_off(point, name):
                continue
            if draft.version == "v1beta1":
                message = f'plugin "{name}" already registered as "{BY_NAME[point].go_type}"'
                hint = "it is enabled by default; disable it here too, or write the file as v1"
                draft.problem(Problem(path=draft.where(point, name), message=message, hint=hint))
            elif point != "score":
                # In v1 the entry would move the plugin to the front; here it only repeats the default.
                draft.replace(point, name)


def _refuse_gone(draft: Draft) -> None:
    text = f'was invalid in version "{GROUP}/v1beta2" (KubeSchedulerConfiguration is version'
    detail = f'{text} "{GROUP}/{draft.version}")'
    for name in versions.GONE_SINCE_V1BETA2:
        for point in draft.points():
            if name in draft.enabled(point):
                draft.problem(invalid(draft.where(point, name), name, detail, versions.successor(name)))


def _report_service_affinity(draft: Draft) -> None:
    name = "ServiceAffinity"
    path = draft.where_args(name)
    had_args = draft.take_args(name) is not None
    points = [point for point in draft.points() if name in draft.enabled(point)]
    for point in points:
        message = f"{name} does not exist in v1: {versions.successor(name)}"
        draft.problem(Problem(path=draft.where(point, name), message=message))
    if had_args and not points:
        draft.note(path, f"dropped, because {name} is not enabled")


def _report_prefer_avoid_pods(draft: Draft) -> None:
    name = "NodePreferAvoidPods"
    listed = name in draft.enabled("score")
    if listed or not draft.is_off("score", name):
        draft.note(draft.where("score", name), f"{name} is gone: {versions.successor(name)}")
    draft.replace("score", name)
    draft.replace_disabled("score", name)


def _convert_selector_spread(draft: Draft) -> None:
    name, successor = "SelectorSpread", "PodTopologySpread"
    for point in draft.points():
        entry = draft.enabled(point).get(name)
        if entry is None:
            continue
        path = draft.where(point, name)
        runs = not draft.is_off(point, successor) and not draft.is_off(MULTI_POINT, successor)
        draft.replace(point, name, *(() if runs else (Plugin(name=successor, weight=entry.weight),)))
        if draft.written_args(successor).get("defaultingType") == _LIST:
            draft.note(path, f"{name} is gone: {successor} spreads by the defaultConstraints in its args")
        else:
            draft.note(path, f"{name} became {successor} with defaultingType System")


def _convert_limits(draft: Draft) -> None:
    successor = "NodeVolumeLimits"
    for name in versions.LIMITS_PLUGINS:
        for point in draft.points():
            path = draft.where(point, name)
            if name in draft.enabled(point):
                runs = not draft.is_off(point, successor) and not draft.is_off(MULTI_POINT, successor)
                draft.replace(point, name, *(() if runs else (Plugin(name=successor),)))
                draft.note(path, f"{name} became {successor}")
            if draft.replace_disabled(point, name):
                draft.note(path, f"disabling {name} has no effect: {successor} counts all volumes now")
        path = draft.where_args(name)
        if draft.take_args(name) is not None:
            draft.note(path, f"dropped, because {successor} takes no args")
