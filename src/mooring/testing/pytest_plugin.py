"""Fixtures for plugin authors: `mooring_cluster` makes clusters and closes them after the test.

def test_mine(mooring_cluster):
    cluster = mooring_cluster(plugins=[Mine])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from mooring.testing.cluster import Cluster


@pytest.fixture
def mooring_cluster(request: pytest.FixtureRequest) -> Iterator[Callable[..., Cluster]]:
    """A factory with the arguments of `mooring.testing.Cluster`. Every cluster is closed at the end."""
    made: list[Cluster] = []

    def make(**options: object) -> Cluster:
        cluster = Cluster(**options)  # type: ignore[arg-type]
        made.append(cluster)
        request.node.add_report_section("setup", "mooring", f"cluster with seed {cluster.seed}")
        return cluster

    yield make
    for cluster in made:
        cluster.close()
