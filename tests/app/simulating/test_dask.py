"""The runs of a comparison on a Dask cluster, one of whose workers is killed in the middle."""

import os
import signal
import threading

import pytest

from mooring.api.errors import MooringError
from mooring.app.simulating.backends import spread
from mooring.app.simulating.jobs import Setup, Source, plan, run_jobs

SCENARIO = """
nodes: [{name: node, count: 50, allocatable: {cpu: 4, memory: 16Gi}}]
workloads: [{name: a, rate: 2/s, arrival: poisson, shape: {cpu: 1, memory: 1Gi}, lifetime: {exponential: 1m}}]
duration: 20m
"""


@pytest.mark.slow
def test_a_comparison_on_dask_equals_the_one_here_although_a_worker_is_killed(tmp_path):
    pytest.importorskip("joblib", reason="the extra sim is not installed")
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    (tmp_path / "s.yaml").write_text(SCENARIO)
    source, setups = Source(tmp_path / "s.yaml"), [Setup("a"), Setup("b")]
    here = [job.run() for job in plan(source, setups, [1, 2, 3], tmp_path / "here")]
    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        pids = distributed.Client(cluster).run(os.getpid)
        victim = next(iter(pids.values()))
        killer = threading.Timer(2.0, os.kill, (victim, signal.SIGKILL))
        killer.start()
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        jobs = plan(source, setups, [1, 2, 3], tmp_path / "there")
        there = run_jobs(jobs, -1, lambda: None, address)
        killer.join()
    assert [result.measures for result in there] == [result.measures for result in here]
    assert [result.nodes() for result in there] == [result.nodes() for result in here]


def test_a_backend_that_is_not_known_is_refused():
    pytest.importorskip("joblib", reason="the extra sim is not installed")
    with pytest.raises(MooringError, match="'spark://x' is not known; write dask://HOST:PORT"):
        list(spread([], 1, "spark://x"))
