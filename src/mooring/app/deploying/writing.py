"""Objects as YAML: one stream, or a folder for kustomize."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]


class _Dumper(yaml.SafeDumper):
    """Lists indented as kubectl prints them, texts of several lines as blocks, nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(objects: list[Json]) -> str:
    """A stream of documents."""
    return "---\n".join(
        yaml.dump(obj, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=1000)
        for obj in objects
    )


def kustomization(folder: Path, objects: list[Json]) -> list[Path]:
    """Write a base: one file per kind and a kustomization.yaml that names them."""
    folder.mkdir(parents=True, exist_ok=True)
    by_file: dict[str, list[Json]] = {}
    for obj in objects:
        by_file.setdefault(_file(obj), []).append(obj)
    listing = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(by_file),
    }
    written = []
    for name, content in [*by_file.items(), ("kustomization.yaml", [listing])]:
        path = folder / name
        path.write_text(to_yaml(content), encoding="utf-8")
        written.append(path)
    return written


def _file(obj: Json) -> str:
    kind: str = obj["kind"]
    if "Role" in kind or kind == "ServiceAccount":
        return "rbac.yaml"
    return {"Service": "metrics.yaml", "ServiceMonitor": "metrics.yaml"}.get(kind, f"{kind.lower()}.yaml")
