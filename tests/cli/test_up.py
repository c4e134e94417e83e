"""`moorage up` as a user meets it: a process, its words, its exit code, and what it leaves behind."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.cli.running import run_in
from tests.kubectl.runner import Kubectl, find_all

PATIENCE = 60.0
BUSY = 2.0
"""Seconds that a machine with other work may take longer."""
SPINS = """
from moorage.framework import FilterPlugin

class Spins(FilterPlugin):
    name = "Spins"

    def filter(self, state, pod, node):
        while True:
            pass
"""
SPINNING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: "spinning:Spins"}]}}}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec: {containers: [{name: a, image: a}]}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"


class Up:
    """A running `moorage up`."""

    def __init__(self, process: subprocess.Popen[str], kubeconfig: Path) -> None:
        self.process = process
        self.kubeconfig = kubeconfig
        self.said = ""

    def wait_ready(self) -> None:
        self.hear("kubectl get pods")

    def hear(self, text: str) -> None:
        """Reads on until the text has been said."""
        assert self.process.stdout is not None
        guard = threading.Timer(PATIENCE, self.process.kill)
        guard.start()
        try:
            while text not in self.said:
                line = self.process.stdout.readline()
                assert line, self.said
                self.said += line
        finally:
            guard.cancel()

    def ask(self, method: str, path: str, body: Any = None, *, server: str = "", token: str = "") -> Any:
        config = yaml.safe_load(self.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = msgspec.json.decode(f'"{cluster["certificate-authority-data"]}"'.encode(), type=bytes)
        context = ssl.create_default_context(cadata=authority.decode())
        headers = {"Authorization": f"Bearer {token or config['users'][0]['user']['token']}"}
        content = msgspec.json.encode(body) if body is not None else None
        if content is not None:
            headers["Content-Type"] = "application/json"
        address = server or cluster["server"]
        request = urllib.request.Request(address + path, content, headers, method=method)
        with urllib.request.urlopen(request, context=context, timeout=10) as answer:
            return msgspec.json.decode(answer.read())

    def children(self) -> list[int]:
        tasks = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in tasks.read_text().split()]

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """Sends the signal; exit code and everything that was said."""
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, self.said + rest


@contextmanager
def up(folder: Path, *args: str, ui: bool = False) -> Iterator[Up]:
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "moorage", "up", "--port", "0", "--kubeconfig", str(kubeconfig), *args]
    command += [] if ui else ["--no-ui"]
    process = subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    running = Up(process, kubeconfig)
    try:
        running.wait_ready()
        yield running
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def until(condition: Any, what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {PATIENCE:g} s for {what}"
        time.sleep(0.02)
    return found


def test_a_cluster_with_nodes_objects_and_a_scheduler_until_ctrl_c(tmp_path):
    (tmp_path / "cluster.yaml").write_text("pools: [{name: gpu, count: 2, labels: {accelerator: a100}}]")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train", "namespace": "shop"},
        "spec": {"nodeSelector": {"accelerator": "a100"}, "containers": [{"name": "a", "image": "a"}]},
    }
    (tmp_path / "objects.yaml").write_text(NAMESPACE + "---\n" + yaml.safe_dump(pod))
    with up(tmp_path, "--cluster", "cluster.yaml", "--apply", "objects.yaml") as cluster:
        assert "namespace/shop created\npod/train created\n" in cluster.said
        assert re.search(r"The cluster is up: 2 nodes at https://127.0.0.1:\d+", cluster.said)
        assert f"export KUBECONFIG={cluster.kubeconfig}" in cluster.said

        def running() -> Any:
            found = cluster.ask("GET", "/api/v1/namespaces/shop/pods/train")
            return found["status"]["phase"] == "Running" and found

        bound = until(running, "the pod to run")
        assert bound["spec"]["nodeName"] in ("gpu-0", "gpu-1")
        (child,) = cluster.children()
        code, said = cluster.end(signal.SIGINT)
        assert code == 0
        assert said.endswith("The cluster is deleted. Use --data-dir to keep one.\n")
        assert "Traceback" not in said
        assert not Path(f"/proc/{child}").exists()


def test_the_scheduler_is_asked_at_the_address_that_is_printed_with_the_token_of_the_cluster(tmp_path):
    big = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "big", "namespace": "default"}}
    big["spec"] = {"containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "64"}}}]}
    (tmp_path / "big.yaml").write_text(yaml.safe_dump(big))
    with up(tmp_path, "--nodes", "2", "--apply", "big.yaml") as cluster:
        cluster.hear("--server")
        server = cluster.said.split("--server ")[1].strip()

        def unschedulable() -> bool:
            found = cluster.ask("GET", "/moorage/v1/queue?place=unschedulable", server=server)["pods"]
            # At first the nodes may not be ready, and their taints refuse the pod.
            return [(pod["pod"], pod["plugins"]) for pod in found] == [("default/big", ["NodeResourcesFit"])]

        until(unschedulable, "the pod to be unschedulable for its requests")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            cluster.ask("GET", "/moorage/v1/queue", server=server, token="another")
        command = ("explain", "pod/big", "--server", server, "--kubeconfig", str(cluster.kubeconfig))
        shown = run_in(tmp_path, *command)
        assert shown.returncode == 3, shown.stderr
        assert shown.stdout.startswith("default/big: unschedulable since ")
        before = pods(cluster)
        asked = ("--add-nodes", "1", "--like", "node-0", "--drain", "node-1", "-o", "json")
        wondered = run_in(tmp_path, "what-if", "-f", "big.yaml", "--replicas", "2", *command[2:], *asked)
        assert wondered.returncode == 3, wondered.stderr
        assert len(msgspec.json.decode(wondered.stdout)["pending"]) == 2
        assert run_in(tmp_path, "snapshot", "seen.json", *command[2:]).returncode == 0
        assert len(msgspec.json.decode((tmp_path / "seen.json").read_bytes())["nodes"]) == 2
        assert pods(cluster) == before, "nothing was written"
        assert cluster.end(signal.SIGINT)[0] == 0


def pods(cluster: Up) -> dict[str, str]:
    """Name → resourceVersion."""
    found = cluster.ask("GET", "/api/v1/pods")["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in found}


TEAM = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: team-scheduler}, {schedulerName: other-scheduler}]
"""


@pytest.mark.parametrize("config", [None, TEAM], ids=["without a configuration", "with profiles of its own"])
def test_the_next_steps_that_are_printed_lead_to_running_pods(tmp_path, config):
    if not (programs := find_all()):
        pytest.skip("there is no kubectl to type them into")
    (tmp_path / "scheduler.yaml").write_text(config or "")
    with up(tmp_path, *(["--config", "scheduler.yaml"] if config else [])) as cluster:
        steps = [line for line in cluster.said.splitlines() if line.startswith("  kubectl ")]
        kubectl = Kubectl(programs[0], cluster.kubeconfig, tmp_path)
        for step in steps:
            kubectl(*shlex.split(step)[1:])

        def running() -> bool:
            pods = cluster.ask("GET", "/api/v1/namespaces/default/pods")["items"]
            return len(pods) == (1 if config else 5) and all(p["status"]["phase"] == "Running" for p in pods)

        until(running, "all pods to run")


def test_item_2_a_hook_that_spins_is_named_and_a_second_ctrl_c_ends_everything_within_a_second(tmp_path):
    (tmp_path / "spinning.py").write_text(SPINS)
    (tmp_path / "config.yaml").write_text(SPINNING)
    (tmp_path / "pod.yaml").write_text(POD)
    with up(tmp_path, "--nodes", "1", "--config", "config.yaml", "--apply", "pod.yaml") as cluster:
        (child,) = cluster.children()
        cluster.hear('plugin="Spins" hook="filter"')
        assert "The scheduling loop is held up" in cluster.said.splitlines()[-1]
        cluster.process.send_signal(signal.SIGINT)
        cluster.hear("Stopping waits for the scheduling loop; a second signal ends the process at once")
        assert 'plugin="Spins" hook="filter"' in cluster.said.splitlines()[-1]
        cluster.process.send_signal(signal.SIGINT)
        assert cluster.process.wait(BUSY + 1.0) == 1
        until(lambda: not Path(f"/proc/{child}").exists(), "the server to end")


def test_a_kept_cluster_survives_kill_9(tmp_path):
    data = tmp_path / "data"
    with up(tmp_path, "--nodes", "1", "--data-dir", str(data)) as cluster:
        made = cluster.ask(
            "POST",
            "/api/v1/namespaces/default/configmaps",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "1"}},
        )
        (child,) = cluster.children()
        os.kill(child, signal.SIGKILL)
        code, said = cluster.process.wait(PATIENCE), cluster.said
        assert cluster.process.stdout is not None
        said += cluster.process.stdout.read()
        assert code == 1
        assert "the API server ended with exit code -9" in said
    with up(tmp_path, "--data-dir", str(data)) as cluster:
        found = cluster.ask("GET", "/api/v1/namespaces/default/configmaps/kept")
        assert (found["data"], found["metadata"]["uid"]) == ({"a": "1"}, made["metadata"]["uid"])
        nodes = cluster.ask("GET", "/api/v1/nodes")["items"]
        assert [node["metadata"]["name"] for node in nodes] == ["node-0"]  # none are added to a kept cluster
        assert cluster.end(signal.SIGTERM)[0] == 0


def test_the_server_ends_with_its_parent(tmp_path):
    with up(tmp_path, "--no-scheduler", "--nodes", "0") as cluster:
        assert "  moorage run " in cluster.said
        (child,) = cluster.children()
        cluster.process.kill()
        cluster.process.wait()
        until(lambda: not Path(f"/proc/{child}").exists(), "the server to end")


@pytest.fixture
def taken_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def refused(folder: Path, *args: str) -> str:
    result = run_in(folder, "up", "--kubeconfig", str(folder / "kubeconfig"), *args)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "kubeconfig").exists()
    return result.stderr


def test_a_port_in_use_is_one_sentence(tmp_path, taken_port):
    said = refused(tmp_path, "--port", str(taken_port))
    assert said == (f"Error: cannot listen on 127.0.0.1 port {taken_port}: it is in use; set another --port\n")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--cluster", "nowhere.yaml"], "cannot read the cluster file nowhere.yaml: No such file"),
        (["--apply", "nowhere.yaml"], "the file nowhere.yaml cannot be read: No such file"),
        (["--config", "nowhere.yaml"], "nowhere.yaml"),
        (["--nodes", "1", "--cluster", "a"], "--nodes and --cluster exclude each other"),
        (["--port", "0", "--data-dir", "file"], "file"),
        (["--port", "0", "--data-dir", "corrupt"], "corrupt"),
        (["--port", "0", "--apply", "bad.yaml"], "bad.yaml: namespace/NOT_A_NAME was refused: "),
        (["--port", "0", "--apply", "kind.yaml"], "the cluster has no kind Sofa in v1"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(tmp_path, args, sentence):
    (tmp_path / "file").write_text("no directory")
    (tmp_path / "corrupt").mkdir()
    (tmp_path / "corrupt" / "moorage.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
    (tmp_path / "bad.yaml").write_text(NAMESPACE.replace("shop", "NOT_A_NAME"))
    (tmp_path / "kind.yaml").write_text(NAMESPACE.replace("Namespace", "Sofa"))
    said = refused(tmp_path, *args)
    assert sentence in said
    assert said.startswith("Error: ")
    assert (tmp_path / "corrupt" / "moorage.db").read_bytes().startswith(b"SQLite format 3\x00\xff\xff")
