"""kube-apiserver and the embedded server return the same objects for the same manifests: defaults and admission.

docs/up.md lists the differences that remain, each with its reason; this test reads the list. No controllers run
on either side, so nothing changes after the creation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.embedded.builtin import BUILT_IN
from tests.cluster.controlplane import Missing, find_programs, running
from tests.kubectl import default_pod_samples, default_samples
from tests.kubectl.bare import BareServer
from tests.kubectl.runner import Kubectl, find_all

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

MANIFESTS = "\n---".join((default_samples.MANIFESTS, default_pod_samples.MANIFESTS, default_samples.LAST))
_DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "up.md"
_SECTION = re.compile(r"^## Differences in returned objects$(?P<text>.*?)^## ", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^\| `(?P<path>[^`]+)` \|", re.MULTILINE)
_OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink")
_CHOSEN = (
    "clusterIP",
    "nodePort",
    "healthCheckNodePort",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "lastTransitionTime",
)
"""Fields whose values each server chooses."""


@pytest.fixture(scope="module")
def returned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The objects of the embedded and of the real server, by kind and name."""
    try:
        programs = find_programs()
    except Missing as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("defaults")
    bare = BareServer(folder / "kubeconfig")
    bare.start()
    with running(folder / "plane", programs) as plane:
        configs = (("ours", bare.kubeconfig), ("real", plane.admin_config))
        ours, real = (_create(Kubectl(find_all()[0], config, folder / name)) for name, config in configs)
        yield ours, real
    bare.stop()


def _create(kubectl: Kubectl) -> dict[str, Any]:
    done = kubectl.run("create", "--validate=strict", "--output=json", "-f", "-", stdin=MANIFESTS)
    assert done.code == 0, done.err
    decoder, text, found = json.JSONDecoder(), done.out.strip(), {}
    while text:
        raw, end = decoder.raw_decode(text)
        found[f"{raw['apiVersion']} {raw['kind']}/{raw['metadata']['name']}"] = raw
        text = text[end:].lstrip()
    return found


def _without_chosen(value: Any, at: str = "") -> Any:
    """Return the object without the values that each server chooses."""
    if isinstance(value, dict):
        own = _OF_THE_SERVER if at == ".metadata" else ()
        return {
            field: "chosen" if field in _CHOSEN and item != "None" else _without_chosen(item, f"{at}.{field}")
            for field, item in value.items()
            if field not in own
        }
    if isinstance(value, list):
        chosen = at == ".spec.clusterIPs" and value != ["None"]
        return ["chosen"] if chosen else [_without_chosen(item, at) for item in value]
    return value


def _differences(ours: Any, real: Any, at: str) -> Iterator[tuple[str, str]]:
    """Yield the path, without indexes, and both values of everything that differs."""
    if isinstance(ours, dict) and isinstance(real, dict):
        for field in sorted({**ours, **real}):
            yield from _differences(ours.get(field, "(absent)"), real.get(field, "(absent)"), f"{at}.{field}")
    elif isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        for one, other in zip(ours, real, strict=True):
            yield from _differences(one, other, at)
    elif ours != real:
        yield at, f"{json.dumps(ours)} here, {json.dumps(real)} from kube-apiserver"


def _all_differences(ours: dict[str, Any], real: dict[str, Any]) -> dict[str, list[str]]:
    """Return what differs, by kind and path."""
    found: dict[str, list[str]] = {}
    for name in real:
        for path, what in _differences(_without_chosen(ours[name]), _without_chosen(real[name]), ""):
            found.setdefault(f"{real[name]['kind']}{path}", []).append(f"{name}: {what}")
    return found


def _listed() -> set[str]:
    section = _SECTION.search(_DOCUMENT.read_text())
    assert section is not None, "docs/up.md has no section of the differences"
    return {match["path"] for match in _ENTRY.finditer(section["text"])}


def _covers(listed: str, path: str) -> bool:
    return path == listed or path.startswith(f"{listed}.")


def test_objects_differ_only_where_the_documentation_says_so(returned):
    found, listed = _all_differences(*returned), _listed()
    unlisted = {path: what for path, what in found.items() if not any(_covers(one, path) for one in listed)}
    assert not unlisted, "\n".join(line for what in unlisted.values() for line in what)
    stale = {one for one in listed if not any(_covers(one, path) for path in found)}
    assert not stale, f"docs/up.md lists differences that do not exist: {stale}"


def test_every_served_kind_has_a_manifest():
    """PodGroups of v1alpha2 are the exception: kube-apiserver serves no alpha versions by default."""
    given = {(m["apiVersion"], m["kind"]) for m in yaml.safe_load_all(MANIFESTS)}
    served = {(kind.served.resource.api_version, kind.served.resource.kind) for kind in BUILT_IN}
    assert {kind for kind in served - given if "alpha" not in kind[0]} == set()
