"""Take the pictures of docs/images again: `python -m tests.web.browser.screenshots`."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from tests.web.browser import clusters
from tests.web.browser.conftest import ROOT, Looking, Served, browsing, start
from tests.web.browser.test_compare_page import PACKED, PLAIN, SCENARIO

IMAGES = ROOT / "docs" / "images"
NODES = 5000


def snapshot() -> dict[str, Any]:
    """Return a cluster of 5,000 nodes with pods that are pending for several reasons."""
    rng = random.Random(1)
    nodes = [
        clusters.node(
            f"node-{i}",
            "abc"[i % 3],
            rng.choice(("8", "16", "32")),
            taints=[clusters.GPU] if i % 7 == 0 else [],
            unschedulable=i % 51 == 0,
        )
        for i in range(NODES)
    ]
    pods = [clusters.pod(f"web-{i}", rng.choice(("2", "4", "6")), f"node-{i % NODES}") for i in range(NODES)]
    pending = [clusters.pod(f"train-{i}", "31") for i in range(4)]
    pending += [clusters.pod(f"indexer-{i}", "2", nodeSelector={"disk": "ssd"}) for i in range(7)]
    gates = {"schedulingGates": [{"name": "example.com/quota"}]}
    for i in range(2):
        gated = clusters.pod(f"notebook-{i}", "1")
        gated["spec"].update(gates)
        pending.append(gated)
    return {"nodes": nodes, "pods": [*pods, *pending]}


def take(looking: Looking, name: str, path: str, *, wait: str) -> None:
    """Open a page, wait until it is complete, and write what the window shows."""
    page = looking.open(path)
    page.wait_for_selector(wait)
    page.wait_for_timeout(1500)
    page.screenshot(path=IMAGES / f"ui-{name}.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, browsing() as chromium:
        path = Path(folder) / "production.json"
        path.write_text(json.dumps(snapshot()))
        served = Served("--snapshot", str(path))
        looking = Looking(chromium, served)
        take(looking, "queue", "/", wait="text=train-0")
        take(looking, "pod", "/pod/default/train-0", wait="text=NodeResourcesFit")
        take(looking, "cluster", "/cluster", wait="canvas")
        served.stop()
        for name, text in (("scenario", SCENARIO), ("packed", PACKED), ("plain", PLAIN)):
            (Path(folder) / f"{name}.yaml").write_text(text)
        configs = [f"--config={folder}/{name}.yaml" for name in ("plain", "packed")]
        start("simulate", f"{folder}/scenario.yaml", *configs, "--jobs=1", "--output-dir", f"{folder}/out").communicate(
            timeout=120
        )
        results = Served("--results", f"{folder}/out")
        take(Looking(chromium, results), "compare", "/compare?measure=largestPod", wait="canvas")
        results.stop()


if __name__ == "__main__":
    main()
