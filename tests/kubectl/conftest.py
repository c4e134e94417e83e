"""One embedded cluster for all tests of kubectl, and a namespace for each of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubectl.cluster import Cluster
from tests.kubectl.runner import Kubectl, find_all

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def programs() -> list[Path]:
    found = find_all()
    if not found:
        pytest.skip("there is no kubectl: set KUBECTL, run tools/controlplane/build, or put one on the PATH")
    return found


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def cluster(programs: list[Path], home: Path) -> Iterator[Cluster]:
    print(f"kubectl: {programs[0]}")
    cluster = Cluster(home / "kubeconfig")
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def admin(cluster: Cluster, programs: list[Path], home: Path) -> Kubectl:
    """kubectl in the namespace default."""
    return Kubectl(programs[0], cluster.kubeconfig, home)


@pytest.fixture
def kubectl(cluster: Cluster, admin: Kubectl) -> Kubectl:
    """kubectl in a namespace of its own."""
    name = f"test-{next(_numbers)}"
    cluster.make_namespace(name)
    return admin.within(name)
