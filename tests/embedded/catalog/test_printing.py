"""Tables: what users see of each kind."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.times import format_time
from moorage.embedded.builtin import BUILT_IN
from moorage.embedded.catalog import tables
from moorage.embedded.catalog.printing import json_path
from moorage.embedded.catalog.printing.columns import human_duration
from tests.embedded.catalog.kit import NOW, served


def at(seconds_ago: float) -> str:
    return format_time(NOW - seconds_ago)


def made(name: str = "x", ago: float = 60, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "creationTimestamp": at(ago)}, **fields}


def rows(plural: str, raw: dict[str, Any], group: str = "", version: str = "v1") -> dict[str, Any]:
    """The one row of an object, by column."""
    table = tables.table(served(plural, group, version), [raw], NOW)
    columns = [column["name"] for column in table["columnDefinitions"]]
    assert len(columns) == len(table["rows"][0]["cells"])
    return dict(zip(columns, table["rows"][0]["cells"], strict=True))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
    ],
)
def test_ages_read_as_kubectl_writes_them(seconds, text):
    assert human_duration(seconds) == text


def running(**more: Any) -> dict[str, Any]:
    return {"name": "c", "ready": True, "state": {"running": {}}, "restartCount": 0, **more}


def ended(code: int, reason: str = "", **more: Any) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": reason}}
    return {"name": "c", "ready": False, "state": state, "restartCount": 0, **more}


READY = {"type": "Ready", "status": "True"}
ONE = {"containers": [{"name": "c"}]}


@pytest.mark.parametrize(
    ("spec", "status", "meta", "expected"),
    [
        pytest.param(ONE, {"phase": "Pending"}, {}, ("0/1", "Pending", "0"), id="pending"),
        pytest.param(
            ONE,
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            },
            {},
            ("0/1", "SchedulingGated", "0"),
            id="gated",
        ),
        pytest.param(
            ONE, {"phase": "Running", "containerStatuses": [running()]}, {}, ("1/1", "Running", "0"), id="running"
        ),
        pytest.param(
            ONE,
            {"phase": "Running", "containerStatuses": [running()]},
            {"deletionTimestamp": at(1)},
            ("1/1", "Terminating", "0"),
            id="terminating",
        ),
        pytest.param(
            ONE,
            {"phase": "Succeeded", "containerStatuses": [ended(0, "Completed")]},
            {"deletionTimestamp": at(1)},
            ("0/1", "Completed", "0"),
            id="a finished pod does not terminate",
        ),
        pytest.param(
            ONE, {"phase": "Failed", "containerStatuses": [ended(1, "Error")]}, {}, ("0/1", "Error", "0"), id="failed"
        ),
        pytest.param(
            ONE, {"phase": "Failed", "reason": "Evicted"}, {}, ("0/1", "Evicted", "0"), id="reason of the pod"
        ),
        pytest.param(
            ONE, {"phase": "Running", "containerStatuses": [ended(7)]}, {}, ("0/1", "ExitCode:7", "0"), id="exit code"
        ),
        pytest.param(
            ONE,
            {
                "phase": "Running",
                "containerStatuses": [
                    {
                        **running(restartCount=3),
                        "ready": False,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"finishedAt": at(90)}},
                    }
                ],
            },
            {},
            ("0/1", "CrashLoopBackOff", "3 (90s ago)"),
            id="restarts with their last time",
        ),
        pytest.param(
            {"containers": [{"name": "c"}, {"name": "d"}]},
            {
                "phase": "Running",
                "conditions": [READY],
                "containerStatuses": [ended(0, "Completed"), running(name="d")],
            },
            {},
            ("1/2", "Running", "0"),
            id="one completed, the other runs",
        ),
        pytest.param(
            {"containers": [{"name": "c"}, {"name": "d"}]},
            {"phase": "Running", "containerStatuses": [ended(0, "Completed"), running(name="d")]},
            {},
            ("1/2", "NotReady", "0"),
            id="one completed, the other runs and the pod is not ready",
        ),
        pytest.param(
            {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}, {"name": "j"}]},
            {
                "phase": "Pending",
                "initContainerStatuses": [
                    ended(0, "Completed", name="i"),
                    {"name": "j", "state": {"waiting": {"reason": "PodInitializing"}}},
                ],
            },
            {},
            ("0/1", "Init:1/2", "0"),
            id="init containers",
        ),
        pytest.param(
            {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]},
            {"phase": "Pending", "initContainerStatuses": [ended(2, "Error", name="i", restartCount=4)]},
            {},
            ("0/1", "Init:Error", "4"),
            id="failed init container",
        ),
        pytest.param(
            {"containers": [{"name": "c"}], "initContainers": [{"name": "i", "restartPolicy": "Always"}]},
            {
                "phase": "Running",
                "initContainerStatuses": [running(name="i", started=True)],
                "containerStatuses": [running()],
            },
            {},
            ("2/2", "Running", "0"),
            id="sidecars count",
        ),
        pytest.param(
            ONE,
            {"phase": "Running", "reason": "NodeLost"},
            {"deletionTimestamp": at(1)},
            ("0/1", "Unknown", "0"),
            id="lost with its node",
        ),
        pytest.param(None, None, {}, ("0/0", "", "0"), id="nothing known"),
        pytest.param("text", ["list"], {}, ("0/0", "", "0"), id="garbage"),
    ],
)
def test_pods(spec, status, meta, expected):
    raw = {"metadata": {"name": "p", "creationTimestamp": at(60), **meta}, "spec": spec, "status": status}
    shown = rows("pods", raw)
    assert (shown["Ready"], shown["Status"], shown["Restarts"]) == expected
    assert shown["Name"] == "p"
    assert shown["Age"] == "60s"


def test_wide_columns_of_pods():
    raw = made(
        spec={"nodeName": "n1", "containers": [], "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
        status={
            "podIPs": [{"ip": "10.0.0.1"}],
            "nominatedNodeName": "n2",
            "conditions": [{"type": "a", "status": "True"}],
        },
    )
    shown = rows("pods", raw)
    wide = {name: shown[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")}
    assert wide == {"IP": "10.0.0.1", "Node": "n1", "Nominated Node": "n2", "Readiness Gates": "1/2"}
    empty = rows("pods", made(spec={}, status={}))
    assert {empty[name] for name in wide} == {"<none>"}


READY_NODE = {"conditions": [READY], "nodeInfo": {"kubeletVersion": "v1"}}


@pytest.mark.parametrize(
    ("labels", "spec", "status", "expected"),
    [
        pytest.param({}, {}, READY_NODE, ("Ready", "<none>", "v1"), id="ready"),
        pytest.param(
            {"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/": "", "kubernetes.io/role": "a"},
            {"unschedulable": True},
            READY_NODE,
            ("Ready,SchedulingDisabled", "a,control-plane", "v1"),
            id="cordoned, with roles",
        ),
        pytest.param(
            {}, {}, {"conditions": [{"type": "Ready", "status": "Unknown"}]}, ("NotReady", "<none>", ""), id="lost"
        ),
        pytest.param({}, {}, {}, ("Unknown", "<none>", ""), id="never reported"),
    ],
)
def test_nodes(labels, spec, status, expected):
    raw = {"metadata": {"name": "n", "labels": labels}, "spec": spec, "status": status}
    shown = rows("nodes", raw)
    assert (shown["Status"], shown["Roles"], shown["Version"]) == expected
    assert shown["Age"] == "<unknown>"


TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "b:1"}, {"name": "c", "image": "d"}]}}
SELECTOR = {
    "matchLabels": {"app": "x"},
    "matchExpressions": [
        {"key": "t", "operator": "In", "values": ["2", "1"]},
        {"key": "n", "operator": "DoesNotExist"},
        {"key": "e", "operator": "Exists"},
    ],
}
SELECTED = "app=x,t in (1,2),!n,e"


@pytest.mark.parametrize(
    ("kind", "fields", "cells"),
    [
        (
            ("deployments", "apps"),
            {
                "spec": {"replicas": 3, "template": TEMPLATE, "selector": SELECTOR},
                "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
            },
            ["x", "2/3", 3, 1, "60s", "a,c", "b:1,d", SELECTED],
        ),
        (
            ("replicasets", "apps"),
            {"spec": {"replicas": 3, "template": TEMPLATE}, "status": {"replicas": 2, "readyReplicas": 1}},
            ["x", 3, 2, 1, "60s", "a,c", "b:1,d", "<none>"],
        ),
        (
            ("replicationcontrollers",),
            {"spec": {"replicas": 1, "selector": {"b": "2", "a": "1"}}},
            ["x", 1, 0, 0, "60s", "", "", "a=1,b=2"],
        ),
        (
            ("statefulsets", "apps"),
            {"spec": {"replicas": 3, "template": TEMPLATE}, "status": {"readyReplicas": 1}},
            ["x", "1/3", "60s", "a,c", "b:1,d"],
        ),
        (
            ("daemonsets", "apps"),
            {
                "spec": {"template": {"spec": {"nodeSelector": {"z": "1"}}}, "selector": SELECTOR},
                "status": {"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3},
            },
            ["x", 5, 4, 3, 0, 0, "z=1", "60s", "", "", SELECTED],
        ),
        (
            ("jobs", "batch"),
            {
                "spec": {"completions": 2},
                "status": {
                    "succeeded": 2,
                    "startTime": at(50),
                    "completionTime": at(20),
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            },
            ["x", "Complete", "2/2", "30s", "60s", "", "", "<none>"],
        ),
        (
            ("jobs", "batch"),
            {"spec": {"parallelism": 3}, "status": {"startTime": at(50)}},
            ["x", "Running", "0/1 of 3", "50s", "60s", "", "", "<none>"],
        ),
        (
            ("cronjobs", "batch"),
            {
                "spec": {"schedule": "* * * * *", "suspend": False},
                "status": {"active": [{}], "lastScheduleTime": at(30)},
            },
            ["x", "* * * * *", "<none>", "False", 1, "30s", "60s", "", "", "<none>"],
        ),
        (
            ("services",),
            {
                "spec": {
                    "clusterIPs": ["10.0.0.1"],
                    "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}],
                    "selector": {"a": "b"},
                }
            },
            ["x", "ClusterIP", "10.0.0.1", "<none>", "80/TCP,53:30053/UDP", "60s", "a=b"],
        ),
        (
            ("services",),
            {"spec": {"type": "LoadBalancer"}},
            ["x", "LoadBalancer", "<none>", "<pending>", "<none>", "60s", "<none>"],
        ),
        (
            ("persistentvolumes",),
            {
                "spec": {
                    "capacity": {"storage": "5Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": "d", "name": "c"},
                    "storageClassName": "fast",
                    "volumeMode": "Block",
                },
                "status": {"phase": "Bound"},
            },
            ["x", "5Gi", "RWO,RWX", "Retain", "Bound", "d/c", "fast", "<unset>", "", "60s", "Block"],
        ),
        (
            ("persistentvolumeclaims",),
            {"spec": {"storageClassName": "fast"}, "status": {"phase": "Pending", "capacity": {"storage": "1Gi"}}},
            ["x", "Pending", "", "", "", "fast", "<unset>", "60s", "<unset>"],
        ),
        (
            ("storageclasses", "storage.k8s.io"),
            {"provisioner": "p", "allowVolumeExpansion": True},
            ["x", "p", "Delete", "Immediate", True, "60s"],
        ),
        (
            ("poddisruptionbudgets", "policy"),
            {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}},
            ["x", "50%", "N/A", 2, "60s"],
        ),
        (
            ("priorityclasses", "scheduling.k8s.io"),
            {"value": 1000, "globalDefault": True, "preemptionPolicy": "Never"},
            ["x", 1000, True, "60s", "Never"],
        ),
        (("leases", "coordination.k8s.io"), {"spec": {"holderIdentity": "me"}}, ["x", "me", "60s"]),
        (("namespaces",), {"status": {"phase": "Active"}}, ["x", "Active", "60s"]),
        (("configmaps",), {"data": {"a": "1"}, "binaryData": {"b": ""}}, ["x", 2, "60s"]),
        (("secrets",), {"type": "Opaque", "data": {"a": ""}}, ["x", "Opaque", 1, "60s"]),
        (("serviceaccounts",), {}, ["x", "60s"]),
        (
            ("rolebindings", "rbac.authorization.k8s.io"),
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [
                    {"kind": "User", "name": "u"},
                    {"kind": "Group", "name": "g"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                ],
            },
            ["x", "Role/r", "60s", "u", "g", "n/s"],
        ),
        (("roles", "rbac.authorization.k8s.io"), {}, ["x", at(60)]),
        (("customresourcedefinitions", "apiextensions.k8s.io"), {}, ["x", at(60)]),
        (
            ("endpoints",),
            {"subsets": [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(5)], "ports": [{"port": 80}]}]},
            ["x", "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more...", "60s"],
        ),
        (
            ("endpointslices", "discovery.k8s.io"),
            {"addressType": "IPv4", "ports": [{"name": "http"}], "endpoints": [{"addresses": ["10.0.0.1"]}]},
            ["x", "IPv4", "http", "10.0.0.1", "60s"],
        ),
        (("csinodes", "storage.k8s.io"), {"spec": {"drivers": [{}, {}]}}, ["x", 2, "60s"]),
        (
            ("csidrivers", "storage.k8s.io"),
            {"spec": {"volumeLifecycleModes": ["Persistent"]}},
            ["x", True, False, False, "<unset>", False, "Persistent", "60s"],
        ),
        (
            ("volumeattachments", "storage.k8s.io"),
            {
                "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
                "status": {"attached": True},
            },
            ["x", "a", "v", "n", True, "60s"],
        ),
        (
            ("resourceclaims", "resource.k8s.io"),
            {"status": {"allocation": {}, "reservedFor": [{}]}},
            ["x", "allocated,reserved", "60s"],
        ),
        (("resourceclaims", "resource.k8s.io"), {}, ["x", "pending", "60s"]),
        (
            ("resourcequotas",),
            {
                "status": {
                    "hard": {"pods": "10", "limits.cpu": "4", "requests.cpu": "2"},
                    "used": {"pods": "1", "requests.cpu": "500m"},
                }
            },
            ["x", "pods: 1/10, requests.cpu: 500m/2", "limits.cpu: 0/4", "60s"],
        ),
        (
            ("ingresses", "networking.k8s.io"),
            {"spec": {"ingressClassName": "i", "rules": [{"host": "h"}], "tls": [{}]}},
            ["x", "i", "h", "", "80, 443", "60s"],
        ),
        (
            ("networkpolicies", "networking.k8s.io"),
            {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}},
            ["x", "a=b", "60s"],
        ),
        (("controllerrevisions", "apps"), {"revision": 3, "data": {}}, ["x", "<none>", 3, "60s"]),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_cells(kind, fields, cells):
    assert list(rows(kind[0], made(**fields), *kind[1:]).values()) == cells


EVENT = {
    "metadata": {"name": "e", "creationTimestamp": at(100)},
    "eventTime": at(100),
    "regarding": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{a}"},
    "reason": "FailedScheduling",
    "note": " no room \n",
    "type": "Warning",
    "reportingController": "default-scheduler",
}


def test_events_of_both_groups_show_the_same_row():
    new = rows("events", EVENT, "events.k8s.io")
    core = served("events")
    assert core.view is not None
    old = rows("events", core.view.outward(EVENT))
    assert new == old
    assert list(new.values()) == [
        "100s",
        "Warning",
        "FailedScheduling",
        "pod/p",
        "spec.containers{a}",
        "default-scheduler",
        "no room",
        "100s",
        1,
        "e",
    ]


def test_a_series_tells_its_last_time_and_count():
    series = {"count": 7, "lastObservedTime": at(5)}
    shown = rows("events", {**EVENT, "series": series}, "events.k8s.io")
    assert (shown["Last Seen"], shown["First Seen"], shown["Count"]) == ("5s", "100s", 7)


@pytest.mark.parametrize("include", ["Metadata", "Object", "None"])
def test_rows_carry_as_much_of_the_object_as_is_asked_for(include):
    raw = made(spec={"a": 1})
    table = tables.table(served("pods"), [raw], NOW, include, {"resourceVersion": "7"})
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": raw["metadata"]}
    assert table["rows"][0]["object"] == {"Metadata": partial, "Object": raw, "None": None}[include]
    assert table["metadata"] == {"resourceVersion": "7"}
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")


def test_later_tables_of_a_watch_have_no_columns():
    assert tables.table(served("pods"), [made()], NOW, headers=False)["columnDefinitions"] is None


def test_finished_pods_are_marked():
    table = tables.table(served("pods"), [made(status={"phase": "Failed"}), made()], NOW)
    assert [row.get("conditions", [{}])[0].get("reason") for row in table["rows"]] == ["Failed", None]


@pytest.mark.parametrize("kind", [kind.served for kind in BUILT_IN], ids=lambda kind: str(kind.resource))
def test_no_object_is_too_odd_to_be_shown(kind):
    names = ("spec", "status", "data", "subsets", "series", "roleRef", "involvedObject", "regarding")
    odds: list[Any] = [None, [], "text", 7, {"a": None}, [None], [[{}]]]
    for odd in odds:
        meta = {"name": "x", "labels": odd, "annotations": odd, "ownerReferences": odd}
        table = tables.table(kind, [{"metadata": meta, **dict.fromkeys(names, odd)}], NOW)
        assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])


PATHS = {
    "spec": {"replicas": 3, "hosts": ["a", "b"], "a.b/c": "dotted"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".spec.replicas", 3),
        ("{.spec.replicas}", 3),
        (".spec.hosts[1]", "b"),
        (".spec.hosts[-1]", "b"),
        (".spec.hosts[9]", None),
        (".spec.hosts[*]", "a"),
        (".spec['a.b/c']", "dotted"),
        (r".spec.a\.b/c", "dotted"),
        ('.status.conditions[?(@.type=="Ready")].status', "True"),
        ("$.status.conditions[?(@.type!='Ready')].status", "False"),
        (".spec.nothing.below", None),
        (".spec.replicas.below", None),
    ],
)
def test_json_paths(path, value):
    assert json_path.first(json_path.compile_path(path), PATHS) == value


@pytest.mark.parametrize("path", [".spec[", ".spec[?(@.a)]", "spec", "..", ".a[b]"])
def test_paths_outside_the_notation_are_refused(path):
    with pytest.raises(json_path.PathError, match="is not understood at"):
        json_path.compile_path(path)


def test_custom_columns_show_values_of_their_type_only():
    columns = [
        ("N", "integer", ".n"),
        ("F", "number", ".n"),
        ("S", "string", ".s"),
        ("M", "string", ".m"),
        ("B", "boolean", ".b"),
        ("D", "date", ".d"),
        ("Bad", "integer", ".s"),
        ("None", "string", ".missing"),
    ]
    declared = tuple({"name": name, "type": kind, "jsonPath": path} for name, kind, path in columns)
    raw = made(n=3, s="text", m={"a": 1}, b=True, d=at(30))
    printer = tables.custom_printer(declared)
    assert printer.cells(raw, NOW) == ["x", 3, 3.0, "text", '{"a":1}', True, "30s", None, None]
    assert [column.name for column in tables.custom_printer(()).columns] == ["Name", "Age"]
    assert tables.custom_printer(()).cells(raw, NOW) == ["x", "60s"]
