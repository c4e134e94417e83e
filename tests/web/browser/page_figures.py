"""How fast the pages are on a large snapshot, and what the UI takes.

`python -m tests.web.browser.page_figures` measures it.

Of each page the first paint, the time until its content is there, and the processor time of UI and renderer
up to then, which says what the times would be on a machine that does nothing else.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.web.browser import clusters
from tests.web.browser.conftest import Looking, Served, browsing

NODES, PODS, REPEATS = 5000, 50_000, 7
PAGES = {
    "/": ".m-table tbody tr",
    "/pod/default/train": ".ag-cell",
    "/cluster": "canvas",
    "/node/n5": ".m-table tbody tr",
    "/what-if": "textarea",
    "/configuration": ".m-page section",
}
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


def snapshot() -> dict[str, Any]:
    """Nodes of which some have taints and some are cordoned, nearly full; a pod that fits nowhere."""
    nodes = [
        clusters.node(
            f"n{i}", "abc"[i % 3], "8", taints=[clusters.GPU] if i % 4 == 0 else [], unschedulable=i % 10 == 1
        )
        for i in range(NODES)
    ]
    pods = [clusters.pod(f"p{i}", "700m", f"n{i % NODES}") for i in range(PODS)]
    return {"nodes": nodes, "pods": [*pods, clusters.pod("train", "3")]}


def megabytes(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) // 1024


def processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def renderer(browser: Any) -> float:
    found = browser.send("SystemInfo.getProcessInfo")["processInfo"]
    return float(sum(each["cpuTime"] for each in found if each["type"] == "renderer"))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.json"
        path.write_text(json.dumps(snapshot()))
        served = Served("--snapshot", str(path))
    print(f"at start: {megabytes(served.pid)} MB")
    with browsing() as chromium:
        looking, browser = Looking(chromium, served), chromium.new_browser_cdp_session()
        for page, content in PAGES.items():
            found = [measure(looking, browser, page, content) for _ in range(REPEATS)]
            paint, ready, spent = (sorted(each) for each in zip(*found, strict=True))
            print(f"{page}: first paint {paint[len(paint) // 2]:.2f} s, content {ready[0]:.2f}", end=" ")
            print(f"to {ready[-1]:.2f} s, median {statistics.median(ready):.2f} s", end=", ")
            print(f"processor {statistics.median(spent):.2f} s")
        for page, content in [*PAGES.items()] * 3:
            Looking(chromium, served).open(page).wait_for_selector(content)
        print(f"most, with {3 * len(PAGES)} pages open: {megabytes(served.pid)} MB")
    served.stop()


def measure(looking: Looking, browser: Any, page: str, content: str) -> tuple[float, float, float]:
    pid = looking.served.pid
    before, began = processor(pid) + renderer(browser), time.perf_counter()
    looking.page.goto(f"{looking.served.root}{page}", wait_until="commit")
    looking.page.wait_for_selector(content)
    ready = time.perf_counter() - began
    spent = processor(pid) + renderer(browser) - before
    return looking.page.evaluate(PAINT) / 1000, ready, spent


if __name__ == "__main__":
    main()
