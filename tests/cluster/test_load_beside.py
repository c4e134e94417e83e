"""Load on the embedded API server, then an equal load on the real one with etcd, on the same machine.

    python -m tests.cluster.test_load_beside [--nodes N] [--pods N]

measures at another size. Both are as operators run them: no audit log, over TLS, with a token, and etcd waits
for the disk. So does the embedded store with a data directory; without one it keeps nothing, and is shown for
comparison with what `moorage up` does by default.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from tests.cluster.controlplane import ControlPlane, find_programs, running
from tests.embedded.apiserver.load import Measured, Reached, measure, serving

CONNECTIONS, WATCHES = 32, 3
ACCOUNT = "load"
RBAC = "rbac.authorization.k8s.io"


def test_the_embedded_api_server_is_not_slower_than_the_real_one(programs: dict[str, str], tmp_path: Path) -> None:
    found = all_three(programs, tmp_path, nodes=500, pods=3_000)
    real = found["kube-apiserver and etcd"]
    for name, ours in found.items():
        assert ours.creations >= real.creations, f"{name} makes fewer pods per second"
        assert ours.bindings >= real.bindings, f"{name} binds fewer pods per second"


def all_three(programs: dict[str, str], folder: Path, nodes: int, pods: int) -> dict[str, Measured]:
    """Name → what was measured; printed as it comes."""
    found = {}
    for name, server in (
        ("kube-apiserver and etcd", lambda: real(programs, folder / "plane", nodes, pods)),
        ("embedded, durable", lambda: embedded(nodes, pods, "--data-dir", str(folder / "data"))),
        ("embedded, in memory", lambda: embedded(nodes, pods)),
    ):
        found[name] = server()
        print(f"{name}: {found[name].report(pods)}", flush=True)
    return found


def embedded(nodes: int, pods: int, *options: str) -> Measured:
    async def main() -> Measured:
        async with serving(*options) as reached:
            return await measure(reached, nodes, pods, CONNECTIONS, WATCHES)

    return asyncio.run(main())


def real(programs: dict[str, str], folder: Path, nodes: int, pods: int) -> Measured:
    """The processor time is that of the API server without etcd."""
    with running(folder, programs, audit=False, fsync=True) as plane:
        authority = plane.authority.file.read_text()
        reached = Reached(plane.server, _token(plane), authority, plane.apiserver.pid)
        return asyncio.run(measure(reached, nodes, pods, CONNECTIONS, WATCHES))


def _token(plane: ControlPlane) -> str:
    """Of an account that may do everything."""
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "default"}
    metadata = {"name": ACCOUNT, "namespace": "default"}
    plane.api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    plane.api.apply(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [account],
        }
    )
    return plane.token(ACCOUNT, "default")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=20_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="moorage-") as scratch:
        all_three(find_programs(), Path(scratch), arguments.nodes, arguments.pods)
