"""A cluster as data: read once from an API server or a file, written to a file, names hashed."""

from moorage.snapshots.cluster import ClusterObjects, list_cluster, read_cluster
from moorage.snapshots.files import (
    BLOCK,
    CUSTOM,
    GZIP,
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
    unpacked,
)

__all__ = [
    "BLOCK",
    "CUSTOM",
    "GZIP",
    "KEYS",
    "MOORAGE",
    "About",
    "ClusterObjects",
    "custom_kinds",
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
