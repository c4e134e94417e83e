"""The clients kubernetes, kr8s and lightkube work with the embedded server: versions, objects, watches and logs.

They are installed into a virtual environment for these tests, because Moorage needs none of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kubectl.cluster import Cluster

pytestmark = pytest.mark.slow

_SECONDS = 300.0
_OFFICIAL = """
from kubernetes import client, config, watch

config.load_kube_config()
assert client.VersionApi().get_code().minor == "37"
assert {"v1"} == set(client.CoreApi().get_api_versions().versions)
assert "apps" in {group.name for group in client.ApisApi().get_api_versions().groups}
core, apps = client.CoreV1Api(), client.AppsV1Api()
labels = {"app": "web"}
spec = {"containers": [{"name": "main", "image": "web"}]}
apps.create_namespaced_deployment(space, {
    "metadata": {"name": "web"},
    "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
})
for event in watch.Watch().stream(core.list_namespaced_pod, space, timeout_seconds=30):
    if event["object"].status.phase == "Running":
        name = event["object"].metadata.name
        break
assert "simulated" in core.read_namespaced_pod_log(name, space)
apps.patch_namespaced_deployment_scale("web", space, {"spec": {"replicas": 3}})
assert apps.read_namespaced_deployment("web", space).spec.replicas == 3
found = core.list_namespaced_config_map(space, label_selector="a=b")
assert found.items == []
core.create_namespaced_config_map(space, {"metadata": {"name": "settings", "labels": {"a": "b"}}, "data": {"k": "v"}})
changed = core.read_namespaced_config_map("settings", space)
changed.data["k"] = "w"
assert core.replace_namespaced_config_map("settings", space, changed).data == {"k": "w"}
assert [item.data for item in core.list_namespaced_config_map(space, label_selector="a=b").items] == [{"k": "w"}]
core.list_namespaced_event(space)
client.EventsV1Api().list_namespaced_event(space)
try:
    core.read_namespaced_config_map("missing", space)
except client.ApiException as error:
    assert (error.status, error.reason) == (404, "Not Found")
apps.delete_namespaced_deployment("web", space)
"""
_KR8S = """
import kr8s
from kr8s.objects import ConfigMap, Deployment, Pod

api = kr8s.api(namespace=space)
assert api.version()["minor"] == "37"
pod = Pod({"metadata": {"name": "one", "namespace": space}, "spec": {"containers": [{"name": "main", "image": "x"}]}})
pod.create()
for event, seen in api.watch("pods", namespace=space):
    if seen.status.get("phase") == "Running":
        break
pod.wait("condition=Ready", timeout=30)
assert any("simulated" in line for line in pod.logs())
pod.label({"a": "b"})
assert [found.name for found in kr8s.get("pods", namespace=space, label_selector="a=b")] == ["one"]
settings = ConfigMap({"metadata": {"name": "settings", "namespace": space}, "data": {"k": "v"}})
settings.create()
settings.patch({"data": {"k": "w"}})
settings.refresh()
assert settings.data == {"k": "w"}
assert not ConfigMap({"metadata": {"name": "missing", "namespace": space}}).exists()
pod.delete()
settings.delete()
"""
_LIGHTKUBE = """
from lightkube import ApiError, Client
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Event, Node, Pod

client = Client(namespace=space)
assert len(list(client.list(Node))) == 3
client.create(Pod(metadata=ObjectMeta(name="one"), spec=PodSpec(containers=[Container(name="main", image="x")])))
for event, seen in client.watch(Pod, server_timeout=30):
    if seen.status.phase == "Running":
        break
client.wait(Pod, "one", for_conditions=["Ready"])
assert any("simulated" in line for line in client.log("one"))
client.create(ConfigMap(metadata=ObjectMeta(name="settings", labels={"a": "b"}), data={"k": "v"}))
assert client.patch(ConfigMap, "settings", {"data": {"k": "w"}}).data == {"k": "w"}
settings = client.get(ConfigMap, "settings")
settings.data = {"k": "x"}
assert client.replace(settings).data == {"k": "x"}
assert [found.data for found in client.list(ConfigMap, labels={"a": "b"})] == [{"k": "x"}]
list(client.list(Event))
try:
    client.get(ConfigMap, "missing")
except ApiError as error:
    assert error.status.code == 404
client.delete(ConfigMap, "settings")
client.delete(Pod, "one")
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment with the three clients."""
    folder = tmp_path_factory.mktemp("clients")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=_SECONDS)
    interpreter = folder / "bin" / "python"
    install = [str(interpreter), "-m", "pip", "install", "--quiet", "--retries=1", "kubernetes", "kr8s", "lightkube"]
    done = subprocess.run(install, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        pytest.skip(f"pip cannot install the clients: {done.stderr.strip().splitlines()[-1:]}")
    return interpreter


@pytest.mark.parametrize("name", ["kubernetes", "kr8s", "lightkube"])
def test_a_client_reads_writes_and_watches(cluster: Cluster, python: Path, name: str):
    script = {"kubernetes": _OFFICIAL, "kr8s": _KR8S, "lightkube": _LIGHTKUBE}[name]
    space = f"client-{name}"
    cluster.make_namespace(space)
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    environment.pop("PYTHONPATH", None)
    command = [str(python), "-c", f"space = {space!r}\n{script}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
