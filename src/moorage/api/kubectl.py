"""Commands for people to copy. Names come from tenants, so every word is quoted for the shell."""

from __future__ import annotations

import json
import shlex
from typing import Any


def kubectl(command: str, *given: str, namespace: str = "") -> str:
    """Return a kubectl command line. `command` is trusted text, `given` are arguments from objects: none of them can
    end the command or be taken for an option."""
    scope = f"-n {shlex.quote(namespace)} " if namespace else ""
    end = ["--"] if any(word.startswith("-") for word in given) else []
    return " ".join([f"kubectl {scope}{command}", *end, *map(shlex.quote, given)])


def patch(target: str, change: Any, *, namespace: str = "", kind: str = "merge") -> str:
    """Return the command that patches one object; `target` is `resource/name`."""
    data = shlex.quote(json.dumps(change, separators=(",", ":")))
    return f"{kubectl('patch', target, namespace=namespace)} --type={kind} -p {data}"
