"""tools/controlplane/build: what it trusts, what it takes from elsewhere, and what it says without Go."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "controlplane" / "build"
UPSTREAM = """module k8s.io/kubernetes

go 1.25.0

godebug default=go1.25

require (
\tgo.etcd.io/etcd/server/v3 v3.6.4 // indirect
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/kubectl => ./staging/src/k8s.io/kubectl
)
"""


@pytest.fixture(scope="module")
def build():
    loader = importlib.machinery.SourceFileLoader("controlplane_build", str(TOOL))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module  # dataclasses and type hints look it up
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # the program has no ending; its cache would lie beside it
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


@pytest.fixture
def cache(build, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "go_version", lambda: "go1.26 linux amd64")
    monkeypatch.setattr(build.shutil, "which", lambda name: f"/bin/{name}")
    made = build.Cache(build.pinned_version(), tmp_path)
    made.folder.mkdir()
    return made


def place(build, cache, name="etcd", content=b"a program"):
    (cache.folder / name).write_bytes(content)
    note = {"key": cache.key(name), "sha256": build.checksum(cache.folder / name), "version": cache.version}
    (cache.folder / f"{name}.json").write_text(json.dumps(note))


def test_a_finished_program_is_used_again(build, cache):
    place(build, cache)
    assert cache.valid("etcd")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda cache: (cache.folder / "etcd").write_bytes(b"a pro"),
        lambda cache: (cache.folder / "etcd").unlink(),
        lambda cache: (cache.folder / "etcd.json").unlink(),
        lambda cache: (cache.folder / "etcd.json").write_text('{"sha256": '),
        lambda cache: (cache.folder / "etcd.json").write_text("{}"),
    ],
    ids=["cut short", "gone", "no note", "half a note", "empty note"],
)
def test_a_partial_one_is_not(build, cache, spoil):
    place(build, cache)
    spoil(cache)
    assert not cache.valid("etcd")


def test_another_go_means_another_build(build, cache, monkeypatch):
    place(build, cache)
    monkeypatch.setattr(build, "go_version", lambda: "go1.27 linux amd64")
    assert not cache.valid("etcd")


def test_a_program_of_this_repository_is_built_again_when_its_source_changes(build, cache, tmp_path, monkeypatch):
    source = tmp_path / "main.go"
    source.write_text("package main")
    monkeypatch.setitem(build.OWN, "extender", str(tmp_path))
    for name in ("etcd", "extender"):
        place(build, cache, name)
    source.write_text("package main // changed")
    assert (cache.valid("etcd"), cache.valid("extender")) == (True, False)


@pytest.mark.skipif(not shutil.which("gofmt"), reason="no Go")
def test_the_extender_is_in_the_format_of_go():
    found = subprocess.run(["gofmt", "-l", TOOL.parent], capture_output=True, text=True, check=True)
    assert found.stdout == ""


def test_without_go_the_checksum_has_to_do(build, cache, monkeypatch):
    place(build, cache)
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    monkeypatch.setattr(build, "go_version", lambda: "")
    assert cache.valid("etcd")


def test_assets_are_taken_before_the_cache(build, cache, tmp_path, monkeypatch):
    place(build, cache)
    assets = tmp_path / "assets"
    assets.mkdir()
    program = assets / "etcd"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert build.find(cache, ["etcd", "kubectl"]) == ({"etcd": str(cache.folder / "etcd")}, ["kubectl"])
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert build.find(cache, ["etcd", "kubectl"]) == ({"etcd": str(program)}, ["kubectl"])


def test_a_module_for_another_version(build):
    text = build.module_text("v1.34.4", UPSTREAM)
    assert "require k8s.io/kubernetes v1.34.4\n" in text
    assert "require go.etcd.io/etcd/server/v3 v3.6.4\n" in text
    assert "replace k8s.io/api => k8s.io/api v0.34.4\n" in text
    assert "godebug default=go1.25\n" in text


def test_the_pinned_module_replaces_every_staged_one():
    text = (TOOL.parent / "go.mod").read_text()
    assert "k8s.io/kubernetes v1.37.1" in text
    replaced = [line for line in text.splitlines() if " => " in line]
    assert len(replaced) > 25
    assert all(line.endswith(" v0.37.1") for line in replaced)


def test_the_version_is_stamped(build):
    assert "-X k8s.io/component-base/version.gitVersion=v1.37.1" in build.flags("v1.37.1")[-1]


def run(*arguments, **env):
    kept = {key: value for key, value in os.environ.items() if key != "KUBEBUILDER_ASSETS"}
    return subprocess.run([sys.executable, str(TOOL), *arguments], capture_output=True, text=True, env={**kept, **env})


def test_without_go_it_says_what_to_do(tmp_path):
    done = run("--cache", str(tmp_path), "etcd", PATH=str(tmp_path))
    assert done.returncode == 3
    assert "install Go 1.26 or newer" in done.stderr
    assert "KUBEBUILDER_ASSETS" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--version", "1.36"), "expected a release such as v1.37.1"), (("kubelet",), "unknown program kubelet")],
)
def test_refused_arguments(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
