"""Coordinated leader election on a real API server, which chooses the leader among the replicas. KEP-4355."""

from __future__ import annotations

from pathlib import Path

from moorage.api.resources import LEASES
from moorage.client.candidacy import LEASE_CANDIDATES
from tests.cluster import objects
from tests.cluster.api import eventually
from tests.cluster.controlplane import running
from tests.cluster.moorage_process import LEASE, NAMESPACE
from tests.cluster.worlds import World

FLAGS = ("--feature-gates=CoordinatedLeaderElection=true", "--runtime-config=coordination.k8s.io/v1beta1=true")
GATE = "--feature-gates=CoordinatedLeaderElection=true"


def test_the_api_server_chooses_the_leader_and_another_one_after_its_end(
    programs: dict[str, str], tmp_path: Path
) -> None:
    with running(tmp_path / "plane", programs, api_flags=FLAGS) as plane:
        plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        world = World("real", plane.api, tmp_path, plane.admin_config)
        try:
            world.api.create_all([objects.node("n")])
            replicas = [world.moorage(name=name, arguments=(GATE,)) for name in ("first", "second")]
            world.pod("p")
            assert world.wait_bound("p", 60) == "n"
            lease = plane.api.get(LEASES, LEASE, NAMESPACE)["spec"]
            assert lease["strategy"] == "OldestEmulationVersion", "the API server made this lease"
            candidates = plane.api.list(LEASE_CANDIDATES, NAMESPACE)
            assert {found["spec"]["leaseName"] for found in candidates} == {LEASE}
            assert len(candidates) == 2
            assert lease["holderIdentity"] in {found["metadata"]["name"] for found in candidates}
            [leader] = [one for one in replicas if "Successfully acquired lease" in one.log_text()]
            leader.stop()
            eventually(
                lambda: (
                    plane.api.get(LEASES, LEASE, NAMESPACE)["spec"].get("holderIdentity")
                    not in ("", None, lease["holderIdentity"])
                ),
                90,
                "the API server names the other replica",
            )
            world.pod("q")
            assert world.wait_bound("q", 60) == "n"
        finally:
            world.stop()
