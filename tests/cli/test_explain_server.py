"""`--server`: a running scheduler is asked over TLS, with a token, for its records and for what it sees."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from typer.testing import Result

from moorage import snapshots
from moorage.api.resources import PODS
from moorage.app.clock import SystemClock
from moorage.cli.root import app
from moorage.endpoints.health import PING, Health, ProcessView, application
from moorage.endpoints.queries import RecordsQuery, SnapshotQuery
from moorage.serving.access import Authenticator, Authorizer, Guard
from moorage.serving.certificates import Authority, ServingCertificate
from moorage.serving.server import ServingThread
from moorage.testing import Cluster, make_node, make_pod
from moorage.up import kubeconfig
from tests.cli.running import runner
from tests.endpoints.asking import Asker
from tests.endpoints.served import VIEWS, Reviews

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {disabled: [{name: NodeUnschedulable}]}}}]
"""
"""Of the running scheduler, as it says; the default profile would leave a cordoned node out."""


def recorded() -> tuple[dict[str, Any], dict[bool, bytes]]:
    """Answers about pods of a small cluster: one that waits, one that has a node, one that is not known. And
    its snapshots, without and with annotations."""
    with Cluster() as cluster:
        cluster.add(make_node("n", cpu="2"), make_node("cordoned", unschedulable=True))
        cluster.settle()
        cluster.add(make_pod("small", cpu="1", priority=0, annotations={"note": "kept on demand"}))
        cluster.settle()
        cluster.add(make_pod("big", cpu="4"))
        cluster.settle()
        cluster.add(make_node("late", cpu="1"))
        cluster.settle(20)
        ask = Asker(cluster)
        names = ("small", "big", "none")
        answers = {name: ask.get(f"records?pod=default/{name}&nodes=3") for name in names}
        return answers, {kept: b"".join(ask.snapshot(annotations=kept)) for kept in (False, True)}


class Endpoints:
    """The endpoints of a scheduler that has `recorded` that."""

    def __init__(self, folder: Path) -> None:
        self.answers, self.snapshots = recorded()
        authority = Authority.new(SystemClock().wall())
        certificate = ServingCertificate(pair=authority.server())
        self._thread = ServingThread("127.0.0.1", 0, certificate.context, self._make_app)
        self._thread.start()
        self.stop = self._thread.stop
        self.url = f"https://127.0.0.1:{self._thread.port}"
        self.authority, self.kubeconfig = folder / "ca.crt", folder / "kubeconfig"
        self.authority.write_bytes(authority.pem.certificate)
        text = kubeconfig.text("https://127.0.0.1:1", "admin-token", authority.pem.certificate)
        self.kubeconfig.write_text(text)
        for name in ("admin", "stranger", "unknown"):
            (folder / name).write_text(f"{name}-token\n")

    async def _make_app(self) -> Guard:
        inside: Any = SimpleNamespace(**dict.fromkeys(ProcessView.__dataclass_fields__, None))
        inside.health = Health(dict.fromkeys(("healthz", "livez", "readyz"), (PING,)))
        inside.views = SimpleNamespace(**dict.fromkeys(VIEWS, self._records))
        inside.views.snapshot = self._snapshot
        inside.configuration = SimpleNamespace(entry=None)
        inside.config = lambda: {"componentconfig": yaml.safe_load(CONFIG)}
        clock, client = SystemClock(), Reviews()
        return Guard(
            application(inside),
            authenticator=Authenticator(client, clock, 10.0),  # type: ignore[arg-type]
            authorizer=Authorizer(client, clock, 10.0, 10.0),  # type: ignore[arg-type]
        )

    async def _snapshot(self, query: SnapshotQuery) -> AsyncIterator[bytes]:
        async def blocks() -> AsyncIterator[bytes]:
            yield self.snapshots[query.annotations]

        return blocks()

    async def _records(self, query: RecordsQuery) -> Any:
        return self.answers[query.pod.partition("/")[2]]


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    made = Endpoints(tmp_path_factory.mktemp("endpoints"))
    yield made
    made.stop()


@pytest.fixture
def explain(endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(endpoints.kubeconfig.parent)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(endpoints.kubeconfig.parent))

    def run(pod: str, *args: str) -> Result:
        return runner.invoke(app, ["explain", pod, "--server", endpoints.url, *args], env={"COLUMNS": "300"})

    return run


def test_a_waiting_pod_shows_its_place_what_wakes_it_and_its_last_attempts(explain):
    result = explain("pod/big", "--kubeconfig", "kubeconfig")
    assert result.exit_code == 3, result.output
    lines = result.output.splitlines()
    assert lines[0].startswith("default/big: unschedulable since ")
    assert lines[1] == "Refused by NodeResourcesFit, NodeUnschedulable; waits for an event that may change that."
    assert "  NodeUnschedulable: NodeAdd, NodeUpdateNodeTaint, PodUpdatePodToleration" in lines
    assert any(line.startswith("Without such an event it is retried at ") for line in lines)
    attempts = [line.split() for line in lines if line[:2] in ("1 ", "2 ")]
    assert [row[2:4] for row in attempts[:2]] == [["UnscheduledPodAdd", "0"], ["NodeAdd", "(NodeUnschedulable)"]]
    assert any(line.split() == ["2", "NodeResourcesFit", "Insufficient", "cpu", "n,", "late"] for line in lines)


def test_a_pod_that_has_a_node_shows_where_it_went_and_the_scores(explain):
    result = explain("small", "-n", "default", "--kubeconfig", "kubeconfig")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("default/small: scheduled on n\n")
    assert "scheduled" in result.output


def test_programs_get_the_answer_itself(explain, endpoints):
    result = explain("pod/big", "--kubeconfig", "kubeconfig", "-o", "json")
    answer = json.loads(result.output)
    assert answer.pop("remedies") == []
    assert answer.pop("remediesMissing") == FEASIBLE
    assert answer == endpoints.answers["big"]


FEASIBLE = "No remedies are needed: 1 of 3 nodes are feasible now, and the next attempt may succeed."
"""The running scheduler says that it does not use NodeUnschedulable."""


def test_a_rejected_pod_shows_what_would_help_it(explain):
    Path("defaults.yaml").write_text(DEFAULTS)
    with_defaults = ("--kubeconfig", "kubeconfig", "--config", "defaults.yaml")
    lines = explain("pod/big", *with_defaults).output.splitlines()
    start = lines.index("What would help (each was tried on a copy of this cluster):")
    assert any("cordoned" in line and "feasible" in line for line in lines[start + 1 :])
    assert "What would help" not in explain("pod/big", *with_defaults, "--remedies", "0").output
    assert "What would help" not in explain("pod/small", *with_defaults).output


def test_remedies_are_tried_with_the_configuration_of_the_scheduler(explain):
    assert explain("pod/big", "--kubeconfig", "kubeconfig").output.splitlines()[-1] == FEASIBLE


def test_a_user_who_may_not_copy_the_cluster_gets_the_records_and_one_sentence(explain, endpoints):
    (endpoints.kubeconfig.parent / "reader").write_text("reader-token\n")
    result = explain("pod/big", "--kubeconfig", "kubeconfig", "--token-file", "reader")
    assert result.exit_code == 3, result.output
    assert "What would help" not in result.output
    last = result.output.splitlines()[-1]
    assert last.startswith("No remedies are shown, because the cluster cannot be copied: ")
    assert "nonResourceURL /moorage/v1/snapshot" in last


@pytest.mark.parametrize(
    "args",
    [
        ("--token-file", "admin", "--certificate-authority", "ca.crt"),
        ("--token-file", "admin", "--insecure-skip-tls-verify"),
        ("--token-file", "admin", "--kubeconfig", "kubeconfig"),
        ("--kubeconfig", "kubeconfig", "--context", "moorage"),
    ],
)
def test_who_asks_and_who_answers_is_said_by_files(explain, args):
    assert explain("pod/small", *args).exit_code == 0


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--token-file", "admin"), "certificate is not trusted"),
        (("--token-file", "unknown", "--certificate-authority", "ca.crt"), "401 Unauthorized"),
        (("--token-file", "stranger", "--certificate-authority", "ca.crt"), "nonResourceURL /moorage/v1/records"),
        (("--token-file", "nowhere"), "--token-file nowhere"),
        (("--token-file", "/dev/null"), "is empty"),
        (("--kubeconfig", "kubeconfig", "--snapshot", "s.json"), "it excludes --snapshot"),
        (("--kubeconfig", "kubeconfig", "--node", "n"), "it excludes --snapshot, --node"),
        ((), "no credentials"),
        (("--server", "http://127.0.0.1:1"), "expected https://HOST:PORT"),
    ],
)
def test_what_is_wrong_is_one_sentence(explain, args, problem):
    result = explain("pod/small", *args)
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert problem in result.output


def test_a_pod_that_the_scheduler_does_not_know_is_named(explain):
    result = explain("pod/none", "--kubeconfig", "kubeconfig")
    assert result.exit_code == 1
    assert "does not know the pod default/none" in result.output


def test_the_options_of_a_server_need_one():
    result = runner.invoke(app, ["explain", "pod/small", "--insecure-skip-tls-verify"])
    assert result.exit_code == 1
    assert "need --server" in result.output


@pytest.fixture
def run(explain: Any, endpoints: Endpoints) -> Any:
    """The API server of the kubeconfig is not there: nothing can be written to it."""

    def run(command: str, *args: str) -> Result:
        given = [command, "--server", endpoints.url, "--kubeconfig", "kubeconfig", *args]
        return runner.invoke(app, given, env={"COLUMNS": "160"})

    return run


DEFAULTS = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_what_if_takes_the_state_and_the_configuration_of_the_scheduler(run):
    Path("defaults.yaml").write_text(DEFAULTS)
    placed = [
        json.loads(run("what-if", "--cordon", "n", "-o", "json", *args).output)["placed"]
        for args in ((), ("--config", "defaults.yaml"))
    ]
    assert placed == [{"default/big": "cordoned"}, {}]


KEPT = {"note": "kept on demand"}


@pytest.mark.parametrize(("args", "annotations"), [((), {}), (("--annotations",), KEPT)])
def test_a_snapshot_of_a_scheduler_is_a_file_like_any_other(run, tmp_path, args, annotations):
    file = tmp_path / "seen.json.gz"
    result = run("snapshot", str(file), *args)
    assert result.exit_code == 0, result.output
    pods = {pod.name: pod for pod in snapshots.load(file).objects[PODS]}
    assert {name: pod.spec.node_name for name, pod in pods.items()} == {"small": "n", "big": ""}
    assert dict(pods["small"].annotations) == annotations


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--snapshot", "s.json"), "--snapshot excludes"),
        (("--token-file", "stranger"), "nonResourceURL /configz"),
        (("--token-file", "scraper"), "nonResourceURL /moorage/v1/snapshot"),
    ],
)
def test_what_the_user_may_not_read_is_said(run, endpoints, args, problem):
    (endpoints.kubeconfig.parent / "scraper").write_text("scraper-token\n")
    result = run("what-if", "--cordon", "n", *args)
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert problem in result.output
