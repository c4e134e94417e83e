"""A configuration -> the YAML that `--write-config-to` leaves: complete, version v1, readable again.

Fields that are unset (null, an empty list, a weight of zero, an empty plugin set) are left out.
"""

from typing import Any

import msgspec
import yaml

from mooring.config import durations
from mooring.config.decoding import is_duration, item_type, without_none
from mooring.config.plugin_args import PluginArgs
from mooring.config.types import (
    API_VERSION,
    KIND,
    KubeSchedulerConfiguration,
    Plugin,
    Plugins,
    wire_fields,
)


def dump(config: KubeSchedulerConfiguration) -> str:
    """The configuration as YAML; `load(dump(config))` equals `config`."""
    tree = {"apiVersion": API_VERSION, "kind": KIND, **to_wire(config)}
    text: str = yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


def to_wire(record: msgspec.Struct) -> dict[str, Any]:
    """A record as plain values under its wire names."""
    result: dict[str, Any] = {}
    for name, field in wire_fields(type(record)).items():
        value = getattr(record, field.name)
        if not _is_unset(value, field, record):
            result[name] = _plain(value, field.type)
    return result


def _is_unset(value: object, field: msgspec.structs.FieldInfo, owner: msgspec.Struct) -> bool:
    """Whether leaving the field out says the same; zeros and false are written, as upstream writes them."""
    if value is None:
        return True
    if isinstance(owner, Plugin | Plugins):
        return bool(value == field.default)
    return value in ("", b"", (), [], {}) and value in (field.default, _made(field))


def _made(field: msgspec.structs.FieldInfo) -> object:
    factory = field.default_factory
    return None if factory is msgspec.NODEFAULT else factory()


def _plain(value: Any, annotation: Any) -> Any:
    if value is not None and is_duration(without_none(annotation)):
        return durations.format(value)
    if isinstance(value, PluginArgs):
        return {"apiVersion": API_VERSION, "kind": type(value).__name__, **to_wire(value)}
    if isinstance(value, msgspec.Struct) and value.__struct_config__.tag is None:
        return to_wire(value)
    if isinstance(value, tuple | list):
        return [_plain(item, item_type(without_none(annotation))) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return msgspec.to_builtins(value, str_keys=True)


class _Dumper(yaml.CSafeDumper):
    """Writes repeated values out in full: anchors would surprise whoever edits the file."""

    def ignore_aliases(self, data: object) -> bool:
        return True
