"""A comparison gives the same tables wherever it is done, although a worker is killed in the middle."""

import json
import os
import subprocess
import sys
from random import Random

import pytest
import yaml

from moorage.api.errors import MoorageError
from moorage.sim.backends import spread
from tests.docs.snippets import ROOT
from tests.sim.killing import RAY_PORT, run_and_kill

EXAMPLE = ROOT / "examples" / "04-gpu-traces"
MODELS = {"T4": (2, 104), "G2": (8, 96), "V100M32": (4, 48)}
"""Cards and cores of a node."""
SHARES = (0, 250, 500, 1000)
RUNS = 10
ALONE = (
    "unshare", *(() if os.getuid() == 0 else ("--map-root-user",)),
    "--net", "--pid", "--fork", "--mount-proc", "--kill-child",
)  # fmt: skip


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A trace with the columns of openb, small enough for a test, in an order drawn by the seed."""
    folder, random = tmp_path_factory.mktemp("trace"), Random(1)
    nodes = ["sn,cpu_milli,memory_mib,gpu,model"]
    for number in range(60):
        model, (cards, cores) = random.choice([*MODELS.items()])
        nodes.append(f"node-{number},{cores}000,262144,{cards},{model}")
    pods = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"]
    for number in range(300):
        milli = random.choice(SHARES)
        pods.append(f"p-{number},{random.choice((2000, 8000, 12000))},4096,{int(milli > 0)},{milli},")
    mapping = yaml.safe_load((EXAMPLE / "openb.yaml").read_text())
    del mapping["order"]
    mapping["nodes"]["file"], mapping["pods"]["shuffle"] = "nodes.csv", True
    (folder / "nodes.csv").write_text("\n".join(nodes))
    (folder / "pods.csv").write_text("\n".join(pods))
    (folder / "openb.yaml").write_text(yaml.safe_dump(mapping))
    return folder


def comparison(trace, results, *options):
    """Two policies with five seeds."""
    configurations = ("--config", str(EXAMPLE / "FGD.yaml"), "--config", str(EXAMPLE / "BestFit.yaml"))
    return [
        sys.executable, "-m", "moorage", "simulate", str(trace / "pods.csv"), "--mapping",
        str(trace / "openb.yaml"), *configurations, "--plugin-path", str(EXAMPLE), "--seeds", "5",
        "--output-dir", str(results), *options,
    ]  # fmt: skip


def tables(results):
    """All files of the results; without the time that the runs took."""
    files = [file for file in results.rglob("*") if file.is_file()]
    found = {str(file.relative_to(results)): file.read_bytes() for file in files}
    for name in [name for name in found if name.endswith("summary.json")]:
        found[name] = json.dumps(json.loads(found[name]) | {"realSeconds": 0}).encode()
    return found


@pytest.fixture(scope="module")
def expected(trace, tmp_path_factory):
    """The tables of runs one after the other, in one process."""
    results = tmp_path_factory.mktemp("expected")
    subprocess.run(comparison(trace, results, "--jobs", "1"), check=True, stdout=subprocess.DEVNULL)
    found = tables(results)
    assert len(found) == 3 * RUNS + 3  # and the differences, the comparison and the report
    assert found["differences.csv"].count(b"\n") > 1
    return found


@pytest.mark.slow
def test_processes_of_this_machine_give_the_same_tables(trace, expected, tmp_path):
    pytest.importorskip("joblib", reason="the extra sim is not installed")
    subprocess.run(comparison(trace, tmp_path, "--jobs", "2"), check=True, stdout=subprocess.DEVNULL)
    assert tables(tmp_path) == expected


@pytest.mark.slow
def test_a_dask_cluster_that_loses_a_worker_gives_the_same_tables(trace, expected, tmp_path):
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        pids = client.run(os.getpid)
        backend = cluster.scheduler_address.replace("tcp://", "dask://")
        command = comparison(trace, tmp_path, "--backend", backend)
        assert run_and_kill(command, tmp_path, lambda: next(iter(pids.values()))) == 0
    assert tables(tmp_path) == expected


@pytest.mark.slow
def test_a_ray_cluster_that_loses_a_worker_gives_the_same_tables(trace, expected, tmp_path):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    if (made := subprocess.run([*ALONE, "true"], capture_output=True, check=False)).returncode:
        pytest.skip(f"Ray needs a network of its own to stay on loopback: {made.stderr.decode().strip()}")
    command = comparison(trace, tmp_path, "--backend", f"ray://127.0.0.1:{RAY_PORT}")
    killing = [sys.executable, "-m", "tests.sim.killing", str(tmp_path)]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    subprocess.run([*ALONE, *killing, *command], cwd=ROOT, env=environment, check=True, timeout=300)
    assert tables(tmp_path) == expected


def test_a_backend_that_is_not_known_is_refused():
    pytest.importorskip("joblib", reason="the extra sim is not installed")
    with pytest.raises(MoorageError, match=r"'spark://x' is not a backend; use dask://HOST:PORT .* ray://"):
        list(spread([], 1, "spark://x"))


@pytest.mark.parametrize(("package", "backend"), [("distributed", "dask://x:1"), ("ray", "ray://x:1")])
def test_a_backend_whose_package_is_missing_names_the_extra(monkeypatch, package, backend):
    pytest.importorskip("joblib", reason="the extra sim is not installed")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MoorageError, match=rf"Install moorage\[{backend.partition(':')[0]}\]"):
        list(spread([], 1, backend))
