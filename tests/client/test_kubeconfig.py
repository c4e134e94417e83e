"""Credentials out of kubeconfig files: what is taken from where, and what the errors say."""

import asyncio
import base64
import json
import os
import stat
import sys
import tempfile
import time
from pathlib import Path

import pytest
import uvloop
import yaml

from moorage.client import connection, kubeconfig
from moorage.client.credentials import CredentialsError, Pem
from tests.client.certificates import Authority


def write(path: Path, *, user=None, cluster=None, context=None, current="main", **more) -> str:
    """A kubeconfig with one context, `main`."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", **(context or {})}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        **more,
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


def load(paths: str, context: str = ""):
    return asyncio.run(kubeconfig.load(paths, context))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_certificates_at_hand_are_taken_over_and_nothing_stays_on_disk(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    ca, pair = Authority(), Authority().client("scheduler")
    path = write(
        tmp_path / "config",
        user={"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)},
        cluster={"certificate-authority-data": encoded(ca.pem)},
    )
    found = load(path)
    assert (found.ca, found.certificate) == (Pem(data=ca.pem), Pem(data=pair.certificate))
    assert found.key == Pem(data=pair.key)
    assert list(scratch.iterdir()) == []
    assert "PRIVATE KEY" not in repr(found)


def test_files_are_named_relative_to_the_kubeconfig(tmp_path):
    pair = Authority().client("scheduler")
    (tmp_path / "pki").mkdir()
    for name, data in (("ca.crt", Authority().pem), ("c.crt", pair.certificate), ("c.key", pair.key)):
        (tmp_path / "pki" / name).write_bytes(data)
    path = write(
        tmp_path / "config",
        user={"client-certificate": "pki/c.crt", "client-key": "pki/c.key"},
        cluster={"certificate-authority": "pki/ca.crt"},
    )
    found = load(path)
    assert found.ca == Pem(path=str(tmp_path / "pki" / "ca.crt"))
    assert found.certificate == Pem(path=str(tmp_path / "pki" / "c.crt"))
    assert found.key == Pem(path=str(tmp_path / "pki" / "c.key"))


def test_tokens_files_and_what_a_cluster_says(tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    path = write(
        tmp_path / "config",
        user={"token": "secret-token"},
        cluster={"tls-server-name": "kubernetes", "proxy-url": "http://proxy:3128"},
        context={"namespace": "prod"},
    )
    found = load(path)
    assert found.server == "https://10.0.0.1:6443"
    assert (found.token, found.token_file) == ("secret-token", "")
    assert (found.tls_server_name, found.proxy, found.namespace) == ("kubernetes", "http://proxy:3128", "prod")
    assert found.verify
    assert "secret-token" not in repr(found)
    other = load(write(tmp_path / "config", user={"tokenFile": "token", "token": "older"}))
    assert other.token_file == str(tmp_path / "token"), "the file wins, as for kubectl: it is rotated"


def test_an_unverified_server_is_warned_about(tmp_path, caplog):
    found = load(write(tmp_path / "config", user={"token": "t"}, cluster={"insecure-skip-tls-verify": True}))
    assert not found.verify
    assert "not verified" in caplog.text


def test_another_context_can_be_chosen(tmp_path):
    path = write(
        tmp_path / "config",
        contexts=[
            {"name": "main", "context": {"cluster": "c", "user": "u"}},
            {"name": "other", "context": {"cluster": "d", "user": "u"}},
        ],
        clusters=[{"name": "c", "cluster": {"server": "https://c"}}, {"name": "d", "cluster": {"server": "https://d"}}],
        user={"token": "t"},
    )
    assert load(path).server == "https://c"
    assert load(path, "other").server == "https://d"


def test_of_several_files_the_first_to_say_something_wins(tmp_path, caplog):
    first = write(tmp_path / "first", user={"token": "one"}, current="")
    second = write(tmp_path / "second", user={"token": "two"}, cluster={"server": "https://second"})
    third = write(tmp_path / "third", current="elsewhere")
    found = load(f"{first}:{tmp_path / 'missing'}:{second}:{third}")
    assert (found.token, found.server) == ("one", "https://10.0.0.1:6443")
    assert "file does not exist" in caplog.text


PLUGIN = """#!{python}
import json, os, pathlib
count = pathlib.Path(__file__).with_name("runs")
runs = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(runs))
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
status = {{"token": f"run-{{runs}}-{{os.environ['WHO']}}", "expirationTimestamp": "2031-01-01T00:00:00Z"}}
print(json.dumps({{"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": status}}))
"""


def plugin(tmp_path: Path, text: str) -> dict[str, dict[str, object]]:
    script = tmp_path / "plugin"
    script.write_text(text)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(script),
            "env": [{"name": "WHO", "value": "moorage"}],
            "interactiveMode": "Never",
        }
    }


def test_an_exec_plugin_is_run_and_can_be_run_again(tmp_path):
    path = write(tmp_path / "config", user=plugin(tmp_path, PLUGIN.format(python=sys.executable)))
    found = load(path)
    assert found.token == "run-1-moorage"
    assert found.expires == 1_924_992_000.0
    assert found.reload is not None
    again = asyncio.run(_reload(found))
    assert again.token == "run-2-moorage"


async def _reload(found):
    return await found.reload()


def answer(status: object) -> str:
    """A plugin that prints this status."""
    version = "client.authentication.k8s.io/v1"
    text = json.dumps({"kind": "ExecCredential", "apiVersion": version, "status": status})
    return f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#!/bin/sh\necho denied >&2\nexit 3\n", "denied"),
        ("#!/bin/sh\necho hello\n", "did not print JSON"),
        ("#!/bin/sh\necho '[]'\n", "no ExecCredential"),
        ('#!/bin/sh\necho \'{"kind": "ExecCredential"}\'\n', "speaks apiVersion None, not client"),
        (answer({}), "neither status.token nor"),
        (answer({"clientCertificateData": "PEM"}), "not both"),
        (answer({"token": "t", "expirationTimestamp": "soon"}), "invalid expirationTimestamp 'soon'"),
        ("#!/no/such/interpreter\n", "cannot be started"),
    ],
)
def test_a_broken_exec_plugin_is_named(tmp_path, text, message):
    path = write(tmp_path / "config", user=plugin(tmp_path, text))
    with pytest.raises(CredentialsError, match=message) as error:
        load(path)
    assert f"kubeconfig {path}, context main" in str(error.value)


def test_an_exec_plugin_gives_a_certificate(tmp_path):
    pair = Authority().client("scheduler")
    status = {
        "clientCertificateData": pair.certificate.decode(),
        "clientKeyData": pair.key.decode(),
        "expirationTimestamp": "2031-01-01T00:00:00Z",
    }
    found = load(write(tmp_path / "config", user=plugin(tmp_path, answer(status))))
    assert (found.certificate, found.key) == (Pem(data=pair.certificate), Pem(data=pair.key))
    assert (found.token, found.expires) == ("", 1_924_992_000.0)


def test_an_exec_plugin_is_found_beside_the_kubeconfig_and_gets_the_cluster(tmp_path):
    script = '#!/bin/sh\nprintf %s "$KUBERNETES_EXEC_INFO" > "$1"\n' + answer({"token": "t"})[10:]
    user = plugin(tmp_path, script)
    user["exec"].update(command="./plugin", args=[str(tmp_path / "info")], provideClusterInfo=True)
    (tmp_path / "ca.crt").write_bytes(Authority().pem)
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {"certificate-authority": "ca.crt", "extensions": [extension]}
    assert load(write(tmp_path / "config", user=user, cluster=cluster)).token == "t"
    spec = json.loads((tmp_path / "info").read_text())["spec"]
    assert spec == {
        "interactive": False,
        "cluster": {
            "server": "https://10.0.0.1:6443",
            "certificate-authority-data": encoded((tmp_path / "ca.crt").read_bytes()),
            "config": {"audience": "x"},
        },
    }


def test_a_user_with_a_token_needs_no_plugin(tmp_path):
    user = plugin(tmp_path, "#!/bin/sh\nexit 1\n")
    assert load(write(tmp_path / "config", user={**user, "token": "mine"})).token == "mine"


def test_much_talk_of_an_exec_plugin_does_not_stop_it(tmp_path):
    script = "#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' x >&2\n" + answer({"token": "t"})[10:]
    assert load(write(tmp_path / "config", user=plugin(tmp_path, script))).token == "t"


HANGING = """#!/bin/sh
echo "open https://login.example" >&2
sleep 60 &
echo $$ $! > "$0.pids.new" && mv "$0.pids.new" "$0.pids"
wait
"""
"""A script around the program that hangs, which is what most plugins are."""


@pytest.mark.parametrize("how", ["given up", "cancelled"])
@pytest.mark.parametrize("policy", ["asyncio", "uvloop"])
def test_an_exec_plugin_that_hangs_is_ended_with_its_children(tmp_path, monkeypatch, how, policy):
    path = write(tmp_path / "config", user=plugin(tmp_path, HANGING))
    pids = tmp_path / "plugin.pids"

    async def main() -> None:
        task = asyncio.create_task(kubeconfig.load(path))
        while not pids.exists():
            await asyncio.sleep(0.01)
        if how == "cancelled":
            task.cancel()
        await task

    monkeypatch.setattr(kubeconfig, "PLUGIN_SECONDS", 30 if how == "cancelled" else 1)
    expected = asyncio.CancelledError if how == "cancelled" else CredentialsError
    with pytest.raises(expected) as error:
        (uvloop if policy == "uvloop" else asyncio).run(main())
    if how == "given up":
        assert "gave no answer within 1 s: open https://login.example" in str(error.value)
    script, child = map(int, pids.read_text().split())
    with pytest.raises(ProcessLookupError):
        os.kill(script, 0)  # it was our child, so we have also read how it ended
    wait_gone(child)


def wait_gone(pid: int) -> None:
    """Wait until a grandchild has ended. Init collects it; without init it stays a zombie."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} is still there")


def test_an_exec_plugin_that_needs_a_terminal_is_refused(tmp_path):
    user = plugin(tmp_path, answer({"token": "t"}))
    user["exec"]["interactiveMode"] = "Always"
    with pytest.raises(CredentialsError, match="a scheduler has none"):
        load(write(tmp_path / "config", user=user))


def test_the_hint_for_a_missing_exec_plugin_is_passed_on(tmp_path):
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin-here"}
    user = {"exec": {**entry, "installHint": "install it\nwith care"}}
    with pytest.raises(CredentialsError, match=r"cannot be started: .*; install it with care"):
        load(write(tmp_path / "config", user=user))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"current": ""}, "has no current-context; choose one of: main"),
        ({"current": "prod"}, "has no context 'prod'; choose one of: main"),
        ({"context": {"user": "nobody"}}, "there is no user 'nobody'; users are: u"),
        ({"context": {"cluster": "gone"}}, "there is no cluster 'gone'; clusters are: c"),
        ({"context": {"user": ""}}, "the context has no user"),
        ({"user": {"username": "me", "password": "pw"}}, "password"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, "use the exec plugin"),
        ({"user": {"auth-provider": "oidc-like"}}, "use the exec plugin"),
        (
            {"user": {"auth-provider": {"name": "oidc"}}},
            "refresh-token is missing, so it cannot be renewed; log in again",
        ),
        ({"user": {"auth-provider": {"name": "oidc", "config": {"id-token": "a"}}}}, "is not a JSON Web Token"),
        ({"user": {"auth-provider": {"name": "oidc"}, "exec": {"command": "x"}}}, "remove one of them"),
        ({"user": {"exec": {"apiVersion": "v1"}}}, "exec has no command"),
        ({"user": {"exec": {"command": "x"}}}, "exec has no apiVersion"),
        ({"user": {"exec": {"command": "x", "apiVersion": "v1", "env": ["A"]}}}, "exec that cannot be read"),
        ({"user": {"token": ""}, "cluster": {"server": "10.0.0.1"}}, "write https://host:port"),
        ({"cluster": {"server": "https://me:pw@host"}}, "put users and tokens"),
        ({"cluster": {"proxy-url": "socks5://proxy"}}, "is not supported"),
        ({"cluster": {"certificate-authority": "/nowhere/ca.crt"}}, "/nowhere/ca.crt"),
        ({"user": {"tokenFile": "/nowhere/token"}}, "/nowhere/token"),
        ({"user": {"client-certificate-data": "A"}}, "correct the entry"),
    ],
)
def test_errors_name_the_file_the_entry_and_the_way_out(tmp_path, changes, message):
    path = write(tmp_path / "config", **changes)
    with pytest.raises(CredentialsError) as error:
        load(path)
    assert message in str(error.value)
    assert path in str(error.value)


@pytest.mark.parametrize("text", ["", "- a\n", "a: [", "contexts: 3\n", "\x00"])
def test_files_that_are_no_kubeconfig_are_named(tmp_path, text):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(CredentialsError, match=str(path)):
        load(str(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CredentialsError, match="no such file; name one with --kubeconfig"):
        load(str(tmp_path / "none"))


# Finding them


def service_account(tmp_path: Path) -> Path:
    for name, text in (("token", "abc\n"), ("ca.crt", Authority().pem.decode()), ("namespace", "moorage\n")):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("host", "server"), [("10.96.0.1", "https://10.96.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_the_service_account_of_the_pod(tmp_path, host, server):
    directory = service_account(tmp_path)
    environ = {connection.HOST: host, connection.PORT: "443"}
    found = connection.in_cluster(environ, directory)
    assert found.server == server
    assert (found.token_file, found.namespace) == (str(directory / "token"), "moorage")
    assert found.ca == Pem(path=str(directory / "ca.crt"))


@pytest.mark.parametrize(
    ("environ", "missing", "message"),
    [
        ({}, "", "this is not a pod"),
        ({connection.HOST: "10.0.0.1"}, "", "this is not a pod"),
        ({connection.HOST: "10.0.0.1", connection.PORT: "443"}, "token", "automountServiceAccountToken"),
        ({connection.HOST: "10.0.0.1", connection.PORT: "443"}, "ca.crt", "automountServiceAccountToken"),
    ],
)
def test_what_is_missing_in_a_pod_is_named(tmp_path, environ, missing, message):
    directory = service_account(tmp_path)
    if missing:
        (directory / missing).write_text("")
    with pytest.raises(CredentialsError, match=message):
        connection.in_cluster(environ, directory)


def test_where_credentials_are_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(connection, "SERVICE_ACCOUNT", service_account(tmp_path))
    named = write(tmp_path / "named", user={"token": "t"}, cluster={"server": "https://named"})
    listed = write(tmp_path / "listed", user={"token": "t"}, cluster={"server": "https://listed"})
    (tmp_path / ".kube").mkdir()
    pod = {connection.HOST: "10.0.0.1", connection.PORT: "443"}

    def found(path, environ):
        return asyncio.run(connection.find(path, environ=environ)).server

    with pytest.raises(CredentialsError, match="pass a kubeconfig file"):
        found("", {})
    write(tmp_path / ".kube" / "config", user={"token": "t"}, cluster={"server": "https://home"})
    assert found("", {}) == "https://home"
    assert found(named, {"KUBECONFIG": listed, **pod}) == "https://named"
    assert found("", {"KUBECONFIG": listed, **pod}) == "https://listed"
    with monkeypatch.context() as patched:
        patched.setattr(connection.in_cluster, "__defaults__", ({}, tmp_path))
        assert found("", pod) == "https://10.0.0.1:443"
