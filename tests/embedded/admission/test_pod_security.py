"""The levels of pod security that a namespace enforces. The messages are those of kube-apiserver 1.36."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.errors import Forbidden
from moorage.api.resources import NAMESPACES, PODS
from moorage.store.store import Store
from tests.embedded.admission.kit import case, container, pod, strict_store

SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
SAFE_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
UNSAFE = (
    'allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false), '
    'unrestricted capabilities (container "main" must set securityContext.capabilities.drop=["ALL"]), '
)
UNSAFE_POD = (
    'runAsNonRoot != true (pod or container "main" must set securityContext.runAsNonRoot=true), '
    'seccompProfile (pod or container "main" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
    '"Localhost")'
)


def enforcing(level: str) -> Store:
    store = strict_store()
    labels = {"pod-security.kubernetes.io/enforce": level}
    store.create(NAMESPACES, {"metadata": {"name": "default", "labels": labels}})
    return store


def ports(*numbers: int) -> list[dict[str, Any]]:
    return [{"containerPort": number, "hostPort": number} for number in numbers]


@pytest.mark.parametrize(
    ("level", "spec", "expected"),
    [
        case(
            "host",
            "baseline",
            {"hostNetwork": True, "hostPID": True, "volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
            'host namespaces (hostNetwork=true, hostPID=true), hostPath volumes (volume "v")',
        ),
        case(
            "privileged",
            "baseline",
            {"containers": [container(securityContext={"privileged": True})]},
            'privileged (container "main" must not set securityContext.privileged=true)',
        ),
        case(
            "capabilities and ports",
            "baseline",
            {
                "containers": [
                    container(ports=ports(80, 9)),
                    container("b", ports=ports(81), securityContext={"capabilities": {"add": ["NET_ADMIN", "KILL"]}}),
                ]
            },
            'non-default capabilities (container "b" must not include "NET_ADMIN" in '
            'securityContext.capabilities.add), hostPort (containers "main", "b" use hostPorts 80, 81, 9)',
        ),
        case(
            "sysctls",
            "baseline",
            {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
            "forbidden sysctls (kernel.msgmax)",
        ),
        case("a plain pod", "restricted", {}, UNSAFE + UNSAFE_POD),
        case(
            "volumes",
            "restricted",
            {"securityContext": SAFE_POD, "volumes": [{"name": "n", "nfs": {"server": "s", "path": "/"}}]},
            f'{UNSAFE}restricted volume types (volume "n" uses restricted volume type "nfs")',
        ),
    ],
)
def test_a_pod_that_violates_the_level_is_refused(level, spec, expected):
    with pytest.raises(Forbidden) as caught:
        enforcing(level).create(PODS, pod(**spec))
    assert caught.value.status.message == f'pods "a" is forbidden: violates PodSecurity "{level}:latest": {expected}'


@pytest.mark.parametrize(
    ("level", "spec"),
    [
        case("baseline", "baseline", {}),
        case(
            "restricted", "restricted", {"containers": [container(securityContext=SAFE)], "securityContext": SAFE_POD}
        ),
        case("privileged", "privileged", {"hostNetwork": True}),
    ],
)
def test_other_pods_are_created(level, spec):
    enforcing(level).create(PODS, pod(**spec))


def test_a_snapshot_is_loaded_all_the_same():
    enforcing("baseline").load(PODS, pod(hostNetwork=True))
