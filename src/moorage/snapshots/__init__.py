"""A cluster as data: read once from an API server or a file, written to a file, names hashed."""

from moorage.snapshots.cluster import ClusterObjects, list_cluster, read_cluster
from moorage.snapshots.files import (
    BLOCK,
    CUSTOM,
    KEYS,
    MOORAGE,
    About,
    custom_kinds,
    load,
    packed,
    pieces,
    pruned,
    raw,
    read,
    save,
)
from moorage.snapshots.unpacking import lines, unpacked

__all__ = [
    "BLOCK",
    "CUSTOM",
    "KEYS",
    "MOORAGE",
    "About",
    "ClusterObjects",
    "custom_kinds",
    "lines",
    "list_cluster",
    "load",
    "packed",
    "pieces",
    "pruned",
    "raw",
    "read",
    "read_cluster",
    "save",
    "unpacked",
]
