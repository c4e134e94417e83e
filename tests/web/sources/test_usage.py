"""What nodes use, where a cluster measures it."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from moorage.client.connection import find
from moorage.web.sources.node_columns import UsageColumns

NODES: dict[str, Any] = {"names": ["a", "b"], "amounts": {"cpu": {"allocatable": [4000, 4000], "requested": [0, 0]}}}


def test_columns_stay_as_they_are_where_no_cluster_answers(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
        "clusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "users: [{name: x, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n"
    )
    assert asyncio.run(UsageColumns(partial(find, str(config), "")).add_to(NODES)) == NODES


def test_measured_amounts_are_a_column_and_nodes_without_a_measurement_use_nothing() -> None:
    usage = UsageColumns(partial(find, "", ""))

    async def measured() -> dict[str, dict[str, int]]:
        return {"b": {"cpu": 1500, "gpu": 1}}

    usage._list = measured  # type: ignore[method-assign]
    found = asyncio.run(usage.add_to(NODES))
    assert found["amounts"] == {"cpu": {**NODES["amounts"]["cpu"], "measured": [0, 1500]}}
