"""A real control plane on loopback: etcd, kube-apiserver and, where wanted, their companions.

Everything is made afresh per instance: ports, data, certificates, tokens. The programs come from
tools/controlplane; where they are neither there nor can be built, `find_programs` says why. No kubelet: nodes
are plain objects and pods are only bound (`kubelet.py` plays the little that some tests need).

    python -m tests.cluster.controlplane FOLDER

runs etcd and kube-apiserver until Ctrl-C, with FOLDER/admin.kubeconfig, for `moorage bench cluster`.
"""

from __future__ import annotations

import base64
import json
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.api import Api, ApiProblem
from tests.cluster.certificates import Authority, KeyPair, signing_key, write_kubeconfig
from tests.cluster.processes import Daemon, StartFailed, free_port, with_free_ports

TOOL = Path(__file__).resolve().parents[2] / "tools" / "controlplane" / "build"
START_SECONDS = 120.0
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "disruption-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "serviceaccount-controller",
)
"""What tests rely on. The node lifecycle controller stays off: it would taint nodes without a kubelet."""

WITHOUT_ADMISSION = (
    "ServiceAccount",  # pods would wait for the default account of a new namespace
    "StorageObjectInUseProtection",  # finalizers that no controller here removes
    "TaintNodesByCondition",  # every node would be born tainted
)
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


class Missing(Exception):
    """Why there are no programs to run."""


def find_programs(version: str = "", names: Sequence[str] = ()) -> dict[str, str]:
    """Name → path; built first if need be. Raises Missing where that is impossible."""
    command = [sys.executable, str(TOOL), *(["--version", version] if version else []), *names]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode == 3:
        raise Missing("neither the control plane programs nor Go to build them (see tools/controlplane/build)")
    if done.returncode:
        raise StartFailed(f"`{' '.join(command)}` ended with {done.returncode}; see its output above")
    found: dict[str, str] = json.loads(done.stdout)
    return found


@dataclass(frozen=True, slots=True)
class Call:
    """One line of the audit log."""

    user: str
    group: str
    resource: str
    """With the subresource, as in RBAC: `pods/binding`."""
    verb: str
    namespace: str
    name: str
    code: int
    received: str
    """When the request arrived, RFC 3339 with microseconds."""
    answered: str
    stage: str

    @property
    def right(self) -> tuple[str, str, str]:
        return self.group, self.resource, self.verb


class ControlPlane:
    """etcd and kube-apiserver, running from `start` to `stop`.

    `audit`: every request is written down, which many tests judge by. `fsync`: etcd waits for the disk; tests
    that do not measure it are faster without.
    """

    kind = "real"

    def __init__(
        self,
        folder: Path,
        programs: dict[str, str],
        *,
        audit: bool = True,
        fsync: bool = False,
        api_flags: Sequence[str] = (),
    ) -> None:
        """`api_flags` are further flags of kube-apiserver."""
        self.folder = folder
        self._api_flags = tuple(api_flags)
        self._programs = programs
        self._audit, self._fsync = audit, fsync
        folder.mkdir(parents=True, exist_ok=True)
        self.authority = Authority(folder)
        self._tokens = signing_key(folder)
        self._admin = self.authority.client("admin", "system:masters")
        self._etcd_port, self._peer_port, self.port = free_port(), free_port(), free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self.etcd = Daemon("etcd", self._etcd_command(), folder)
        self.apiserver = Daemon("kube-apiserver", self._apiserver_command(), folder)
        self._others: list[Daemon] = []
        self.api = Api(self.server, self._context(self._admin))
        self.admin_config = self.kubeconfig("admin", pair=self._admin)

    # Life.

    def start(self) -> None:
        self.etcd.start()
        self.etcd.wait_until(self._etcd_ready, START_SECONDS)
        self.apiserver.start()
        self.apiserver.wait_until(self._ready, START_SECONDS)

    def stop(self) -> None:
        for daemon in [*reversed(self._others), self.apiserver, self.etcd]:
            daemon.stop()
        self._others.clear()
        self.api.close()

    def restart_apiserver(self, pause: float = 0.0) -> None:
        """Away and back on the same port and data."""
        self.stop_apiserver()
        time.sleep(pause)
        self.start_apiserver()

    def stop_apiserver(self) -> None:
        self.apiserver.kill()
        self.api.close()

    def start_apiserver(self) -> None:
        self.apiserver.start()
        self.apiserver.wait_until(self._ready, START_SECONDS)

    def compact_etcd(self) -> None:
        """Forget all history; whoever needs an older version gets a 410."""
        status = self._etcd("/v3/maintenance/status", {})
        revision = status["header"]["revision"]
        self._etcd("/v3/kv/compaction", {"revision": revision, "physical": True})

    # Companions.

    def start_controllers(self, controllers: Sequence[str] = CONTROLLERS) -> Daemon:
        pair = self.authority.client("controllers", "system:masters")
        config = self.kubeconfig("controllers", pair=pair)
        return self._companion(
            "kube-controller-manager",
            [
                f"--kubeconfig={config}",
                f"--authentication-kubeconfig={config}",
                f"--authorization-kubeconfig={config}",
                f"--controllers={','.join(controllers)}",
                f"--service-account-private-key-file={self._tokens.key}",
                "--leader-elect=false",
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
                "--pvclaimbinder-sync-period=2s",
            ],
        )

    def start_kube_scheduler(self, config: dict[str, Any], *, verbosity: int = 2) -> Daemon:
        """The stock scheduler with its own role; `config` is a KubeSchedulerConfiguration."""
        pair = self.authority.client("system:kube-scheduler")
        kubeconfig = self.kubeconfig("kube-scheduler", pair=pair)
        file = self.folder / "kube-scheduler.yaml"
        connection = {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 1000}
        election = {"leaderElect": False}
        file.write_text(json.dumps({**config, "clientConnection": connection, "leaderElection": election}))
        return self._companion(
            "kube-scheduler",
            [
                f"--config={file}",
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
                f"-v={verbosity}",
            ],
        )

    def _companion(self, name: str, options: list[str]) -> Daemon:
        return with_free_ports(lambda: self._start_companion(name, free_port(), options))

    def _start_companion(self, name: str, port: int, options: list[str]) -> Daemon:
        serving = [f"--secure-port={port}", "--bind-address=127.0.0.1", f"--cert-dir={self.folder / name}"]
        daemon = Daemon(name, [self._programs[name], *serving, *options], self.folder)
        daemon.start()
        self._others.append(daemon)
        context = ssl._create_unverified_context()  # their certificates are their own
        daemon.wait_until(lambda: _healthy(f"https://127.0.0.1:{port}/healthz", context), START_SECONDS)
        return daemon

    # Credentials.

    def kubeconfig(self, name: str, *, pair: KeyPair | None = None, token: str = "", server: str = "") -> Path:
        path = self.folder / f"{name}.kubeconfig"
        return write_kubeconfig(path, server or self.server, self.authority.file, pair=pair, token=token)

    def token(self, account: str, namespace: str, seconds: int = 7200) -> str:
        """A bound token of a service account."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        target = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        return str(self.api.request("POST", target, body)["status"]["token"])

    def api_as(self, token: str) -> Api:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        return Api(self.server, context, token)

    # The audit log.

    def calls(self, user: str = "") -> list[Call]:
        """All requests so far, of one user or of all users; long ones (watches) when they began and ended."""
        found = []
        for line in self._audit_lines():
            entry = json.loads(line)
            if not user or entry["user"].get("username") == user:
                found.append(_call(entry))
        return found

    def _audit_lines(self) -> Iterator[str]:
        with (self.folder / "audit.log").open() as lines:
            yield from lines

    # Commands.

    def _etcd_command(self) -> list[str]:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        return [
            self._programs["etcd"],
            "--name=test",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=test={peer}",
            *(() if self._fsync else ("--unsafe-no-fsync",)),
            "--log-level=warn",
        ]

    def _apiserver_command(self) -> list[str]:
        serving = self.authority.server("kube-apiserver")
        return [
            self._programs["kube-apiserver"],
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self.folder / 'apiserver'}",
            f"--tls-cert-file={serving.cert}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={self.authority.file}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._tokens.cert}",
            f"--service-account-signing-key-file={self._tokens.key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            f"--disable-admission-plugins={','.join(WITHOUT_ADMISSION)}",
            "--profiling=false",
            *(self._audit_options() if self._audit else ()),
            *self._api_flags,
        ]

    def _audit_options(self) -> list[str]:
        policy = self.folder / "audit-policy.yaml"
        policy.write_text(json.dumps(AUDIT_POLICY))
        return [
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.folder / 'audit.log'}",
            "--audit-log-mode=blocking",
        ]

    # Probes.

    def _ready(self) -> bool:
        """Ready, with the namespace that tests use and the roles that start-up writes."""
        try:
            self.api.request("GET", "/readyz")
            self.api.request("GET", "/api/v1/namespaces/default")
        except (OSError, ApiProblem):
            return False
        return True

    def _etcd_ready(self) -> bool:
        return _healthy(f"http://127.0.0.1:{self._etcd_port}/health", None)

    def _etcd(self, target: str, body: dict[str, Any]) -> Any:
        """etcd's JSON gateway."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._etcd_port}{target}", json.dumps(body).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def _context(self, pair: KeyPair) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        context.load_cert_chain(pair.cert, pair.key)
        return context


def _healthy(url: str, context: ssl.SSLContext | None) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5, context=context) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _call(entry: dict[str, Any]) -> Call:
    ref = entry.get("objectRef") or {}
    resource, sub = ref.get("resource", entry["requestURI"].split("?")[0]), ref.get("subresource", "")
    return Call(
        user=entry["user"].get("username", ""),
        group=ref.get("apiGroup", ""),
        resource=f"{resource}/{sub}" if sub else resource,
        verb=entry["verb"],
        namespace=ref.get("namespace", ""),
        name=ref.get("name", ""),
        code=(entry.get("responseStatus") or {}).get("code", 0),
        received=entry["requestReceivedTimestamp"],
        answered=entry["stageTimestamp"],
        stage=entry["stage"],
    )


def decode_token(token: str) -> dict[str, Any]:
    """What a token claims, unchecked."""
    part = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


@contextmanager
def running(
    folder: Path, programs: dict[str, str], *, audit: bool = True, fsync: bool = False, api_flags: Sequence[str] = ()
) -> Iterator[ControlPlane]:
    """A control plane for the time of a `with`."""

    def start() -> ControlPlane:
        shutil.rmtree(folder / "etcd", ignore_errors=True)
        plane = ControlPlane(folder, programs, audit=audit, fsync=fsync, api_flags=api_flags)
        try:
            plane.start()
        except BaseException:
            plane.stop()
            raise
        return plane

    plane = with_free_ports(start)
    try:
        yield plane
    finally:
        plane.stop()


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    with (
        suppress(KeyboardInterrupt),
        running(folder, find_programs(names=("etcd", "kube-apiserver")), audit=False) as plane,
    ):
        print(f"{plane.server} is ready; its kubeconfig is {plane.admin_config}", flush=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        signal.pause()


if __name__ == "__main__":
    main()
