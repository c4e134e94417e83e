"""Fixtures for plugin authors: `moorage_cluster` makes clusters and closes them after the test.

def test_mine(moorage_cluster):
    cluster = moorage_cluster(plugins=[Mine])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from moorage.testing.cluster import Cluster


@pytest.fixture
def moorage_cluster(request: pytest.FixtureRequest) -> Iterator[Callable[..., Cluster]]:
    """Return a factory with the arguments of `moorage.testing.Cluster`. Every cluster is closed after the test."""
    made: list[Cluster] = []

    def make(**options: object) -> Cluster:
        cluster = Cluster(**options)  # type: ignore[arg-type]
        made.append(cluster)
        request.node.add_report_section("setup", "moorage", f"cluster with seed {cluster.seed}")
        return cluster

    yield make
    for cluster in made:
        cluster.close()
