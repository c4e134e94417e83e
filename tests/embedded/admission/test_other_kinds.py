"""Nodes, namespaces, services, storage, policies and records."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.errors import Forbidden
from moorage.api.resources import (
    CONFIG_MAPS,
    CSI_NODES,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    ROLE_BINDINGS,
    SECRETS,
    SERVICES,
    STORAGE_CLASSES,
)
from moorage.store.objects import Raw
from tests.embedded.admission.kit import case, named, problems, strict_store, update_problems
from tests.store.kit import Wall


def service(name: str = "web", **spec: Any) -> Raw:
    return named(name, spec={"ports": [{"port": 80}], **spec})


def claim(**spec: Any) -> Raw:
    amounts = {"requests": {"storage": "1Gi"}}
    return named("c", spec={"accessModes": ["ReadWriteOnce"], "resources": amounts, **spec})


def volume(**spec: Any) -> Raw:
    given = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    return named("v", "", spec={**given, **spec})


def storage_class(name: str = "fast", default: bool = False) -> Raw:
    raw = named(name, "", provisioner="example.com/disk")
    if default:
        raw["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    return raw


DIGEST_NEEDED = {"eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal"}


@pytest.mark.parametrize(
    ("resource", "raw", "expected"),
    [
        case(
            "a node with one taint twice",
            NODES,
            named("n", "", spec={"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}),
            [
                'metadata.taints[1]: Duplicate value: {"key":"a","effect":"NoSchedule"}: '
                "taints must be unique by key and effect pair"
            ],
        ),
        case(
            "a taint without effect",
            NODES,
            named("n", "", spec={"taints": [{"key": "a"}]}),
            ["metadata.taints[0].effect: Required value"],
        ),
        case(
            "half a pod on a node",
            NODES,
            named("n", "", status={"capacity": {"pods": "1.5", "cpu": "-4"}}),
            [
                'status.capacity.pods: Invalid value: "1500m": must be an integer',
                'status.capacity.cpu: Invalid value: "-4": must be greater than or equal to 0',
                'status.allocatable.pods: Invalid value: "1500m": must be an integer',
                'status.allocatable.cpu: Invalid value: "-4": must be greater than or equal to 0',
            ],
        ),
        case(
            "a bad range of addresses",
            NODES,
            named("n", "", spec={"podCIDR": "10.0.0.0"}),
            [
                'spec.podCIDRs[0]: Invalid value: "10.0.0.0": '
                "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            ],
        ),
        case("a service without ports", SERVICES, named("s", spec={}), ["spec.ports: Required value"]),
        case(
            "ports without names",
            SERVICES,
            service(ports=[{"port": 80}, {"port": 80}]),
            [
                "spec.ports[0].name: Required value",
                "spec.ports[1].name: Required value",
                'spec.ports[1]: Duplicate value: {"port":80,"protocol":"TCP"}',
            ],
        ),
        case(
            "a node port out of range",
            SERVICES,
            service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]),
            [
                "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. "
                "The range of valid ports is 30000-32767"
            ],
        ),
        case(
            "a claim for nothing",
            PERSISTENT_VOLUME_CLAIMS,
            named("c", spec={}),
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ],
        ),
        case(
            "a claim of size zero",
            PERSISTENT_VOLUME_CLAIMS,
            claim(resources={"requests": {"storage": "0"}}, accessModes=["Sometimes"]),
            [
                'spec.accessModes: Unsupported value: "Sometimes": supported values: "ReadOnlyMany", '
                '"ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
                'spec.resources[storage]: Invalid value: "0": must be greater than zero',
            ],
        ),
        case(
            "a volume of nothing",
            PERSISTENT_VOLUMES,
            named("v", "", spec={}),
            [
                "spec.accessModes: Required value",
                "spec.capacity: Required value",
                "spec: Required value: must specify a volume type",
            ],
        ),
        case(
            "a local volume anywhere",
            PERSISTENT_VOLUMES,
            named("v", "", spec={"capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"], "local": {}}),
            ["spec.nodeAffinity: Required value: Local volume requires node affinity"],
        ),
        case("a class of nobody", STORAGE_CLASSES, named("s", ""), ["provisioner: Required value"]),
        case(
            "drivers without nodes",
            CSI_NODES,
            named("n", "", spec={"drivers": [{"name": "d"}, {"name": "d", "nodeID": "n"}]}),
            ["spec.drivers[0].nodeID: Required value", 'spec.drivers[1].name: Duplicate value: "d"'],
        ),
        case(
            "a budget with two sides",
            POD_DISRUPTION_BUDGETS,
            named("b", spec={"minAvailable": 1, "maxUnavailable": "120%"}),
            [
                'spec: Invalid value: {"minAvailable":1,"maxUnavailable":"120%"}: '
                "minAvailable and maxUnavailable cannot be both set",
                'spec.maxUnavailable: Invalid value: "120%": must not be greater than 100%',
            ],
        ),
        case(
            "a priority of the system's",
            PRIORITY_CLASSES,
            named("mine", "", value=1_000_000_001),
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        ),
        case("a name of the system's", PRIORITY_CLASSES, named("system-mine", "", value=1), None),
        case("keys that are no names", CONFIG_MAPS, named("c", data={"a b": ""}, binaryData={"x": "no base64"}), None),
        case(
            "a map of a megabyte",
            CONFIG_MAPS,
            named("c", data={"a": "x" * 1048577}),
            [": Too long: may not be more than 1048576 bytes"],
        ),
        case(
            "a lease of no time",
            LEASES,
            named("l", spec={"leaseDurationSeconds": 0, "leaseTransitions": -1}),
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than zero",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        case(
            "an event that says nothing",
            EVENTS,
            named("e", **DIGEST_NEEDED),
            [f"{field}: Required value" for field in ("reportingController", "reportingInstance", "action", "reason")],
        ),
        case("an event in the old form", EVENTS, named("e", deprecatedCount=1, **DIGEST_NEEDED), []),
    ],
)
def test_refused(resource, raw, expected):
    found = problems(resource, raw)
    assert found if expected is None else found == expected


class TestNodes:
    def test_defaults(self):
        raw = named("n", "", spec={"podCIDR": "10.0.0.0/24"}, status={"capacity": {"cpu": "4"}})
        stored = strict_store().create(NODES, raw).raw
        assert stored["spec"]["podCIDRs"] == ["10.0.0.0/24"]
        assert stored["status"]["allocatable"] == {"cpu": "4"}

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            case("unschedulable", {"unschedulable": True}, []),
            case(
                "another provider's",
                {"providerID": "b"},
                ["spec.providerID: Invalid value: null: field cannot be modified once set"],
            ),
            case(
                "other addresses",
                {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]},
                ['spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'],
            ),
        ],
    )
    def test_updates(self, change, expected):
        store = strict_store()
        raw = store.create(NODES, named("n", "", spec={"providerID": "a", "podCIDR": "10.0.0.0/24"})).raw
        assert update_problems(store, NODES, {**raw, "spec": {**raw["spec"], **change}}) == expected

    def test_status(self):
        store = strict_store()
        raw = store.create(NODES, named("n", "")).raw
        address = {"type": "InternalIP", "address": "1.2.3.4"}
        status = {"capacity": {"cpu": "x"}, "addresses": [address, address]}
        first, _, second = update_problems(store, NODES, {**raw, "status": status}, "status")
        assert first.startswith('status.capacity.cpu: Invalid value: "x": quantities must match')
        assert second.startswith("status.addresses[1]: Duplicate value: ")


def test_namespaces():
    store = strict_store()
    raw = store.create(NAMESPACES, named("team", "")).raw
    assert raw["spec"] == {"finalizers": ["kubernetes"]}
    assert raw["status"] == {"phase": "Active"}
    assert raw["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    changed = store.replace(NAMESPACES, named("team", "", spec={"finalizers": []}))
    assert changed.raw["spec"] == raw["spec"]
    assert changed.raw["metadata"]["labels"] == raw["metadata"]["labels"]


class TestServices:
    def test_defaults(self):
        store = strict_store()
        first = store.create(SERVICES, service("a")).raw["spec"]
        assert first == {
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            "clusterIP": "10.96.0.1",
            "clusterIPs": ["10.96.0.1"],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
        }
        assert store.create(SERVICES, service("b")).raw["spec"]["clusterIP"] == "10.96.0.2"
        store.delete(SERVICES, "a", namespace="default")
        assert store.create(SERVICES, service("c")).raw["spec"]["clusterIP"] == "10.96.0.1"

    def test_headless_and_external_ones_get_no_address(self):
        store = strict_store()
        assert store.create(SERVICES, service("a", clusterIP="None")).raw["spec"]["clusterIP"] == "None"
        external = named("b", spec={"type": "ExternalName", "externalName": "example.com"})
        assert "clusterIP" not in store.create(SERVICES, external).raw["spec"]

    def test_node_ports_are_given_out_and_kept(self):
        store = strict_store()
        given = [store.create(SERVICES, service(n, type="NodePort")).raw["spec"]["ports"][0]["nodePort"] for n in "ab"]
        assert given == [30000, 30001]
        replaced = store.replace(SERVICES, service("b", type="NodePort")).raw["spec"]
        assert (replaced["ports"][0]["nodePort"], replaced["clusterIP"]) == (30001, "10.96.0.2")

    def test_the_address_stays(self):
        store = strict_store()
        raw = store.create(SERVICES, service()).raw
        spec = {**raw["spec"], "clusterIP": "10.96.9.9", "clusterIPs": ["10.96.9.9"]}
        assert update_problems(store, SERVICES, {**raw, "spec": spec}) == [
            'spec.clusterIPs[0]: Invalid value: ["10.96.9.9"]: may not change once set'
        ]


class TestStorage:
    def test_the_newest_default_class_is_taken(self):
        wall = Wall()
        store = strict_store(wall)
        store.create(STORAGE_CLASSES, storage_class("old", default=True))
        wall.time += 10
        store.create(STORAGE_CLASSES, storage_class("new", default=True))
        store.create(STORAGE_CLASSES, storage_class("plain"))
        spec = store.create(PERSISTENT_VOLUME_CLAIMS, claim()).raw["spec"]
        assert (spec["storageClassName"], spec["volumeMode"]) == ("new", "Filesystem")

    def test_an_empty_class_is_a_choice(self):
        store = strict_store()
        store.create(STORAGE_CLASSES, storage_class(default=True))
        assert store.create(PERSISTENT_VOLUME_CLAIMS, claim(storageClassName="")).raw["spec"]["storageClassName"] == ""

    def test_a_claim_is_bound_once_and_grows_when_bound(self):
        store = strict_store()
        raw = store.create(PERSISTENT_VOLUME_CLAIMS, claim()).raw
        larger = {"requests": {"storage": "2Gi"}}
        changed = {**raw, "spec": {**raw["spec"], "resources": larger}}
        assert update_problems(store, PERSISTENT_VOLUME_CLAIMS, changed) == [
            "spec: Forbidden: spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims"
        ]
        bound = {**raw, "spec": {**raw["spec"], "volumeName": "v"}}
        assert update_problems(store, PERSISTENT_VOLUME_CLAIMS, bound) == []
        status = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
        raw = store.patch(PERSISTENT_VOLUME_CLAIMS, "c", status, namespace="default", subresource="status").raw
        grown = {**raw, "spec": {**raw["spec"], "resources": larger}}
        assert update_problems(store, PERSISTENT_VOLUME_CLAIMS, grown) == []
        raw = store.get(PERSISTENT_VOLUME_CLAIMS, "c", "default").raw
        shrunk = {**raw, "spec": {**raw["spec"], "resources": {"requests": {"storage": "1Mi"}}}}
        assert update_problems(store, PERSISTENT_VOLUME_CLAIMS, shrunk) == [
            "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
        ]

    def test_a_volume_stays_where_it_is(self):
        store = strict_store()
        raw = store.create(PERSISTENT_VOLUMES, volume()).raw
        assert raw["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
        moved = {**raw, "spec": {**raw["spec"], "hostPath": {"path": "/y"}}}
        assert update_problems(store, PERSISTENT_VOLUMES, moved) == [
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"
        ]

    def test_of_a_class_nothing_changes(self):
        store = strict_store()
        raw = store.create(STORAGE_CLASSES, storage_class()).raw
        assert (raw["reclaimPolicy"], raw["volumeBindingMode"]) == ("Delete", "Immediate")
        changed = {**raw, "provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}
        assert update_problems(store, STORAGE_CLASSES, changed) == [
            "provisioner: Forbidden: updates to provisioner are forbidden.",
            'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable',
        ]


class TestPriorityClasses:
    def test_there_is_one_default(self):
        store = strict_store()
        store.create(PRIORITY_CLASSES, named("a", "", value=1, globalDefault=True))
        with pytest.raises(Forbidden, match=r"PriorityClass a is already marked as default\. Only one default"):
            store.create(PRIORITY_CLASSES, named("b", "", value=1, globalDefault=True))
        assert problems(PRIORITY_CLASSES, named("system-node-critical", "", value=2_000_001_000), store) == []

    def test_the_value_stays(self):
        store = strict_store()
        raw = store.create(PRIORITY_CLASSES, named("a", "", value=1)).raw
        assert raw["preemptionPolicy"] == "PreemptLowerPriority"
        assert update_problems(store, PRIORITY_CLASSES, {**raw, "value": 2}) == [
            "value: Forbidden: may not be changed in an update."
        ]


class TestRecords:
    def test_texts_of_a_secret_are_encoded(self):
        stored = strict_store().create(SECRETS, named("s", stringData={"a": "hello"}, data={"b": "eA=="})).raw
        assert (stored["data"], stored["type"]) == ({"b": "eA==", "a": "aGVsbG8="}, "Opaque")
        assert "stringData" not in stored

    def test_the_type_of_a_secret_stays(self):
        store = strict_store()
        raw = store.create(SECRETS, named("s")).raw
        assert update_problems(store, SECRETS, {**raw, "type": "x"}) == ['type: Invalid value: "x": field is immutable']

    @pytest.mark.parametrize("resource", [CONFIG_MAPS, SECRETS], ids=str)
    def test_what_is_immutable_stays(self, resource):
        store = strict_store()
        raw = store.create(resource, named("s", immutable=True)).raw
        changed = {**raw, "data": {"a": "eA=="}, "immutable": False}
        assert update_problems(store, resource, changed) == [
            "immutable: Forbidden: field is immutable when `immutable` is set",
            "data: Forbidden: field is immutable when `immutable` is set",
        ]

    def test_a_binding_of_a_role_stays_with_it(self):
        store = strict_store()
        raw = store.create(ROLE_BINDINGS, named("b", roleRef={"kind": "Role", "name": "a", "apiGroup": "x"})).raw
        (found,) = update_problems(store, ROLE_BINDINGS, {**raw, "roleRef": {"kind": "Role", "name": "b"}})
        assert found.endswith("cannot change roleRef")
