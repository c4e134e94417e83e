"""Objects in Protocol Buffers: what kubectl 1.36 really sends, a round trip through all forms, and damage."""

from __future__ import annotations

import base64
import contextlib
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.times import parse_time
from moorage.embedded.protobuf import ProtobufError, decode
from moorage.store.schemas import Definition, Field, ListOf, MapOf, Plain, Ref, Type, library

SENT_BY_KUBECTL = [
    pytest.param(
        "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50ErgBCh8KA3dlYhIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEoYBCA"
        "MSDAoKCgNhcHASA3dlYhpsChwKABIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEkwSLgoFbmdpbngSBW5naW54KgAy"
        "CgoAEAAYUCIAKgBCAGoAcgCAAQCIAQCQAQCiAQAaADIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAIgIKACgAOAAaDA"
        "gAEAAYACAAKAA4ABoAIgA=",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {
                        "containers": [
                            {"name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {}}
                        ]
                    },
                },
                "strategy": {},
            },
            "status": {},
        },
        id="Deployment",
    ),
    pytest.param(
        "azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSOgoRCgFwEgAaACIAKgAyADgAQgASGQoJCAEQAB"
        "oDNTAlEgwKCgoDYXBwEgN3ZWIaCggAGAAgACgAMAAaACIA",
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "p"},
            "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
        },
        id="PodDisruptionBudget",
    ),
    pytest.param(
        "azhzAAoMCgJ2MRIGU2VjcmV0Eh0KEQoBcxIAGgAiACoAMgA4AEIAEgYKAWESAWIaABoAIgA=",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "Yg=="}},
        id="Secret",
    ),
    pytest.param(
        "azhzAAofChRuZXR3b3JraW5nLms4cy5pby92MRIHSW5ncmVzcxI8ChEKAWkSABoAIgAqADIAOABCABIjGiEKAWESHA"
        "oaChgKAi9iEgsiCQoBYxIECgAQUBoFRXhhY3QaAgoAGgAiAA==",
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "i"},
            "spec": {
                "rules": [
                    {
                        "host": "a",
                        "http": {
                            "paths": [
                                {
                                    "path": "/b",
                                    "backend": {"service": {"name": "c", "port": {"number": 80}}},
                                    "pathType": "Exact",
                                }
                            ]
                        },
                    }
                ]
            },
            "status": {"loadBalancer": {}},
        },
        id="Ingress",
    ),
    pytest.param(
        "azhzAAolChRzY2hlZHVsaW5nLms4cy5pby92MRINUHJpb3JpdHlDbGFzcxIwChIKAnBjEgAaACIAKgAyADgAQgAQAx"
        "gAIgAqFFByZWVtcHRMb3dlclByaW9yaXR5GgAiAA==",
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "pc"},
            "value": 3,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        id="PriorityClass",
    ),
    pytest.param(
        "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPAoQCgASABoAIg"
        "AqADIAOABCABIeChwKB2RlZmF1bHQSA2dldBoAIgAqBHBvZHMyADoAGggIABIAGgAgABoAIgA=",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "metadata": {},
            "spec": {"resourceAttributes": {"namespace": "default", "verb": "get", "resource": "pods"}},
            "status": {"allowed": False},
        },
        id="SelfSubjectAccessReview",
    ),
]


@pytest.mark.parametrize(("body", "expected"), SENT_BY_KUBECTL)
def test_what_kubectl_sends(body, expected):
    assert decode(base64.b64decode(body)) == expected


# Round trips: the encoder is written from the format alone and knows nothing of the decoder.


def encode(raw: dict[str, Any]) -> bytes:
    definition = library().kind(raw["apiVersion"], raw["kind"])
    assert definition is not None
    names = _bytes(1, raw["apiVersion"].encode()) + _bytes(2, raw["kind"].encode())
    content = {field: value for field, value in raw.items() if field not in ("apiVersion", "kind")}
    return b"k8s\0" + _bytes(1, names) + _bytes(2, _message(definition, content)) + _bytes(3, b"") + _bytes(4, b"")


def _message(definition: Definition, raw: dict[str, Any]) -> bytes:
    made: dict[tuple[int, ...], bytes] = {}
    for name, value in raw.items():
        field = (definition.fields or {})[name]
        *outer, number = field.number
        made[tuple(outer)] = made.get(tuple(outer), b"") + _field(field, number, value)
    direct = made.pop((), b"")
    return direct + b"".join(_bytes(path[0], content) for path, content in made.items())


def _field(field: Field, number: int, value: Any) -> bytes:
    match field.type:
        case ListOf(item):
            return b"".join(_value(item, number, one) for one in value)
        case MapOf(item):
            pairs = ((_bytes(1, key.encode()) + _value(item, 2, one)) for key, one in value.items())
            return b"".join(_bytes(number, pair) for pair in pairs)
        case other:
            return _value(other, number, value)


def _value(type_: Type, number: int, value: Any) -> bytes:
    match type_:
        case Ref():
            return _bytes(number, _message(library().resolve(type_), value))
        case ListOf(item):
            return _bytes(number, b"".join(_value(item, 1, one) for one in value))
        case Plain(name):
            return _plain(name, number, value)
        case _:
            raise AssertionError(type_)


def _plain(name: str, number: int, value: Any) -> bytes:
    match name:
        case "string":
            return _bytes(number, value.encode())
        case "bytes":
            return _bytes(number, base64.b64decode(value))
        case "int32" | "int64" | "bool":
            return _number(number, int(value))
        case "float":
            return _varint(number << 3 | 1) + struct.pack("<d", value)
        case "quantity":
            return _bytes(number, _bytes(1, value.encode()))
        case "intOrString" if isinstance(value, int):
            return _bytes(number, _number(1, 0) + _number(2, value) + _bytes(3, b""))
        case "intOrString":
            return _bytes(number, _number(1, 1) + _number(2, 0) + _bytes(3, value.encode()))
        case "time" | "microTime":
            micros = round((parse_time(value) or 0) * 1e6)
            return _bytes(number, _number(1, micros // 10**6) + _number(2, micros % 10**6 * 1000))
        case _:
            raise AssertionError(name)


def _bytes(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value % 2**64)


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "labels": {"a": "b", "c": ""},
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "u", "controller": False}],
    },
    "spec": {
        "activeDeadlineSeconds": 0,
        "containers": [
            {
                "name": "main",
                "image": "web",
                "ports": [{"containerPort": 80, "hostPort": 8080}],
                "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}}],
                "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 3},
                "readinessProbe": {"tcpSocket": {"port": 80}},
            }
        ],
        "volumes": [
            {"name": "a", "emptyDir": {}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "d", "configMap": {"name": "m", "items": [{"key": "x", "path": "y", "mode": -1}]}},
        ],
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": -5}],
        "nodeSelector": {"disk": "ssd"},
        "hostNetwork": True,
        "securityContext": {"supplementalGroups": [1, 2**40], "runAsNonRoot": False},
    },
    "status": {"startTime": "2026-01-02T03:04:05Z", "phase": "Running"},
}
OTHERS = [
    {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "eventTime": "2026-01-02T03:04:05.678901Z",
        "series": {"count": 3, "lastObservedTime": "2026-01-02T03:04:06.000001Z"},
        "regarding": {"kind": "Pod", "name": "p"},
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"maxUnavailable": 0, "minAvailable": "50%", "selector": {}},
    },
    {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "t"},
        "status": {"user": {"username": "u", "extra": {"scopes": ["a", "b"], "none": []}}},
    },
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "AAH/", "b": ""}},
    {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": ""}},
]


@pytest.mark.parametrize("raw", [POD, *OTHERS], ids=lambda raw: raw["kind"])
def test_round_trip(raw):
    assert decode(encode(raw)) == raw


def test_what_json_would_not_show_is_not_shown():
    shown = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    zeros = {"name": "p", "namespace": "", "generation": 0, "creationTimestamp": "1970-01-01T00:00:00Z"}
    decoded = decode(encode({**shown, "metadata": zeros, "spec": {"hostNetwork": False, "nodeName": ""}}))
    assert decoded == {**shown, "spec": {}}


def test_delete_options_come_under_any_group():
    body = encode({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"})
    length = body[5]
    names = _bytes(1, b"apps/v1") + _bytes(2, b"DeleteOptions")
    other = b"k8s\0" + _bytes(1, names) + body[6 + length :]
    assert decode(other) == {"apiVersion": "apps/v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"}


# Damage


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{}", "does not begin as"),
        (b"k8s\0", "is not understood in Protocol Buffers"),
        (b"k8s\0\x0a\xff", "damaged|in the middle"),
        (b"k8s\0" + _bytes(1, _bytes(1, b"v9") + _bytes(2, b"Pod")), "Pod of v9 is not understood"),
        (b"k8s\0\x0b", "wire type 3"),
        (b"k8s\0" + b"\x80" * 11, "longer than 64 bits"),
        (encode({"apiVersion": "v1", "kind": "Pod"}) + _bytes(3, b"gzip"), "content encoding"),
    ],
)
def test_damage_is_named(body, problem):
    with pytest.raises(ProtobufError, match=problem):
        decode(body)


@given(st.binary(max_size=200), st.sampled_from([POD, *OTHERS]), st.integers(0, 400))
def test_no_body_does_more_than_be_refused(noise, raw, cut):
    names = _bytes(1, raw["apiVersion"].encode()) + _bytes(2, raw["kind"].encode())
    for body in (b"k8s\0" + noise, b"k8s\0" + _bytes(1, names) + _bytes(2, noise), encode(raw)[:cut] + noise):
        with contextlib.suppress(ProtobufError):
            assert isinstance(decode(body), dict)
