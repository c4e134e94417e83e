"""The rules of metadata, which all kinds share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.embedded.admission import names
from mooring.embedded.admission.problems import Problems
from mooring.store.objects import Raw

_ANNOTATIONS_LIMIT = 256 * 1024
ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


def check(meta: Raw, namespaced: bool, name_check: names.Check, problems: Problems) -> None:
    """Metadata of an object that is created or changed."""
    if meta.get("generateName"):
        prefix = meta["generateName"]
        problems.all_invalid("metadata.generateName", prefix, name_check(_as_name(prefix)))
    if not meta.get("name"):
        problems.required("metadata.name", "name or generateName is required")
    else:
        problems.all_invalid("metadata.name", meta["name"], name_check(meta["name"]))
    _check_namespace(meta.get("namespace") or "", namespaced, problems)
    if meta.get("labels"):
        check_labels(meta["labels"], "metadata.labels", problems)
    if meta.get("annotations"):
        _check_annotations(meta["annotations"], problems)
    if meta.get("ownerReferences"):
        _check_owners(meta["ownerReferences"], problems)
    if meta.get("finalizers"):
        _check_finalizers(meta["finalizers"], problems)


def check_update(new: Raw, old: Raw, problems: Problems) -> None:
    if "deletionTimestamp" in old:
        added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            shown = "{" + ", ".join(f'"{finalizer}"' for finalizer in added) + "}"
            problems.forbidden(
                "metadata.finalizers",
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{shown}",
            )


def check_labels(labels: Mapping[str, str], path: str, problems: Problems) -> None:
    for key, value in labels.items():
        if sentences := names.qualified(key):
            problems.all_invalid(path, key, sentences)
        if sentences := names.label_value(value):
            problems.all_invalid(path, value, sentences)


def _as_name(prefix: str) -> str:
    """A prefix may end in a dash, which no name may."""
    return f"{prefix[:-1]}a" if prefix.endswith("-") and len(prefix) > 1 else prefix


def _check_namespace(namespace: str, namespaced: bool, problems: Problems) -> None:
    if not namespaced:
        if namespace:
            problems.forbidden("metadata.namespace", "not allowed on this type")
    elif not namespace:
        problems.required("metadata.namespace")
    elif sentences := names.label(namespace):
        problems.all_invalid("metadata.namespace", namespace, sentences)


def _check_annotations(annotations: Mapping[str, str], problems: Problems) -> None:
    size = 0
    for key, value in annotations.items():
        if sentences := names.qualified(key.lower()):
            problems.all_invalid("metadata.annotations", key, sentences)
        size += len(key.encode()) + len(value.encode())
    if size > _ANNOTATIONS_LIMIT:
        problems.too_long("metadata.annotations", _ANNOTATIONS_LIMIT)


def _check_owners(owners: Sequence[Raw], problems: Problems) -> None:
    controller = ""
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                problems.required(f"{path}.{field}", "must not be empty")
        if (owner.get("apiVersion") or "").count("/") > 1:
            problems.invalid(
                f"{path}.apiVersion", owner["apiVersion"], "must be <group>/<version> or <version>"
            )
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            problems.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            current = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                problems.invalid(
                    "metadata.ownerReferences",
                    list(owners),
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {current}",
                )
            controller = controller or current


def _check_finalizers(finalizers: Sequence[str], problems: Problems) -> None:
    for finalizer in finalizers:
        problems.all_invalid("metadata.finalizers", finalizer, names.qualified(finalizer))
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        problems.invalid(
            "metadata.finalizers", list(finalizers), f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        )
