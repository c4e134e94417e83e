"""Fixtures: the programs, a control plane for the whole run, a clean cluster for every test."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from moorage.api import resources as kinds
from moorage.app.configuration import configure
from moorage.manifests import DeployOptions, manifests
from moorage.manifests.bundle import default_config
from tests.cluster import objects
from tests.cluster.api import Api
from tests.cluster.controlplane import ControlPlane, Missing, find_programs, running
from tests.cluster.embedded_plane import EmbeddedPlane, running_embedded
from tests.cluster.moorage_process import NAMESPACE
from tests.cluster.worlds import World

CLUSTER_WIDE = (
    kinds.NODES, kinds.PERSISTENT_VOLUMES, kinds.STORAGE_CLASSES, kinds.CSI_NODES, kinds.CSI_DRIVERS,
    kinds.VOLUME_ATTACHMENTS,
)  # fmt: skip
NAMESPACED = (
    kinds.DEPLOYMENTS, kinds.REPLICA_SETS, kinds.STATEFUL_SETS, kinds.PODS, kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.POD_DISRUPTION_BUDGETS, kinds.CSI_STORAGE_CAPACITIES, kinds.EVENTS, kinds.LEASES,
)  # fmt: skip
OWN_SPACES = ("default", "kube-system", "kube-public", "kube-node-lease", "moorage")
OWN_SERVICES = ("kubernetes",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything below this folder needs the control plane."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session", autouse=True)
def _end_in_order() -> Iterator[None]:
    """A run that gets SIGTERM stops what it has started, as an interrupted run does."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def programs() -> dict[str, str]:
    try:
        return find_programs()
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def shared_plane(programs: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One API server with controllers for all tests that can live with a used one."""
    with running(tmp_path_factory.mktemp("controlplane"), programs) as plane:
        plane.start_controllers()
        grant(plane)
        yield plane


@pytest.fixture
def plane(shared_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The shared control plane, emptied after the test."""
    yield shared_plane
    clean(shared_plane.api)


ACCOUNT = f"system:serviceaccount:{NAMESPACE}:moorage"
RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def grant(plane: ControlPlane, config: str = "") -> None:
    """Exactly the rights that `moorage manifests` gives for a configuration, and no workload."""
    text = config or default_config("moorage")
    for obj in manifests(configure(text, discover=False), text, DeployOptions(image="moorage:test")):
        if obj["kind"] in RIGHTS:
            plane.api.apply(obj)


@pytest.fixture
def world(plane: ControlPlane, tmp_path: Path) -> Iterator[World]:
    """A real cluster to run Moorage on, with the rights of its service account."""
    config = plane.kubeconfig("moorage", token=plane.token("moorage", NAMESPACE))
    made = World("real", plane.api, tmp_path, config)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def shared_embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPlane]:
    """One embedded cluster for all scenarios, with the lease's namespace."""
    with running_embedded(tmp_path_factory.mktemp("embedded")) as plane:
        plane.api.create(objects.namespace(NAMESPACE))
        yield plane


@pytest.fixture
def embedded_world(shared_embedded: EmbeddedPlane, tmp_path: Path) -> Iterator[World]:
    """The embedded cluster, emptied after the test."""
    made = World("embedded", shared_embedded.api, tmp_path, shared_embedded.kubeconfig)
    yield made
    made.stop()
    clean(shared_embedded.api)


@pytest.fixture(params=["real", "embedded"])
def any_world(request: pytest.FixtureRequest) -> World:
    """Scenarios hold on the real API server and on the embedded one."""
    found: World = request.getfixturevalue("world" if request.param == "real" else "embedded_world")
    return found


def clean(api: Api) -> None:
    """Remove what tests make; controllers first, so that nothing comes back."""
    for resource in (*NAMESPACED, *CLUSTER_WIDE):
        api.delete_all(resource)
    for service in api.list(kinds.SERVICES):
        if service["metadata"]["name"] not in OWN_SERVICES:
            api.delete(kinds.SERVICES, service["metadata"]["name"], service["metadata"]["namespace"])
    for priority in api.list(kinds.PRIORITY_CLASSES):
        if not priority["metadata"]["name"].startswith("system-"):
            api.delete(kinds.PRIORITY_CLASSES, priority["metadata"]["name"], "")
    for space in api.list(kinds.NAMESPACES):
        if space["metadata"]["name"] not in OWN_SPACES:
            api.delete(kinds.NAMESPACES, space["metadata"]["name"], "")
