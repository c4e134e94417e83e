"""What a newcomer types first; all other commands are in the slower tests beside this one."""

from __future__ import annotations

from tests.kubectl.cluster import NODES
from tests.kubectl.manifests import DEPLOYMENT


def test_first_steps(kubectl):
    header, *rows = kubectl.run("get", "nodes").rows()
    assert header == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [row[:2] for row in rows] == [[name, "Ready"] for name in NODES]

    assert kubectl("create", "deployment", "hello", "--image=web", "--replicas=3") == (
        "deployment.apps/hello created\n"
    )
    kubectl("rollout", "status", "deployment/hello", "--timeout=20s")
    header, *rows = kubectl.run("get", "pods", "-o", "wide").rows()
    assert header[1:7] == ["READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert sorted(row[6] for row in rows) == list(NODES)
    assert f"Successfully assigned {kubectl.namespace}/hello-" in kubectl("describe", "pod", rows[0][0])

    assert kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web created\n"
    wrong = DEPLOYMENT.replace("replicas", "replicass").replace("name: web", "name: wrong", 1)
    assert 'unknown field "spec.replicass"' in kubectl.refused("apply", "-f", "-", stdin=wrong)
    assert kubectl("scale", "deployment/web", "--replicas=1") == "deployment.apps/web scaled\n"
    assert kubectl("delete", "deployment", "hello", "web").count("deleted") == 2
