"""A cluster in a file, as the scheduler sees it: what `mooring snapshot` writes and other commands read.

JSON, compressed where the name ends in .gz. The keys are those of kube-scheduler-simulator's export, with
more kinds: either side reads the other's files. What no plugin reads is left out: containers' environment and
commands, managed fields, and annotations, unless they are asked for or default plugins read them."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace

from mooring.api import decoding
from mooring.api import resources as kinds
from mooring.api.errors import MooringError, ObjectError
from mooring.api.meta import Object
from mooring.api.pod import Pod
from mooring.api.resources import Resource, Unstructured
from mooring.app.hashed_names import hash_names
from mooring.app.live_cluster import LiveCluster
from mooring.app.shared_parts import SharedParts
from mooring.plugins.csi_translation import MIGRATED_PLUGINS
from mooring.plugins.volumes import BETA_CLASS, BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from mooring.telemetry import logs

KEYS: dict[str, Resource] = {
    "namespaces": kinds.NAMESPACES,
    "nodes": kinds.NODES,
    "services": kinds.SERVICES,
    "replicationControllers": kinds.REPLICATION_CONTROLLERS,
    "replicaSets": kinds.REPLICA_SETS,
    "statefulSets": kinds.STATEFUL_SETS,
    "storageClasses": kinds.STORAGE_CLASSES,
    "pvs": kinds.PERSISTENT_VOLUMES,
    "pvcs": kinds.PERSISTENT_VOLUME_CLAIMS,
    "csiNodes": kinds.CSI_NODES,
    "csiDrivers": kinds.CSI_DRIVERS,
    "csiStorageCapacities": kinds.CSI_STORAGE_CAPACITIES,
    "volumeAttachments": kinds.VOLUME_ATTACHMENTS,
    "pdbs": kinds.POD_DISRUPTION_BUDGETS,
    "priorityClasses": kinds.PRIORITY_CLASSES,
    "pods": kinds.PODS,
}
"""Key of a file → the kind that it lists, in the order in which an engine takes them best."""

CUSTOM = "custom"
"""The key of all other kinds: `plural.version.group` → objects, Unstructured."""
MOORING = "mooring"
"""The key of what is known about the snapshot itself."""
READ_ANNOTATIONS = {BETA_CLASS, BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, MIGRATED_PLUGINS}
"""Those that default plugins read: without them a bound claim would not count as bound."""
MOST_BYTES = 4 << 30
GZIP = b"\x1f\x8b"

_log = logs.get(__name__)


class About(msgspec.Struct, rename="camel", omit_defaults=True):
    """What a snapshot says of itself."""

    taken: str = ""
    namespace: str = "default"
    unserved: tuple[str, ...] = ()
    unread: dict[str, str] = {}
    annotations: bool = False


def save(
    cluster: LiveCluster, path: Path, *, taken: str, annotations: bool = False, salt: str | None = None
) -> None:
    """Write the cluster to a file, as a whole or not at all. With a salt, names are hashed."""
    plain = {
        resource: [_plain(pruned(obj, annotations)) for obj in objects]
        for resource, objects in cluster.objects.items()
    }
    namespace, unread = cluster.namespace, {str(kind): why for kind, why in cluster.unread.items()}
    if salt is not None:
        hashed, renamed = hash_names(
            {kind: msgspec.to_builtins(items) for kind, items in plain.items()}, salt
        )
        plain, namespace = dict(hashed), renamed.get(namespace, namespace)
        unread = dict.fromkeys(unread, "not allowed")  # what the server said may name users
    data: dict[str, Any] = {}
    names = {resource: key for key, resource in KEYS.items()}
    for resource, kept in plain.items():
        if resource in names:
            data[names[resource]] = kept
        else:
            data.setdefault(CUSTOM, {})[str(resource)] = kept
    data[MOORING] = About(taken, namespace, tuple(map(str, cluster.unserved)), unread, annotations)
    text = msgspec.json.encode(data)
    packed = gzip.compress(text, 6, mtime=0) if path.suffix == ".gz" else text
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(packed)
        partial.replace(path)
    except OSError as error:
        raise MooringError(f"the snapshot {path} cannot be written: {error.strerror}") from error


def _plain(obj: Any) -> Any:
    return obj.raw if isinstance(obj, Unstructured) else obj


def pruned(obj: Any, annotations: bool) -> Any:
    """Without managed fields and, unless they are asked for or default plugins read them, annotations.
    Environment and commands of containers are not even read."""
    if isinstance(obj, Unstructured):
        dropped = {"managedFields"} if annotations else {"managedFields", "annotations"}
        meta = {key: value for key, value in obj.raw["metadata"].items() if key not in dropped}
        return Unstructured({**obj.raw, "metadata": meta})
    if annotations:
        return obj
    kept = {key: text for key, text in obj.metadata.annotations.items() if key in READ_ANNOTATIONS}
    return replace(obj, metadata=replace(obj.metadata, annotations=kept))


def custom_kinds(path: Path) -> list[Resource]:
    """The kinds of one's own in a file, as far as there are objects of them."""
    raw, found = _parts(path), []
    given: dict[str, list[Any]] = msgspec.json.decode(raw[CUSTOM]) if CUSTOM in raw else {}
    for name, items in given.items():
        if items:
            plural, version, group = name.split(".", 2)
            namespaced = "namespace" in items[0]["metadata"]
            found.append(kinds.custom(group, version, plural, items[0]["kind"], namespaced))
    return found


def raw(path: Path) -> Iterator[tuple[Resource, list[dict[str, Any]]]]:
    """All objects of a file as they stand there, kind by kind."""
    parts = _parts(path)
    for key, resource in KEYS.items():
        if key in parts:
            yield resource, _raw_items(path, key, parts[key])
    custom = msgspec.json.decode(parts[CUSTOM], type=dict[str, msgspec.Raw]) if CUSTOM in parts else {}
    for resource in custom_kinds(path):
        yield resource, _raw_items(path, f"{CUSTOM}.{resource}", custom[str(resource)])


def _raw_items(path: Path, key: str, items: msgspec.Raw) -> list[dict[str, Any]]:
    try:
        return [
            msgspec.json.decode(item)
            for item in msgspec.json.decode(items, type=list[msgspec.Raw])
            if msgspec.json.decode(item, type=Object).metadata.name
        ]
    except msgspec.DecodeError as error:
        raise MooringError(f"the snapshot {path}, {key}: a list of objects is expected: {error}") from error


def load(path: Path, resources: Iterable[Resource] = ()) -> LiveCluster:
    """The cluster in a file. Kinds of one's own are known by `resources`; others of the file are left out."""
    raw = _parts(path)
    about = msgspec.json.decode(raw[MOORING], type=About) if MOORING in raw else About()
    objects: dict[Resource, Sequence[Any]] = {}
    for key, resource in KEYS.items():
        if key in raw:
            objects[resource] = list(_objects(path, key, resource, raw[key]))
    wanted = {str(resource): resource for resource in resources}
    given = msgspec.json.decode(raw[CUSTOM], type=dict[str, msgspec.Raw]) if CUSTOM in raw else {}
    for name, items in given.items():
        if name in wanted:
            objects[wanted[name]] = list(_objects(path, f"{CUSTOM}.{name}", wanted[name], items))
    objects = {resource: objects[resource] for resource in sorted(objects, key=lambda r: r == kinds.PODS)}
    known = {**{str(resource): resource for resource in KEYS.values()}, **wanted}
    return LiveCluster(
        objects,
        tuple(known[name] for name in about.unserved if name in known),
        {known[name]: why for name, why in about.unread.items() if name in known},
        about.namespace,
    )


def _parts(path: Path) -> Mapping[str, msgspec.Raw]:
    """The file's keys with their values, not read yet."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MooringError(f"the snapshot {path} cannot be read: {error.strerror}") from error
    if data[:2] == GZIP:
        data = unpacked(f"the snapshot {path}", data)
    try:
        if data.lstrip()[:1] != b"{":
            data = msgspec.json.encode(yaml.load(data, yaml.CSafeLoader))
        found: dict[str, msgspec.Raw] = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError, TypeError) as error:
        why = " ".join(str(error).split())
        raise MooringError(f"the snapshot {path} is neither JSON nor YAML of lists by kind: {why}") from error
    if not found.keys() & KEYS.keys():
        raise MooringError(
            f"the snapshot {path} has none of the keys {', '.join(KEYS)}: make one by `mooring snapshot`"
        )
    return found


def unpacked(source: str, data: bytes) -> bytes:
    """What was packed by gzip; `source` is what messages call it."""
    try:
        with gzip.open(io.BytesIO(data)) as packed:
            found = packed.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise MooringError(f"{source} cannot be read: {error}") from error
    if len(found) > MOST_BYTES:
        raise MooringError(f"{source} has more than {MOST_BYTES >> 30} GiB of JSON")
    return found


def _objects(path: Path, key: str, resource: Resource, items: msgspec.Raw) -> Iterator[Any]:
    """The readable ones; the others are set aside and logged."""
    read, parts = decoding.reader(resource), SharedParts()
    try:
        given = msgspec.json.decode(items, type=list[msgspec.Raw])
    except msgspec.DecodeError as error:
        raise MooringError(f"the snapshot {path}, {key}: a list of objects is expected: {error}") from error
    for item in given:
        try:
            obj = read(item)
            decoding.validate(obj)
        except ObjectError as error:
            _log.warning("Object set aside: it cannot be read", resource=resource, err=error)
            continue
        if isinstance(obj, Object) and not obj.metadata.uid:
            # The simulator's exports drop them; here pods are known by theirs.
            obj = replace(obj, metadata=replace(obj.metadata, uid=f"{resource.plural}/{obj.key}"))
        if isinstance(obj, Pod):
            parts.share(obj)
        yield obj
