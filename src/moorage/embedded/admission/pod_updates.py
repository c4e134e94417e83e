"""What an update may change of a pod: images, deadlines, more tolerations, fewer gates, and little else."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.embedded.admission.problems import Problems
from moorage.store.objects import Raw

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_CHANGEABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_MAX_INT32 = 2**31 - 1


def check_update(new: Raw, old: Raw, problems: Problems) -> None:
    """The specs of a pod after and before a write to the pod."""
    if new == old:
        return
    for field in ("containers", "initContainers"):
        if len(new.get(field) or ()) != len(old.get(field) or ()):
            problems.forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
    _check_deadline(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"), problems)
    _check_tolerations(new.get("tolerations") or (), old.get("tolerations") or (), problems)
    _check_gates(new.get("schedulingGates") or (), old.get("schedulingGates") or (), problems)
    rest = _without_changeable(new, old)
    if old.get("schedulingGates"):
        rest = _without_narrowing(rest, old, problems)
    _check_rest(rest, old, ",".join(_CHANGEABLE), problems)


def check_resize(new: Raw, old: Raw, problems: Problems) -> None:
    """A write to the resize subresource: nothing but the amounts of containers changes."""
    rest = dict(new)
    for field in ("containers", "initContainers"):
        if len(new.get(field) or ()) != len(old.get(field) or ()):
            problems.forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
        if field in new:
            rest[field] = [
                {**after, "resources": before.get("resources")}
                for after, before in zip(new[field], old[field], strict=True)
            ]
    _check_rest(rest, old, "cpu and memory resources", problems)


def _check_rest(rest: Raw, old: Raw, changeable: str, problems: Problems) -> None:
    changed = [f"spec.{field}" for field in sorted({**old, **rest}) if rest.get(field) != old.get(field)]
    if changed:
        problems.forbidden(
            "spec", f"pod updates may not change fields other than {changeable}\nchanged: {', '.join(changed)}"
        )


def _check_deadline(new: int | None, old: int | None, problems: Problems) -> None:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            problems.invalid(path, None, "must not update from a positive integer to nil value")
    elif not 0 <= new <= _MAX_INT32:
        problems.invalid(path, new, f"must be between 0 and {_MAX_INT32}, inclusive")
    elif old is not None and new > old:
        problems.invalid(path, new, "must be less than or equal to previous value")


def _check_tolerations(new: Sequence[Raw], old: Sequence[Raw], problems: Problems) -> None:
    kept = [_without_seconds(toleration) for toleration in new]
    if any(_without_seconds(toleration) not in kept for toleration in old):
        problems.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _without_seconds(toleration: Raw) -> Raw:
    return {field: value for field, value in toleration.items() if field != "tolerationSeconds"}


def _check_gates(new: Sequence[Raw], old: Sequence[Raw], problems: Problems) -> None:
    known = {gate.get("name") for gate in old}
    for index, gate in enumerate(new):
        if gate.get("name") not in known:
            problems.forbidden(
                f"spec.schedulingGates[{index}].name",
                f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
            )


def _without_changeable(new: Raw, old: Raw) -> Raw:
    """The new spec with the old values of all that may change."""
    rest = dict(new)
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        rest.pop(field, None)
        if field in old:
            rest[field] = old[field]
    for field in ("containers", "initContainers"):
        if field in new:
            rest[field] = [
                {**after, "image": before.get("image")}
                for after, before in zip(new[field], old.get(field) or (), strict=True)
            ]
    before = old.get("terminationGracePeriodSeconds")
    if before is not None and before < 0 and rest.get("terminationGracePeriodSeconds") == 1:
        rest["terminationGracePeriodSeconds"] = before
    return rest


def _without_narrowing(rest: Raw, old: Raw, problems: Problems) -> Raw:
    """A gated pod may be narrowed down: more in its node selector and in the terms of its node affinity."""
    rest = dict(rest)
    wanted, before = rest.pop("nodeSelector", None) or {}, old.get("nodeSelector") or {}
    if not before.items() <= wanted.items():
        problems.invalid(
            "spec.nodeSelector", wanted, "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        )
    if "nodeSelector" in old:
        rest["nodeSelector"] = old["nodeSelector"]
    affinity = dict(rest.pop("affinity", None) or {})
    previous = old.get("affinity") or {}
    _check_node_affinity(affinity.pop("nodeAffinity", None) or {}, previous.get("nodeAffinity") or {}, problems)
    if "nodeAffinity" in previous:
        affinity["nodeAffinity"] = previous["nodeAffinity"]
    if affinity or "affinity" in old:
        rest["affinity"] = affinity
    return rest


def _check_node_affinity(new: Raw, old: Raw, problems: Problems) -> None:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    before = (old.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    after = (new.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    if before and len(before) != len(after):
        problems.invalid(path, after, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (term, known) in enumerate(zip(after, before, strict=False)):
        for field in ("matchExpressions", "matchFields"):
            kept = term.get(field) or []
            wanted = known.get(field) or []
            if kept[: len(wanted)] != wanted or (not known.keys() and term.keys()):
                problems.invalid(f"{path}[{index}]", term, "only additions are allowed (no mutations or deletions)")
                break
