"""Count the modules of Moorage that take part in scheduling one pod: `python tools/trace_pod.py`.

A cluster in memory with the default configuration and three nodes receives its first pod. All calls of Python
functions count, from the creation of the pod until it is bound, confirmed by the watch, and its event is
written. The test kit does not count: the object store, the virtual clock and the builders.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

from moorage.testing import Cluster, make_node, make_pod

TEST_WORLD = ("moorage.testing", "moorage.store", "moorage.embedded", "moorage.sim")


def calls_of_one_pod() -> Counter[str]:
    """Return the number of calls per module."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls[frame.f_globals.get("__name__", "")] += 1

    with Cluster() as cluster:
        cluster.add(*(make_node(name) for name in "abc"))
        cluster.settle()
        pod = make_pod("p", cpu="100m", memory="64Mi")
        sys.setprofile(count)
        try:
            cluster.add(pod)
            cluster.settle()
        finally:
            sys.setprofile(None)
        if not cluster.node_of("p"):
            raise SystemExit("the pod was not bound")
    return Counter({name: number for name, number in calls.items() if is_scheduler(name)})


def is_scheduler(module: str) -> bool:
    """Return whether a module belongs to the scheduler, not to its test environment."""
    in_test_world = any(module == name or module.startswith(f"{name}.") for name in TEST_WORLD)
    return module.startswith("moorage.") and not in_test_world


def main() -> None:
    calls = calls_of_one_pod()
    package = ""
    for module in sorted(calls):
        if module.split(".")[1] != package:
            package = module.split(".")[1]
            total = sum(number for name, number in calls.items() if name.split(".")[1] == package)
            print(f"{package}: {total} calls")
        print(f"  {calls[module]:6} {module}")
    print(f"{len(calls)} modules, {sum(calls.values())} calls")


if __name__ == "__main__":
    main()
