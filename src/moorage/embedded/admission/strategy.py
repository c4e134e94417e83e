"""The strategy of a kind for writes, and checks that all kinds share: metadata and selectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from moorage.embedded.admission import syntax
from moorage.embedded.admission.problems import Problems
from moorage.store.objects import Raw
from moorage.store.rules import StoreCluster

_ANNOTATIONS_LIMIT = 256 * 1024
ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_NEEDED = "must be specified when `operator` is 'In' or 'NotIn'"
_UNWANTED = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_SINGLE = "must be specified single value when `operator` is 'Lt' or 'Gt'"
_UNKNOWN = "not a valid selector operator"


def _same(raw: Raw) -> Raw:
    return raw


def _as_created(raw: Raw, cluster: StoreCluster) -> Raw:
    return raw


def _as_updated(new: Raw, old: Raw, cluster: StoreCluster) -> Raw:
    return new


def _fine(raw: Raw, problems: Problems) -> None:
    return


def _may_change(new: Raw, old: Raw, problems: Problems) -> None:
    return


@dataclass(frozen=True, slots=True)
class KindStrategy:
    """How writes of one kind are completed and checked, as by RESTCreateStrategy and RESTUpdateStrategy.

    A new object goes through `default`, `admit`, `check` and `check_new`; a changed one through `default`,
    `carry`, `check` and `check_update`; a changed status through `default_status` and `check_status`.
    """

    default: Callable[[Raw], Raw] = _same
    """Set defaults whenever an object is read from a client."""
    default_status: Callable[[Raw], Raw] = _same
    """As `default`, for a write to the status."""
    admit: Callable[[Raw, StoreCluster], Raw] = _as_created
    """Complete a new object with values that depend on the cluster, or reject it."""
    carry: Callable[[Raw, Raw, StoreCluster], Raw] = _as_updated
    """Copy fields into the new state that an update omits or cannot change."""
    check: Callable[[Raw, Problems], None] = _fine
    check_new: Callable[[Raw, Problems], None] = _fine
    """Additional checks of new objects."""
    check_update: Callable[[Raw, Raw, Problems], None] = _may_change
    """Compare the new with the old state."""
    check_status: Callable[[Raw, Raw, Problems], None] = _may_change
    name: syntax.Check = syntax.subdomain
    first_status: Raw | None = None
    """The status of a new object, whatever the client sends; None keeps the client's."""
    generation: bool = True
    """Whether the server counts changes of the spec in metadata.generation."""


def check_metadata(meta: Raw, namespaced: bool, name_check: syntax.Check, problems: Problems) -> None:
    """Check the metadata of a created or changed object."""
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


def check_metadata_update(new: Raw, old: Raw, problems: Problems) -> None:
    if "deletionTimestamp" in old:
        added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            shown = "{" + ", ".join(f'"{finalizer}"' for finalizer in added) + "}"
            problems.forbidden(
                "metadata.finalizers",
                f"no new finalizers can be added if the object is being deleted, found new finalizers []string{shown}",
            )


def check_labels(labels: Mapping[str, str], path: str, problems: Problems) -> None:
    for key, value in labels.items():
        if sentences := syntax.qualified(key):
            problems.all_invalid(path, key, sentences)
        if sentences := syntax.label_value(value):
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
    elif sentences := syntax.label(namespace):
        problems.all_invalid("metadata.namespace", namespace, sentences)


def _check_annotations(annotations: Mapping[str, str], problems: Problems) -> None:
    size = 0
    for key, value in annotations.items():
        if sentences := syntax.qualified(key.lower()):
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
            problems.invalid(f"{path}.apiVersion", owner["apiVersion"], "must be <group>/<version> or <version>")
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
        problems.all_invalid("metadata.finalizers", finalizer, syntax.qualified(finalizer))
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        problems.invalid(
            "metadata.finalizers", list(finalizers), f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        )


def check_label_selector(selector: Raw | None, path: str, problems: Problems) -> None:
    if not selector:
        return
    if selector.get("matchLabels"):
        check_labels(selector["matchLabels"], f"{path}.matchLabels", problems)
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        _check_requirement(expression, f"{path}.matchExpressions[{index}]", problems, numbers=False)


def is_empty(selector: Raw | None) -> bool:
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def check_node_selector(selector: Raw, path: str, problems: Problems) -> None:
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        problems.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        return
    for index, term in enumerate(terms):
        check_node_term(term, f"{path}.nodeSelectorTerms[{index}]", problems)


def check_node_term(term: Raw, path: str, problems: Problems, *, values: bool = True) -> None:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        _check_requirement(expression, f"{path}.matchExpressions[{index}]", problems, numbers=True, check_values=values)
    for index, field in enumerate(term.get("matchFields") or ()):
        _check_node_field(field, f"{path}.matchFields[{index}]", problems)


def _check_requirement(
    expression: Raw, path: str, problems: Problems, *, numbers: bool, check_values: bool = True
) -> None:
    operator, values = expression.get("operator"), expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            problems.required(f"{path}.values", _NEEDED)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            problems.forbidden(f"{path}.values", _UNWANTED)
    elif numbers and operator in ("Gt", "Lt"):
        if len(values) != 1:
            problems.required(f"{path}.values", _SINGLE)
    else:
        problems.invalid(f"{path}.operator", operator or "", _UNKNOWN)
    key = expression.get("key") or ""
    problems.all_invalid(f"{path}.key", key, syntax.qualified(key))
    if check_values:
        _check_values(values, path, problems)


def _check_values(values: Sequence[str], path: str, problems: Problems) -> None:
    for index, value in enumerate(values):
        if sentences := syntax.label_value(value):
            problems.all_invalid(f"{path}.values[{index}]", value, sentences)


def _check_node_field(field: Raw, path: str, problems: Problems) -> None:
    operator, values = field.get("operator"), field.get("values") or ()
    if operator not in ("In", "NotIn"):
        problems.invalid(f"{path}.operator", operator or "", _UNKNOWN)
    elif len(values) != 1:
        problems.required(
            f"{path}.values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        )
    if field.get("key") != "metadata.name":
        problems.invalid(f"{path}.key", field.get("key") or "", "not a valid field selector key")
        return
    for index, value in enumerate(values):
        problems.all_invalid(f"{path}.values[{index}]", value, syntax.subdomain(value))
