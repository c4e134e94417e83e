"""`moorage extender` from the command line, and as a process on an API server."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from moorage.cli.root import app
from moorage.serving.certificates import Authority, User, load
from tests.cli.running import runner
from tests.cluster.processes import Daemon, free_port
from tests.run.api_thread import ROOT, ApiThread

PLUGIN = """
from moorage.framework import FilterPlugin, ReservePlugin, ScorePlugin, Status

class Sample(FilterPlugin, ScorePlugin, ReservePlugin):
    name = "Sample"

    def filter(self, state, pod, node):
        if node.labels.get("cpu") != "true":
            return Status.unschedulable(f"Node: {node.name}")

    def score(self, state, pod, node):
        return 70

    def reserve(self, state, pod, node_name):
        return None
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: "plugin_of_extender:Sample", weight: 3}]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plugin_of_extender.py").write_text(PLUGIN)
    (tmp_path / "scheduler.yaml").write_text(CONFIG)
    return tmp_path


def run(folder: Path, *arguments: str):
    config = f"--config={folder / 'scheduler.yaml'}"
    return runner.invoke(app, ["extender", config, f"--plugin-path={folder}", *arguments])


def test_print_config_needs_no_cluster(folder):
    done = run(folder, "--print-config", "--url=http://10.1.2.3:80")
    assert done.exit_code == 0, done.output
    (extender,) = yaml.safe_load(done.stdout)["extenders"]
    assert extender == {
        "urlPrefix": "http://10.1.2.3:80",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "weight": 3,
        "nodeCacheCapable": True,
        "httpTimeout": "5s",
    }


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--url=http://a:1"], "--url belongs to --print-config"),
        (["--profile=x"], "has no profile 'x'"),
        (["--bind-address=here"], "--bind-address: 'here' is not an IP address"),
        (["--bind-address=0.0.0.0"], "set --client-ca-file"),
        (["--tls-cert-file=a"], "--tls-cert-file and --tls-private-key-file belong together"),
        (["--client-ca-file=/does/not/exist"], "--client-ca-file /does/not/exist"),
        (["--kubeconfig=/does/not/exist"], "/does/not/exist"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_served(folder, arguments, text):
    done = run(folder, "--port=0", *arguments)
    assert done.exit_code == 1
    assert text in done.stderr.replace("\n", " ")


def test_a_profile_without_own_plugins_is_an_error(folder):
    (folder / "scheduler.yaml").write_text(CONFIG.partition("profiles:")[0])
    done = run(folder)
    assert done.exit_code == 1
    assert "has nothing for an extender to do" in done.stderr.replace("\n", " ")


def test_manifests_come_with_the_block_as_a_comment(folder):
    os_environ = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "moorage", "manifests", "--extender", "--config=scheduler.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os_environ, check=True)
    comment = "\n".join(line[2:] for line in done.stdout.splitlines() if line.startswith("# "))
    (extender,) = yaml.safe_load(comment.partition("\n")[2])["extenders"]
    assert extender["urlPrefix"] == "https://moorage-extender.moorage.svc:8888"
    assert "Deployment" in [obj["kind"] for obj in yaml.safe_load_all(done.stdout)]
    assert "does not ask extenders at reserve" in done.stderr
    assert "also calls the extender for the extender's own pods" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [([], "Add --config FILE"), (["--config=x", "--service-monitor"], "cannot be used with --extender")],
)
def test_manifests_of_an_extender_that_cannot_be_made(arguments, text):
    done = runner.invoke(app, ["manifests", "--extender", *arguments])
    assert done.exit_code == 1
    assert text in done.stderr.replace("\n", " ")


def ask(url: str, body: object = None, context: ssl.SSLContext | None = None) -> tuple[int, str]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


class ExtenderDaemon(Daemon):
    """The extender as a process."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "moorage", "extender", "--config=scheduler.yaml", f"--port={port}"]
        environment = {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
        super().__init__("extender", command, folder, environment)


@pytest.fixture
def process(folder: Path):
    """Not started."""
    made = ExtenderDaemon(folder)
    yield made
    made.kill()


@pytest.mark.slow
def test_the_process_serves_its_verbs_until_sigterm(folder, process):
    with ApiThread(folder) as api:
        api.add_node("a")
        api.add_node("b")
        process.command.append(f"--kubeconfig={api.kubeconfig}")
        process.start()
        process.wait_until(lambda: ask(f"{process.url}/readyz")[0] == 200, 30)
        question = {"Pod": {"metadata": {"name": "p"}}, "NodeNames": ["a", "b"]}
        code, text = ask(f"{process.url}/filter", question)
        assert code == 200
        assert json.loads(text)["FailedNodes"] == {"a": "Sample: Node: a", "b": "Sample: Node: b"}
        assert json.loads(ask(f"{process.url}/prioritize", question)[1]) == [
            {"Host": "a", "Score": 7}, {"Host": "b", "Score": 7},
        ]  # fmt: skip
        assert ask(f"{process.url}/bind", {})[0] == 404
        assert ask(f"{process.url}/healthz")[0] == ask(f"{process.url}/livez")[0] == 200
        metrics = ask(f"{process.url}/metrics")[1]
        assert 'moorage_extender_server_requests_total{outcome="success",verb="filter"} 1.0' in metrics
        process.signal(signal.SIGTERM)
        assert process.wait(20) == 0
    log = process.log.read_text()
    assert "does not ask extenders at reserve" in log
    assert 'plugins="Sample" verbs="filter prioritize preempt"' in log


@pytest.mark.slow
def test_the_process_reloads_its_configuration_and_its_plugins(folder, process):
    question = {"Pod": {"metadata": {"name": "p"}}, "NodeNames": ["a"]}

    def failed() -> object:
        return json.loads(ask(f"{process.url}/filter", question)[1])["FailedNodes"]

    with ApiThread(folder) as api:
        api.add_node("a")
        process.command += [f"--kubeconfig={api.kubeconfig}", "--reload-plugins"]
        process.start()
        process.wait_until(lambda: ask(f"{process.url}/readyz")[0] == 200, 30)
        assert failed() == {"a": "Sample: Node: a"}
        (folder / "plugin_of_extender.py").write_text(PLUGIN.replace("Node: {", "not {"))
        process.wait_until(lambda: failed() == {"a": "Sample: not a"}, 30)
        (folder / "scheduler.yaml").write_text(CONFIG.replace("multiPoint", "score"))
        process.wait_until(lambda: "Reload failed" in process.log.read_text(), 30)
        assert failed() == {"a": "Sample: not a"}
        process.signal(signal.SIGTERM)
        assert process.wait(20) == 0
    log = process.log.read_text()
    assert "Reloaded the configuration (plugin_of_extender.py changed)." in log
    assert "the profile now serves prioritize instead of filter, prioritize, preempt; restart the extender" in log


@pytest.mark.slow
def test_with_a_client_authority_the_verbs_are_for_its_clients_and_health_is_for_all(folder, process):
    authority = Authority.new(time.time())
    pem = authority.client(User("kube-scheduler"))
    (folder / "ca.crt").write_bytes(authority.pem.certificate)
    stranger = ssl._create_unverified_context()  # its certificate is its own
    known = ssl._create_unverified_context()
    load(known, pem)
    url = process.url.replace("http:", "https:")
    question = {"Pod": {"metadata": {"name": "p"}}, "NodeNames": []}
    with ApiThread(folder) as api:
        process.command += [f"--kubeconfig={api.kubeconfig}", "--client-ca-file=ca.crt"]
        process.start()
        process.wait_until(lambda: ask(f"{url}/readyz", context=stranger)[0] == 200, 30)
        assert ask(f"{url}/filter", question, stranger)[0] == 401
        assert ask(f"{url}/filter", question, known)[0] == 200


@pytest.mark.slow
def test_the_process_answers_503_while_the_api_server_is_away(folder, process):
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "x", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }  # fmt: skip
    (folder / "away").write_text(json.dumps(config))
    process.command.append("--kubeconfig=away")
    process.start()
    process.wait_until(lambda: ask(f"{process.url}/livez")[0] == 200, 30)
    assert ask(f"{process.url}/readyz")[0] == 500
    code, text = ask(f"{process.url}/filter", {"Pod": {}, "NodeNames": []})
    assert (code, "have not synced yet" in text) == (503, True)
    process.signal(signal.SIGTERM)
    assert process.wait(20) == 0


@pytest.mark.slow
def test_a_port_that_is_taken_ends_the_process_with_the_flag_to_change(folder, process):
    with ApiThread(folder) as api:
        port = api.url.rpartition(":")[2]
        process.command += [f"--kubeconfig={api.kubeconfig}", f"--port={port}"]
        process.start()
        assert process.wait(20) == 1
    assert "it is in use; set another --port" in process.log.read_text().replace("\n", " ")
