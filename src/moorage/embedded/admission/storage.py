"""Claims, volumes, storage classes and the CSI drivers of nodes."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api import quantity, resources
from moorage.api.errors import QuantityError
from moorage.embedded.admission import syntax
from moorage.embedded.admission.pod_volumes import fill_in_claim_spec, fill_in_source
from moorage.embedded.admission.problems import POSITIVE, Problems
from moorage.embedded.admission.strategy import KindStrategy, check_label_selector, check_node_selector
from moorage.embedded.admission.syntax import amount
from moorage.store.objects import Raw
from moorage.store.rules import StoreCluster

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_CLAIM_FIXED = "spec is immutable after creation except resources.requests and "
_CLAIM_FIXED += "volumeAttributesClassName for bound claims"
_DRIVER: Raw = {
    "attachRequired": True,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "podInfoOnMount": False,
    "preventPodSchedulingIfMissing": False,
    "requiresRepublish": False,
    "seLinuxMount": False,
    "storageCapacity": False,
    "volumeLifecycleModes": ["Persistent"],
}
# Everything in the spec of a volume that is no source of it.
_NO_SOURCE = frozenset(
    (
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    )
)


def _default_claim(raw: Raw) -> Raw:
    return {**raw, "spec": fill_in_claim_spec(raw.get("spec"))}


def _admit_claim(raw: Raw, cluster: StoreCluster) -> Raw:
    """A claim that names no class gets the default one: the newest, where several are marked."""
    if raw["spec"].get("storageClassName") is not None:
        return raw
    marked = [c["metadata"] for c in cluster.every(resources.STORAGE_CLASSES) if _is_default(c)]
    if not marked:
        return raw
    newest = max(marked, key=lambda meta: meta["creationTimestamp"])["creationTimestamp"]
    name = min(meta["name"] for meta in marked if meta["creationTimestamp"] == newest)
    return {**raw, "spec": {**raw["spec"], "storageClassName": name}}


def _is_default(storage_class: Raw) -> bool:
    return (storage_class["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"


def _check_claim(raw: Raw, problems: Problems) -> None:
    check_claim_spec(raw["spec"], "spec", problems)


def check_claim_spec(spec: Raw, path: str, problems: Problems) -> None:
    if not spec.get("accessModes"):
        problems.required(f"{path}.accessModes", "at least 1 access mode is required")
    _check_modes(spec.get("accessModes") or (), f"{path}.accessModes", problems)
    check_label_selector(spec.get("selector"), f"{path}.selector", problems)
    wanted = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if wanted is None:
        problems.required(f"{path}.resources[storage]")
    else:
        _check_size(wanted, f"{path}.resources[storage]", problems)
    if spec.get("storageClassName"):
        name = spec["storageClassName"]
        problems.all_invalid(f"{path}.storageClassName", name, syntax.subdomain(name))
    _check_volume_mode(spec, path, problems)


def _check_modes(modes: Sequence[str], path: str, problems: Problems) -> None:
    for mode in modes:
        if mode not in _MODES:
            problems.not_supported(path, mode, _MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        problems.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def _check_volume_mode(spec: Raw, path: str, problems: Problems) -> None:
    if spec["volumeMode"] not in ("Block", "Filesystem"):
        problems.not_supported(f"{path}.volumeMode", spec["volumeMode"], ("Block", "Filesystem"))


def _check_size(size: str, path: str, problems: Problems) -> None:
    nanos = amount(size, path, problems)
    if nanos is not None and nanos <= 0:
        problems.invalid(path, size, POSITIVE)


def _check_claim_update(new: Raw, old: Raw, problems: Problems) -> None:
    after, before = dict(new["spec"]), dict(old["spec"])
    bound = (old.get("status") or {}).get("phase") == "Bound"
    if not before.get("volumeName"):
        before.pop("volumeName", None), after.pop("volumeName", None)
    if before.get("storageClassName") is None:
        after.pop("storageClassName", None), before.pop("storageClassName", None)
    size = ((after.get("resources") or {}).get("requests") or {}).get("storage")
    size_before = ((before.get("resources") or {}).get("requests") or {}).get("storage")
    if bound:
        for spec in (after, before):
            spec.pop("volumeAttributesClassName", None)
            spec["resources"] = {}
        capacity = (old["status"].get("capacity") or {}).get("storage")
        _check_growth(size, size_before, capacity, problems)
    if after != before:
        problems.forbidden("spec", _CLAIM_FIXED)


def _check_growth(size: str | None, before: str | None, capacity: str | None, problems: Problems) -> None:
    """A smaller size than before is refused unless it is still larger than what there is."""
    if size is None or before is None:
        return
    try:
        wanted = quantity.parse(size)
        shrinks = wanted < quantity.parse(before) and wanted <= quantity.parse(capacity or 0)
    except QuantityError:
        return
    if shrinks:
        problems.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def _default_volume(raw: Raw) -> Raw:
    spec = {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem", **(raw.get("spec") or {})}
    return {**raw, "spec": fill_in_source(spec)}


def _check_volume(raw: Raw, problems: Problems) -> None:
    spec = raw["spec"]
    if not spec.get("accessModes"):
        problems.required("spec.accessModes")
    _check_modes(spec.get("accessModes") or (), "spec.accessModes", problems)
    capacity = spec.get("capacity") or {}
    if not capacity:
        problems.required("spec.capacity")
    elif set(capacity) != {"storage"}:
        problems.not_supported("spec.capacity", sorted(capacity)[0], ("storage",))
    for resource, size in capacity.items():
        _check_size(size, f"spec.capacity[{resource}]", problems)
    policies = ("Delete", "Recycle", "Retain")
    problems.one_of("spec.persistentVolumeReclaimPolicy", spec["persistentVolumeReclaimPolicy"], policies)
    sources = sorted(spec.keys() - _NO_SOURCE)
    if not sources:
        problems.required("spec", "must specify a volume type")
    for extra in sources[1:]:
        problems.forbidden(f"spec.{extra}", "may not specify more than 1 volume type")
    required = (spec.get("nodeAffinity") or {}).get("required")
    if required is not None:
        check_node_selector(required, "spec.nodeAffinity.required", problems)
    elif "local" in spec:
        problems.required("spec.nodeAffinity", "Local volume requires node affinity")
    _check_volume_mode(spec, "spec", problems)


def _check_volume_update(new: Raw, old: Raw, problems: Problems) -> None:
    after, before = new["spec"], old["spec"]
    sources = {**before, **after}.keys() - _NO_SOURCE
    if any(after.get(field) != before.get(field) for field in sources):
        problems.forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
    problems.unchanged("spec.volumeMode", after["volumeMode"], before.get("volumeMode", "Filesystem"))
    if before.get("nodeAffinity") is not None:
        problems.unchanged("spec.nodeAffinity", after.get("nodeAffinity"), before["nodeAffinity"])


def _default_class(raw: Raw) -> Raw:
    return {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **raw}


def _check_class(raw: Raw, problems: Problems) -> None:
    if not raw.get("provisioner"):
        problems.required("provisioner")
    else:
        problems.all_invalid("provisioner", raw["provisioner"], syntax.qualified(raw["provisioner"].lower()))
    problems.one_of("reclaimPolicy", raw["reclaimPolicy"], ("Delete", "Retain"))
    modes = ("Immediate", "WaitForFirstConsumer")
    problems.one_of("volumeBindingMode", raw["volumeBindingMode"], modes)


def _check_class_update(new: Raw, old: Raw, problems: Problems) -> None:
    for field in ("parameters", "provisioner", "reclaimPolicy"):
        if (new.get(field) or {}) != (old.get(field) or {}):
            problems.forbidden(field, f"updates to {field} are forbidden.")
    problems.unchanged("volumeBindingMode", new["volumeBindingMode"], old.get("volumeBindingMode"))


def _default_csi_node(raw: Raw) -> Raw:
    spec = raw.get("spec") or {}
    drivers = [{"topologyKeys": None, **driver} for driver in spec.get("drivers") or ()]
    return {**raw, "spec": {**spec, "drivers": drivers or None}}


def _default_driver(raw: Raw) -> Raw:
    """As in pkg/apis/storage/v1/defaults.go."""
    return {**raw, "spec": {**_DRIVER, **(raw.get("spec") or {})}}


def _check_csi_node(raw: Raw, problems: Problems) -> None:
    seen: set[str] = set()
    for index, driver in enumerate((raw.get("spec") or {}).get("drivers") or ()):
        here, name = f"spec.drivers[{index}]", driver.get("name") or ""
        if not name:
            problems.required(f"{here}.name")
        else:
            problems.all_invalid(f"{here}.name", name, syntax.subdomain(name.lower()))
        if name in seen:
            problems.duplicate(f"{here}.name", name)
        seen.add(name)
        if not driver.get("nodeID"):
            problems.required(f"{here}.nodeID")
        problems.not_negative(f"{here}.allocatable.count", (driver.get("allocatable") or {}).get("count"))


PERSISTENT_VOLUME_CLAIMS = KindStrategy(
    default=_default_claim,
    admit=_admit_claim,
    check=_check_claim,
    check_update=_check_claim_update,
    first_status={"phase": "Pending"},
    generation=False,
)
PERSISTENT_VOLUMES = KindStrategy(
    default=_default_volume,
    check=_check_volume,
    check_update=_check_volume_update,
    first_status={"phase": "Pending"},
    generation=False,
)
STORAGE_CLASSES = KindStrategy(
    default=_default_class, check=_check_class, check_update=_check_class_update, generation=False
)
CSI_NODES = KindStrategy(default=_default_csi_node, check=_check_csi_node, first_status={}, generation=False)
CSI_DRIVERS = KindStrategy(default=_default_driver, generation=False)
CSI_STORAGE_CAPACITIES = KindStrategy(generation=False)
VOLUME_ATTACHMENTS = KindStrategy(first_status={"attached": False}, generation=False)
