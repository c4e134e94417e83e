"""The package of examples/02: installed by pip, found by its entry point, started as a Deployment would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.run.api_thread import ROOT, ApiThread, Running

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "examples" / "02-sample-package"


class SampleScheduler(Running):
    """The command of the package."""

    def __init__(self, api: ApiThread, installed: Path, config: Path) -> None:
        self.log = api.folder / "moorage.log"
        command = [sys.executable, str(installed / "bin" / "sample-scheduler"), f"--config={config}", "--v=3"]
        environment = {**os.environ, "PYTHONPATH": f"{installed}:{ROOT / 'src'}", "PYTHONUNBUFFERED": "1"}
        flags = [f"--kubeconfig={api.kubeconfig}", "--secure-port=0", "--leader-elect=false"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*command, *flags], env=environment, stderr=log, stdout=log)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    folder = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(folder), str(EXAMPLE)], check=True)
    return folder


def labelled(api: ApiThread, name: str) -> None:
    node = api.request("GET", f"/api/v1/nodes/{name}")
    node["metadata"]["labels"] = {"cpu": "true"}
    api.request("PUT", f"/api/v1/nodes/{name}", node)


@pytest.mark.parametrize("plugin", ["sample", "sample2"])
def test_a_pod_waits_for_the_label_and_the_feasible_nodes_are_logged(tmp_path, installed, plugin):
    text = (EXAMPLE / "scheduler-config.yaml").read_text()
    config = tmp_path / "scheduler-config.yaml"
    config.write_text(text.replace("name: sample\n", f"name: {plugin}\n"))
    template = yaml.safe_load((EXAMPLE / "test-scheduler.yaml").read_text())["spec"]["template"]
    with ApiThread(tmp_path) as api:
        for name in ("a", "b", "c"):
            api.add_node(name)
        with SampleScheduler(api, installed, config) as run:
            pods = "/api/v1/namespaces/default/pods"
            api.request("POST", pods, {"metadata": {"name": "first"}, "spec": template["spec"]})
            note = "0/3 nodes are available: 1 Node: a, 1 Node: b, 1 Node: c."
            run.until(lambda: note in run.text())
            labelled(api, "b")
            run.until(lambda: api.node_of("first") == "b")
            labelled(api, "c")
            api.request("POST", pods, {"metadata": {"name": "second"}, "spec": template["spec"]})
            run.until(lambda: api.node_of("second") in ("b", "c"))
            assert "feasible nodes of default/second: b c" in run.text()
