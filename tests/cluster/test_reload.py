"""A changed configuration on the real API server, with exactly the rights that `moorage manifests` grants."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cluster import objects
from tests.cluster.api import Json, eventually
from tests.cluster.moorage_process import LEASE, MoorageProcess
from tests.cluster.worlds import World, with_sample


def rewrite(process: MoorageProcess, folder: Path, *profiles: Json) -> None:
    """As an operator would edit the file."""
    file = folder / f"{process.name}.yaml"
    config = json.loads(file.read_text())
    file.write_text(json.dumps({**config, "profiles": list(profiles)}))


def test_a_reload_brings_a_profile_and_fails_alone_where_a_right_is_missing(world: World) -> None:
    plain: Json = {"schedulerName": "plain"}
    process = world.moorage(plain)
    world.nodes("node1", "node2")
    world.pod("waits", scheduler="sample-scheduler")
    rewrite(process, world.folder, plain, with_sample())
    assert "1 Node: node1, 1 Node: node2" in world.wait_refused("waits")
    world.label("node2", cpu="true")
    assert world.wait_bound("waits") == "node2"

    secret = {"name": "tests.cluster.sample_plugins:ReadsSecrets"}
    rewrite(process, world.folder, plain, with_sample(), {
        "schedulerName": "secret", "plugins": {"filter": {"enabled": [secret]}},
    })  # fmt: skip
    failed = eventually(lambda: world.events_of(LEASE, "ReloadFailed"), 30, "an event says why")
    assert "generation 2 stays: secrets" in failed[0]["note"]
    assert "grant list and watch" in failed[0]["note"]
    world.api.create(objects.pod("goes-on", scheduler="plain"))
    assert world.wait_bound("goes-on") in ("node1", "node2")
    assert process.healthy("/readyz")

    rewrite(process, world.folder, with_sample())
    world.pod("nobody", scheduler="plain")
    note = eventually(lambda: world.events_of(LEASE, "ConfigurationReloaded")[1:], 30, "the next generation")
    assert "generation 3: profiles sample-scheduler" in note[-1]["note"]
