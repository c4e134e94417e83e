"""Writes the kubeconfig of an embedded cluster, with mode 0600 and in one step."""

from __future__ import annotations

import base64
from pathlib import Path

from moorage.api import private_files, yaml_text
from moorage.api.errors import MoorageError
from moorage.api.former_name import FORMER_NAME

NAME = "moorage"
HOME = Path("~/.moorage")
"""The folder of kubeconfigs; only the user can enter it."""


def text(server: str, token: str, ca: bytes) -> str:
    """Return a kubeconfig with one cluster, one user and one context, all named `moorage`."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
    }
    return yaml_text.dump(config)


def write(path: Path, content: str) -> None:
    """Write the file atomically, so that no other user can read the token. A kubeconfig that Moorage did not
    write is never overwritten: it may have the only copy of a user's credentials."""
    try:
        if path.exists() and not _is_ours(path):
            raise MoorageError(
                f"{path} is a kubeconfig that moorage did not write; name another file with --kubeconfig"
            )
        private_files.make_folder(path.parent)
        if path.parent == HOME.expanduser():
            private_files.tighten(path.parent)
        private_files.write(path, [content.encode()])
    except OSError as error:
        raise MoorageError(f"cannot write the kubeconfig {path}: {error.strerror}") from error


def _is_ours(path: Path) -> bool:
    try:
        config = yaml_text.load(path.read_bytes(), str(path))
    except yaml_text.YamlError:
        return False
    if config is None:
        return True  # an empty file holds nothing to lose
    names = [_name(entry) for entry in config.get("users") or ()] if isinstance(config, dict) else []
    return names in ([NAME], [FORMER_NAME])


def _name(entry: object) -> object:
    return entry.get("name") if isinstance(entry, dict) else None
