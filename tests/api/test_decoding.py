"""Decoding: records from JSON, what a bad object says, and what comes out again."""

# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False

import msgspec
import pytest

from moorage.api import resources
from moorage.api.decoding import convert, decode, encode, to_builtins, validate
from moorage.api.errors import ObjectError
from moorage.api.pod import Pod, controller_of
from moorage.api.resources import DEPLOYMENTS, NODES, PERSISTENT_VOLUMES, PODS, Unstructured

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "u1",
        "resourceVersion": "7",
        "labels": {"app": "web"},
        "ownerReferences": [{"kind": "Job", "name": "j"}, {"kind": "ReplicaSet", "name": "r", "controller": True}],
        "managedFields": [{"manager": "kubectl"}],
    },
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "env": [{"name": "A", "value": "b"}],
                "resources": {"requests": {"cpu": 1, "memory": "1Gi", "x.io/y": 1.5}},
                "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}],
            }
        ],
        "volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "vol-1"}}, {"name": "e", "emptyDir": {}}],
        "schedulingGroup": {"podGroupName": "gang"},
        "newFieldOfTomorrow": {"deep": [1, 2]},
    },
    "status": {"phase": "Pending", "hostIP": "10.0.0.9", "podIPs": [{"ip": "10.1.0.1"}]},
}


def test_a_pod_is_decoded_with_its_kubernetes_spellings():
    pod = decode(PODS, msgspec.json.encode(POD))
    assert isinstance(pod, Pod)
    assert pod == convert(PODS, POD)
    assert (pod.name, pod.namespace, pod.key, pod.uid, pod.resource_version) == ("web", "shop", "shop/web", "u1", "7")
    container = pod.spec.containers[0]
    assert container.resources.requests == {"cpu": 1, "memory": "1Gi", "x.io/y": 1.5}
    assert container.ports[0].host_ip == "10.0.0.1"
    ebs = pod.spec.volumes[0].aws_elastic_block_store
    assert ebs is not None
    assert ebs.volume_id == "vol-1"
    assert pod.status.host_ip == "10.0.0.9"
    assert pod.status.pod_ips[0].ip == "10.1.0.1"
    owner = controller_of(pod)
    assert owner is not None
    assert owner.name == "r"


def test_encoding_gives_back_every_known_field():
    expected = msgspec.json.decode(msgspec.json.encode(POD))
    del expected["metadata"]["managedFields"], expected["spec"]["newFieldOfTomorrow"]
    del expected["spec"]["containers"][0]["env"], expected["spec"]["volumes"][1]["emptyDir"]
    pod = convert(PODS, POD)
    assert expected == to_builtins(pod)
    assert expected == msgspec.json.decode(encode(pod))


@pytest.mark.parametrize("resource", resources.ALL, ids=lambda r: r.kind)
def test_every_resource_decodes_an_empty_object_and_survives_the_round_trip(resource):
    obj = decode(resource, b'{"metadata":{"name":"a"}}')
    assert obj.key == "a"
    assert obj == decode(resource, encode(obj))
    validate(obj)


def test_nulls_read_as_absent():
    pod = decode(PODS, b'{"metadata":{"name":"a","labels":null},"spec":{"containers":[{"ports":null}],"volumes":null}}')
    assert pod == decode(PODS, b'{"metadata":{"name":"a"},"spec":{"containers":[{}]}}')
    assert decode(DEPLOYMENTS, b'{"metadata":null}').name == ""
    assert decode(DEPLOYMENTS, b'{"metadata":{"name":"d","labels":null}}').labels == {}


@pytest.mark.parametrize(
    ("resource", "data", "obj", "field"),
    [
        pytest.param(
            PODS,
            b'{"metadata":{"name":"a","namespace":"n"},"spec":{"containers":[{"resources":{"requests":{"cpu":true}}}]}}',
            "Pod n/a",
            "spec.containers[0].resources.requests",
            id="a map value",
        ),
        pytest.param(PODS, b'{"metadata":{"name":"a","labels":{"x":1}}}', "Pod a", "metadata.labels", id="a label"),
        pytest.param(
            DEPLOYMENTS,
            b'{"metadata":{"name":"a","labels":{"x":1}}}',
            "Deployment a",
            "metadata.labels",
            id="a label of an untyped object",
        ),
        pytest.param(
            PODS,
            b'{"metadata":{"name":"a"},"spec":{"priority":2147483648}}',
            "Pod a",
            "spec.priority",
            id="beyond 32 bits",
        ),
        pytest.param(
            NODES,
            b'{"metadata":{"name":"n"},"status":{"images":[{"sizeBytes":99999999999999999999}]}}',
            "Node n",
            "status.images[0].sizeBytes",
            id="beyond 64 bits",
        ),
        pytest.param(
            PODS, b'{"metadata":{"name":7}}', "Pod of unknown name", "metadata.name", id="a name that is none"
        ),
        pytest.param(PODS, b'{"metadata":{"name":"a"},"spec":[]}', "Pod a", "spec", id="a list for an object"),
        pytest.param(
            PODS,
            b'{"metadata":{"name":"a"},"spec":{"x":1e400,"priority":"high"}}',
            "Pod a",
            "",
            id="a number beyond all",
        ),
        pytest.param(PODS, b"[]", "Pod of unknown name", "", id="no object"),
        pytest.param(PODS, b'{"metadata":', "Pod of unknown name", "", id="cut"),
        pytest.param(PODS, b'{"metadata":{"name":"\xff"}}', "Pod of unknown name", "", id="not UTF-8"),
        pytest.param(PODS, b"[" * 100_000, "Pod of unknown name", "", id="nested without end"),
        pytest.param(PODS, b"<html>", "Pod of unknown name", "", id="a web page"),
    ],
)
def test_a_bad_object_is_named_with_its_field(resource, data, obj, field):
    with pytest.raises(ObjectError) as caught:
        decode(resource, data)
    assert (obj, field) == (caught.value.object, caught.value.field)


def spread(selector):
    return {"topologySpreadConstraints": [{"labelSelector": selector}]}


def affinity(kind, term):
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


BAD = {"matchExpressions": [{"key": "a", "operator": "Near"}]}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param(
            {"containers": [{}, {"resources": {"limits": {"cpu": "1x"}}}]},
            "spec.containers[1].resources.limits[cpu]",
            id="limit",
        ),
        pytest.param(
            {"initContainers": [{"resources": {"requests": {"cpu": ""}}}]},
            "spec.initContainers[0].resources.requests[cpu]",
            id="init container",
        ),
        pytest.param({"overhead": {"cpu": " 1"}}, "spec.overhead[cpu]", id="overhead"),
        pytest.param({"resources": {"requests": {"cpu": "NaN"}}}, "spec.resources.requests[cpu]", id="pod level"),
        pytest.param(
            spread(BAD), "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].operator", id="spread"
        ),
        pytest.param(
            affinity("podAntiAffinity", {"namespaceSelector": BAD}),
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector.matchExpressions[0].operator",
            id="namespaces",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 1, "podAffinityTerm": {"labelSelector": BAD}}
                        ]
                    }
                }
            },
            "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector.matchExpressions[0].operator",
            id="wish about pods",
        ),
    ],
)
def test_validate_names_the_bad_value(spec, field):
    pod = convert(PODS, {"metadata": {"name": "a", "namespace": "n"}, "spec": spec})
    with pytest.raises(ObjectError) as caught:
        validate(pod)
    assert ("Pod n/a", field) == (caught.value.object, caught.value.field)


def test_a_node_preference_that_cannot_be_parsed_fails_in_pre_score_only():
    """The API server accepts some of these, and kube-scheduler schedules such a pod if only one node is feasible."""
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": BAD}]}
    validate(convert(PODS, {"metadata": {"name": "a"}, "spec": {"affinity": {"nodeAffinity": preferred}}}))


def test_a_bound_pod_keeps_counting_whatever_its_selectors():
    validate(convert(PODS, {"spec": {"nodeName": "n", **spread(BAD)}}))


def test_validate_reads_the_status_of_pods_nodes_and_volumes():
    for resource, raw in (
        (PODS, {"status": {"containerStatuses": [{"allocatedResources": {"cpu": "x"}}]}}),
        (PODS, {"status": {"initContainerStatuses": [{"resources": {"requests": {"cpu": "x"}}}]}}),
        (NODES, {"status": {"allocatable": {"cpu": "x"}}}),
        (PERSISTENT_VOLUMES, {"spec": {"capacity": {"storage": "x"}}}),
        (resources.PERSISTENT_VOLUME_CLAIMS, {"spec": {"resources": {"requests": {"storage": "x"}}}}),
        (resources.CSI_STORAGE_CAPACITIES, {"capacity": "x"}),
    ):
        with pytest.raises(ObjectError):
            validate(convert(resource, raw))


def test_an_unstructured_object_reads_by_path():
    obj = decode(
        DEPLOYMENTS,
        b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"n"},"spec":{"replicas":3}}',
    )
    assert isinstance(obj, Unstructured)
    assert (obj.key, obj.kind, obj.api_version) == ("n/d", "Deployment", "apps/v1")
    assert obj.get("spec", "replicas") == 3
    assert obj.get("spec", "replicas", "deeper") is None
    assert obj.get("spec", "absent", default=1) == 1
    assert to_builtins(obj) is obj.raw
