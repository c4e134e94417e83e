"""A cluster in a file, as the scheduler sees it: what `moorage snapshot` writes and other commands read.

JSON, compressed where the name ends in .gz. The keys are those of kube-scheduler-simulator's export, with
more kinds: either side reads the other's files. What no plugin reads is left out: containers' environment and
commands, managed fields, and annotations, unless they are asked for or default plugins read them."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage.api import decoding, json_text, private_files, yaml_text
from moorage.api import resources as kinds
from moorage.api.errors import MoorageError, ObjectError
from moorage.api.former_name import FORMER_NAME, with_current_prefix
from moorage.api.meta import Object
from moorage.api.pod import Pod
from moorage.api.pod_defaults import with_defaults
from moorage.api.resources import Resource, Unstructured
from moorage.plugins.csi_translation import MIGRATED_PLUGINS
from moorage.plugins.volumes import BETA_CLASS, BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from moorage.snapshots.anonymize import hash_names
from moorage.snapshots.cluster import ClusterObjects, SharedParts
from moorage.snapshots.unpacking import read_file, unpacked
from moorage.telemetry import logs

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
MOORAGE = "moorage"
"""The key of what is known about the snapshot itself."""
READ_ANNOTATIONS = {BETA_CLASS, BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, MIGRATED_PLUGINS}
"""Those that default plugins read: without them a bound claim would not count as bound."""
BLOCK = 64 * 1024
"""Bytes of text that are compressed at once."""

_log = logs.get(__name__)


class About(msgspec.Struct, rename="camel", omit_defaults=True):
    """What a snapshot says of itself."""

    taken: str = ""
    namespace: str = "default"
    unserved: tuple[str, ...] = ()
    unread: dict[str, str] = {}
    annotations: bool = False


def save(
    cluster: ClusterObjects, path: Path, *, taken: str, annotations: bool = False, salt: str | None = None
) -> None:
    """Write the cluster to a file that only the user can read, as a whole or not at all. A salt hashes the names."""
    text = pieces(cluster, taken=taken, annotations=annotations, salt=salt)
    try:
        private_files.write(path, packed(text) if path.suffix == ".gz" else text)
    except OSError as error:
        raise MoorageError(f"the snapshot {path} cannot be written: {error.strerror}") from error


def pieces(
    cluster: ClusterObjects, *, taken: str, annotations: bool = False, salt: str | None = None
) -> Iterator[bytes]:
    """The text of a snapshot, object by object: as a whole it may be hundreds of megabytes. Hashing names
    takes all objects at once."""
    objects: Mapping[Resource, Iterable[Any]] = {
        resource: (_plain(pruned(obj, annotations)) for obj in found) for resource, found in cluster.objects.items()
    }
    namespace, unread = cluster.namespace, {str(kind): why for kind, why in cluster.unread.items()}
    if salt is not None:
        objects, renamed = hash_names({kind: msgspec.to_builtins(list(items)) for kind, items in objects.items()}, salt)
        namespace = renamed.get(namespace, namespace)
        unread = dict.fromkeys(unread, "not allowed")  # what the server said may name users
    about = About(taken, namespace, tuple(map(str, cluster.unserved)), unread, annotations)
    yield b'{"%b":%b' % (MOORAGE.encode(), msgspec.json.encode(about))
    names = {resource: key for key, resource in KEYS.items()}
    for resource, items in objects.items():
        if resource in names:
            yield b',"%b":' % names[resource].encode()
            yield from _listed(items)
    yield b',"%b":{' % CUSTOM.encode()
    custom = [resource for resource in objects if resource not in names]
    for number, resource in enumerate(custom):
        yield b'%b"%b":' % (b"," if number else b"", str(resource).encode())
        yield from _listed(objects[resource])
    yield b"}}"


def _listed(items: Iterable[Any]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    before = b"["
    for item in items:
        yield before + encode(item)
        before = b","
    yield b"[]" if before == b"[" else b"]"


def packed(text: Iterable[bytes]) -> Iterator[bytes]:
    """The text compressed by gzip, a block at a time."""
    packer, block = zlib.compressobj(6, wbits=zlib.MAX_WBITS | 16), bytearray()
    for piece in text:
        block += piece
        if len(block) >= BLOCK:
            yield packer.compress(block)
            block.clear()
    yield packer.compress(block) + packer.flush()


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
    found = []
    for name, items in _custom(_parts(read_file(path), path), path).items():
        first = next(_raw_items(path, f"{CUSTOM}.{name}", items), None)
        if first is None:
            continue
        if name.count(".") < 2 or not isinstance(first.get("kind"), str):
            raise MoorageError(f"the snapshot {path}, {CUSTOM}.{name}: expected plural.version.group, and a kind")
        plural, version, group = name.split(".", 2)
        found.append(kinds.custom(group, version, plural, first["kind"], "namespace" in first["metadata"]))
    return found


def raw(path: Path) -> Iterator[tuple[Resource, list[dict[str, Any]]]]:
    """All objects of a file as they stand there, kind by kind."""
    parts = _parts(read_file(path), path)
    for key, resource in KEYS.items():
        if key in parts:
            yield resource, list(_raw_items(path, key, parts[key]))
    custom = _custom(parts, path)
    for resource in custom_kinds(path):
        yield resource, list(_raw_items(path, f"{CUSTOM}.{resource}", custom[str(resource)]))


def _raw_items(path: Path, key: str, items: msgspec.Raw) -> Iterator[dict[str, Any]]:
    try:
        for item in json_text.load(items, "the list", list[msgspec.Raw], max_bytes=sys.maxsize):
            if json_text.load(item, "an object", Object).metadata.name:
                yield json_text.load(item, "an object")
    except json_text.JsonError as error:
        raise _no_list(path, key, error) from error


def _no_list(source: Path | str, key: str, error: Exception) -> MoorageError:
    return MoorageError(f"the snapshot {source}, {key}: a list of objects is expected: {error}")


def _custom(parts: Mapping[str, msgspec.Raw], source: Path | str) -> dict[str, msgspec.Raw]:
    """Return the lists of custom kinds, not read yet."""
    where = f"the snapshot {source}, {CUSTOM}"
    return (
        json_text.load(parts[CUSTOM], where, dict[str, msgspec.Raw], max_bytes=sys.maxsize) if CUSTOM in parts else {}
    )


def load(path: Path, resources: Iterable[Resource] = ()) -> ClusterObjects:
    """The cluster in a file. Kinds of one's own are known by `resources`; others of the file are left out."""
    return read(read_file(path), path, resources)


def read(data: bytes, source: Path | str, resources: Iterable[Resource] = ()) -> ClusterObjects:
    """The cluster of a snapshot that is at hand; `source` is for messages."""
    raw = _parts(data, source)
    about = json_text.load(raw[MOORAGE], f"the snapshot {source}, {MOORAGE}", About) if MOORAGE in raw else About()
    objects: dict[Resource, Sequence[Any]] = {}
    for key, resource in KEYS.items():
        if key in raw:
            objects[resource] = list(_objects(source, key, resource, raw[key]))
    wanted = {str(resource): resource for resource in resources}
    for name, items in _custom(raw, source).items():
        if name in wanted:
            objects[wanted[name]] = list(_objects(source, f"{CUSTOM}.{name}", wanted[name], items))
    objects = {resource: objects[resource] for resource in sorted(objects, key=lambda r: r == kinds.PODS)}
    known = {**{str(resource): resource for resource in KEYS.values()}, **wanted}
    return ClusterObjects(
        objects,
        tuple(known[name] for name in about.unserved if name in known),
        {known[name]: why for name, why in about.unread.items() if name in known},
        about.namespace,
    )


def _parts(data: bytes, source: Path | str) -> Mapping[str, msgspec.Raw]:
    """The keys with their values, not read yet."""
    data = unpacked(f"the snapshot {source}", data)
    try:
        if data.lstrip()[:1] != b"{":
            data = msgspec.json.encode(yaml_text.load(data, f"the snapshot {source}", max_bytes=sys.maxsize))
        text = with_current_prefix(data)
        found = json_text.load(text, "the text", dict[str, msgspec.Raw], max_bytes=sys.maxsize)
    except (json_text.JsonError, TypeError) as error:
        why = " ".join(str(error).split())
        raise MoorageError(f"the snapshot {source} is neither JSON nor YAML of lists by kind: {why}") from error
    if FORMER_NAME in found:
        found.setdefault(MOORAGE, found.pop(FORMER_NAME))
    if not found.keys() & KEYS.keys():
        raise MoorageError(
            f"the snapshot {source} has none of the keys {', '.join(KEYS)}: make one by `moorage snapshot`"
        )
    return found


def _objects(source: Path | str, key: str, resource: Resource, items: msgspec.Raw) -> Iterator[Any]:
    """The readable ones; the others are set aside and logged."""
    read, parts = decoding.reader(resource), SharedParts()
    try:
        given = json_text.load(items, "the list", list[msgspec.Raw], max_bytes=sys.maxsize)
    except json_text.JsonError as error:
        raise _no_list(source, key, error) from error
    for item in given:
        try:
            obj = read(item)
            decoding.validate(obj)
        except ObjectError as error:
            _log.warning("Object ignored because it cannot be read", resource=resource, err=error)
            continue
        if isinstance(obj, Object) and not obj.metadata.uid:
            # The simulator's exports drop them; here pods are known by theirs.
            obj = replace(obj, metadata=replace(obj.metadata, uid=f"{resource.plural}/{obj.key}"))
        if isinstance(obj, Pod):
            obj = with_defaults(obj)  # the file may be written by hand
            parts.share(obj)
        yield obj
