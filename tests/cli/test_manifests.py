"""`moorage manifests` from the command line."""

from __future__ import annotations

import yaml
from typer.testing import CliRunner

from moorage.cli.root import app


def run(*arguments):
    return CliRunner().invoke(app, ["manifests", *arguments])


def test_prints_a_stream():
    done = run("--name", "blue", "--image", "registry.example/m:2", "--replicas", "3")
    assert done.exit_code == 0, done.output
    objects = {obj["kind"]: obj for obj in yaml.safe_load_all(done.stdout)}
    assert objects["Deployment"]["spec"]["replicas"] == 3
    assert objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example/m:2"
    assert "schedulerName: blue" in objects["ConfigMap"]["data"]["scheduler.yaml"]


def test_writes_a_kustomize_base(tmp_path):
    done = run("--kustomize", str(tmp_path / "base"))
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    assert "kubectl apply -k" in done.stderr
    assert (tmp_path / "base" / "kustomization.yaml").exists()


def test_bad_configuration(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nnope: 1\n")
    done = run("--config", str(file))
    assert done.exit_code == 1
    assert "nope" in done.stderr
    assert done.stdout == ""


def test_missing_file(tmp_path):
    done = run("--config", str(tmp_path / "none.yaml"))
    assert done.exit_code == 1
    assert "Cannot read" in done.stderr


def test_refused_option():
    done = run("--name", "Not A Name")
    assert done.exit_code == 1
    assert "--name" in done.stderr


def test_the_default_scheduler_comes_with_a_warning(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    done = run("--config", str(file))
    assert done.exit_code == 0
    assert "warning: a profile is named default-scheduler" in done.stderr.replace("\n", " ")
