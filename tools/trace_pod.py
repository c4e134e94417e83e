"""Counts the modules of Moorage that one pod meets: `python tools/trace_pod.py [explain]`.

Without an argument, a cluster in memory with the default configuration and three nodes gets its first pod.
Every call of a Python function is counted from the creation of the pod until it is bound, confirmed by the
watch, and its event is written. What belongs to the test kit and not to a scheduler is left out: the object
store, the virtual clock, the builders.

With `explain`, the calls of `moorage explain pod/p --snapshot FILE` are counted, for a pod that neither of
two nodes can run.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

TEST_WORLD = ("moorage.testing", "moorage.store", "moorage.embedded", "moorage.sim")
SNAPSHOT = """
nodes:
- metadata: {name: small, labels: {kubernetes.io/hostname: small}}
  status: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}
- metadata: {name: gpu, labels: {kubernetes.io/hostname: gpu}}
  spec: {taints: [{key: gpu, value: "true", effect: NoSchedule}]}
  status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
pods:
- metadata: {name: p, namespace: default, uid: p}
  spec: {containers: [{name: c, resources: {requests: {cpu: "6"}}}]}
"""


@contextlib.contextmanager
def counted() -> Iterator[Counter[str]]:
    """Module → number of calls while the block runs; imports do not count."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            calls[frame.f_globals.get("__name__", "")] += 1

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def calls_of_one_pod() -> Counter[str]:
    from moorage.testing import Cluster, make_node, make_pod

    with Cluster() as cluster:
        cluster.add(*(make_node(name) for name in "abc"))
        cluster.settle()
        pod = make_pod("p", cpu="100m", memory="64Mi")
        with counted() as calls:
            cluster.add(pod)
            cluster.settle()
        if not cluster.node_of("p"):
            raise SystemExit("the pod was not bound")
    return Counter({name: number for name, number in calls.items() if is_scheduler(name)})


def calls_of_explain() -> Counter[str]:
    from moorage.cli import explain
    from moorage.cli.root import app

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cluster.yaml")
        file.write_text(SNAPSHOT)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), counted() as calls:
            command = ["explain", "pod/p", "--snapshot", str(file)]
            code = app(command, prog_name="moorage", standalone_mode=False)
    if code != explain.UNSCHEDULABLE or "default/p is pending" not in printed.getvalue():
        raise SystemExit(f"the pod was not explained: {code} {printed.getvalue()}")
    return Counter({name: number for name, number in calls.items() if name.startswith("moorage.")})


def is_scheduler(module: str) -> bool:
    """Return whether a module belongs to the scheduler, not to its test environment."""
    in_test_world = any(module == name or module.startswith(f"{name}.") for name in TEST_WORLD)
    return module.startswith("moorage.") and not in_test_world


def main() -> None:
    calls = calls_of_explain() if sys.argv[1:] == ["explain"] else calls_of_one_pod()
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
