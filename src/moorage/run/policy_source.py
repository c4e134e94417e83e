"""The legacy Policy that flags name, in a file or a ConfigMap, and the configuration that it amounts to."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

from moorage.api.errors import MoorageError
from moorage.api.resources import CONFIG_MAPS, Unstructured
from moorage.app.clock import SystemClock
from moorage.app.configuration import read_file
from moorage.client import connection
from moorage.config import ConvertedPolicy, convert_policy
from moorage.config.gates import FeatureGates
from moorage.run.flags import Flags

KEY = "policy.cfg"
_SOURCES = ("config", "policy-config-file", "policy-configmap")


def policy_of(flags: Flags, gates: FeatureGates) -> ConvertedPolicy | None:
    """None: the flags name no Policy."""
    named = [f"--{name}" for name in _SOURCES if flags.text(name)]
    if len(named) > 1:
        raise MoorageError(f"{' and '.join(named)} exclude each other: name one configuration")
    if path := flags.text("policy-config-file"):
        return convert_policy(read_file(Path(path)), source=path, gates=gates)
    if name := flags.text("policy-configmap"):
        where = f"configmap {flags.text('policy-configmap-namespace')}/{name}"
        return convert_policy(asyncio.run(_read(flags, where)), source=f"{where}, {KEY}", gates=gates)
    return None


async def _read(flags: Flags, where: str) -> str:
    credentials = await connection.find(flags.text("kubeconfig"))
    if master := flags.text("master"):
        credentials = dataclasses.replace(credentials, server=master)
    client = connection.connect(credentials, SystemClock(), user_agent=connection.default_user_agent())
    try:
        found = await client.get(
            CONFIG_MAPS, flags.text("policy-configmap"), flags.text("policy-configmap-namespace")
        )
    except MoorageError as error:
        raise MoorageError(f"--policy-configmap: {where} cannot be read: {error}") from error
    finally:
        await client.close()
    text = found.get("data", KEY, default=None) if isinstance(found, Unstructured) else None
    if not isinstance(text, str):
        raise MoorageError(f"--policy-configmap: {where} has no key {KEY}, where the Policy belongs")
    return text
