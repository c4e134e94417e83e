"""The example of Coscheduling, typed by a user with kubectl: a job waits as a whole and runs as a whole."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT
from tests.kubectl.cluster import Cluster
from tests.kubectl.runner import Kubectl

EXAMPLE = ROOT / "examples" / "03-coscheduling"


@pytest.fixture
def batch(programs: list[Path], home: Path) -> Iterator[Kubectl]:
    """kubectl on a cluster whose scheduler is that of the example."""
    cluster = Cluster(home / "batch-kubeconfig", EXAMPLE / "scheduler.yaml")
    cluster.start()
    yield Kubectl(programs[0], cluster.kubeconfig, home)
    cluster.stop()


def eventually(look: Callable[[], str], pattern: str) -> str:
    """What `look` says when it shows the pattern."""
    deadline = time.monotonic() + 30
    while not re.search(pattern, said := look()):
        assert time.monotonic() < deadline, f"{pattern} not found in:\n{said}"
        time.sleep(0.1)
    return said


def test_a_job_that_fits_in_part_waits_as_a_whole_and_says_why(batch: Kubectl) -> None:
    batch("cordon", "node-1", "node-2")
    batch("apply", "-f", str(EXAMPLE / "podgroups.yaml"))
    batch("wait", "--for=condition=Established", "crd/podgroups.scheduling.x-k8s.io")
    batch("apply", "-f", str(EXAMPLE / "gang.yaml"))
    header = r"NAME +PHASE +MINMEMBER +RUNNING +SUCCEEDED +FAILED +AGE +WAITING FOR\n"
    waiting = r"train +Scheduling +3 +0 +0 +0 +\S+ +PodGroup default/train does not fit: 2 of 3 members have a node"
    eventually(lambda: batch("get", "pg"), header + waiting)
    assert not re.search(r"Running|ContainerCreating", batch("get", "pods"))
    eventually(lambda: batch("get", "events"), r"FailedScheduling +pod/train-\S+ .*PodGroup default/train does")
    batch("uncordon", "node-1")
    eventually(lambda: batch("get", "pg", "train"), r"train +(Running|Finished) +3 ")
    batch("wait", "--for=condition=Complete", "job/train", "--timeout=30s")
    said = eventually(lambda: batch("get", "pg", "train"), r"train +Finished +3 +0 +3 +0 ")
    assert "does not fit" not in said
