"""One kubectl shows the same objects of kube-apiserver and of the embedded server in the same way.

Needs the programs of tools/controlplane. No controllers run on either side, so nothing moves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.cluster.controlplane import Missing, find_programs, running
from tests.kubectl import samples
from tests.kubectl.bare import BareServer
from tests.kubectl.manifests import DEPLOYMENT, POD, WIDGET, WIDGETS
from tests.kubectl.runner import Kubectl, find_all

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

KINDS = sorted({obj["kind"].lower() for obj in samples.OBJECTS} | {"namespace"})
OWN = {
    "service": "kubernetes ",  # the service of the API server itself
    "priorityclass": "system-",  # made by the API server there, by a controller here
}
"""Lines that only one of the two can have, by their beginning."""

_AGE = re.compile(r"(?<![\w.:/-])\d+[smhd](\d+[smhd])?(?![\w.])")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kubectl, Kubectl]]:
    try:
        programs = find_programs()
    except Missing as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("both")
    bare = BareServer(folder / "kubeconfig")
    bare.start()
    with running(folder / "plane", programs) as plane:
        servers = []
        for name, config in (("ours", bare.kubeconfig), ("real", plane.admin_config)):
            (folder / name).mkdir()
            kubectl = Kubectl(find_all()[0], config, folder / name)
            kubectl("apply", "-f", "-", stdin=samples.manifest() + "\n---" + WIDGETS)
            kubectl("wait", "--for=condition=Established", "crd/widgets.example.io", "--timeout=20s")
            for kind, name_, patch in samples.patches():
                kubectl("patch", kind, name_, "--subresource=status", "--type=merge", "-p", patch)
            kubectl.until(lambda out: "widgets" in out, "api-resources", "--api-group=example.io")
            servers.append(kubectl)
        yield servers[0], servers[1]
    bare.stop()


def seen(kubectl: Kubectl, *args: str, stdin: str = "", without: str = "\0") -> list[str]:
    """The lines a user sees, with what differs from run to run masked."""
    result = kubectl.run(*args, stdin=stdin)
    masked = _UID.sub("UID", _AGE.sub("AGE", _TIME.sub("TIME", result.out + result.err)))
    lines = [" ".join(line.split()) for line in masked.splitlines()]
    return [line for line in lines if not line.startswith(without)]


@pytest.mark.parametrize("kind", KINDS)
def test_tables(both, kind):
    ours, real = both
    own = OWN.get(kind, "\0")
    assert seen(ours, "get", kind, "-o", "wide", without=own) == seen(real, "get", kind, "-o", "wide", without=own)


def test_every_kind_that_is_served_is_served_the_same(both):
    here, there = (set(seen(kubectl, "api-resources", "-o", "wide")) for kubectl in both)
    extra = {line for line in here - there if "metrics.k8s.io" not in line and "v1alpha2" not in line}
    assert extra == set()


@pytest.mark.parametrize(
    "wrong",
    [
        DEPLOYMENT.replace("replicas", "replicass"),
        DEPLOYMENT.replace("image: web:1", "imag: web:1"),
        DEPLOYMENT.replace("replicas: 2", "replicas: -2"),
        DEPLOYMENT.replace("name: web", "name: Web_"),
        DEPLOYMENT.replace("labels: {app: web}", "labels: {app: db}"),
        DEPLOYMENT.replace("apps/v1", "apps/v9"),
        POD.replace("containers: [{name: main, image: web}]", "containers: []"),
        POD.replace("name: main,", "name: Main_,"),
        POD.replace("spec:", "spec:\n  priorityClassName: none"),
        WIDGETS.replace("name: widgets.example.io", "name: wrong.example.io"),
        WIDGET.replace("size: 3", "mode: odd"),
        WIDGET.replace("size: 3", "size: 3, x: 1"),
        WIDGET.replace("size: 3", "size: null"),
    ],
    ids=[
        "field", "deep field", "range", "name", "selector", "version", "no containers", "container name",
        "priority class", "definition", "custom enum", "custom field", "custom null",
    ],
)  # fmt: skip
def test_mistakes(both, wrong):
    ours, real = both
    assert seen(ours, "create", "-f", "-", stdin=wrong) == seen(real, "create", "-f", "-", stdin=wrong)


@pytest.mark.parametrize(
    "command",
    [
        "get pod none",
        "get gadgets",
        "get pods --field-selector spec.color=x",
        "delete pod none",
        "get pods -l app=none",
        "scale deployment none --replicas=1",
        "label pod pending a=b=c",
        "explain pod.spec.none",
        "create namespace default",
        "get nodes -o name",
        "auth can-i get pods",
    ],
)
def test_answers(both, command):
    ours, real = both
    assert seen(ours, *command.split()) == seen(real, *command.split())
