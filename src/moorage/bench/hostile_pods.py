"""Pods in which one field has very many entries, for `moorage bench hostile`.

A field is a function that writes `size` entries into a raw pod. `tag` is different for every pod, so that no answer
about an earlier pod can be reused. The entries are the worst that we know: every value is new, and most match nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from moorage.api.node import HOSTNAME, ZONE

Json = dict[str, Any]
Fill = Callable[[Json, str, int], None]

MAX_BYTES = 1_500_000
"""The largest object that etcd stores by default."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def names(tag: str, size: int) -> Iterator[str]:
    return (f"{tag}-{i}" for i in range(size))


def spec_list(name: str, entry: Callable[[str, int], Json]) -> Fill:
    """Return a field that is a list of the spec. `entry` makes an entry from a new name and its index."""

    def fill(pod: Json, tag: str, size: int) -> None:
        pod["spec"][name] = [entry(new, i) for i, new in enumerate(names(tag, size))]

    return fill


def constraint(key: Callable[[str], str], action: str, **more: Any) -> Fill:
    """Return spread constraints over `key(name)`, each with its own selector."""

    def entry(name: str, _: int) -> Json:
        selects = {"matchLabels": {"app": name}}
        return {
            "maxSkew": 5, "topologyKey": key(name), "whenUnsatisfiable": action, "labelSelector": selects, **more
        }  # fmt: skip

    return spec_list("topologySpreadConstraints", entry)


def one_constraint(part: Callable[[str, int], Json]) -> Fill:
    """Return one spread constraint over zones, with `part(tag, size)`."""

    def fill(pod: Json, tag: str, size: int) -> None:
        own = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **part(tag, size)}
        pod["spec"]["topologySpreadConstraints"] = [own]

    return fill


def match_label_keys(pod: Json, tag: str, size: int) -> None:
    selects = {"matchLabels": {"app": tag}}
    one_constraint(lambda tag, size: {"labelSelector": selects, "matchLabelKeys": [*names(tag, size)]})(pod, tag, size)
    pod["metadata"]["labels"] |= dict.fromkeys(names(tag, size), "v")


def expressions(tag: str, size: int, operator: str = "NotIn") -> list[Json]:
    return [{"key": name, "operator": operator, "values": ["v"]} for name in names(tag, size)]


def values(tag: str, size: int, operator: str = "In", key: str = "app") -> list[Json]:
    return [{"key": key, "operator": operator, "values": [*names(tag, size)]}]


def selector_of(listed: Callable[[str, int], list[Json]]) -> Callable[[str, int], Json]:
    return lambda tag, size: {"labelSelector": {"matchExpressions": listed(tag, size)}}


def affinity_terms(side: str, entry: Callable[[str], Json], when: str = REQUIRED) -> Fill:
    """Return the terms of podAffinity or podAntiAffinity."""

    def fill(pod: Json, tag: str, size: int) -> None:
        terms = [entry(name) for name in names(tag, size)]
        if when == PREFERRED:
            terms = [{"weight": 1 + i % 100, "podAffinityTerm": term} for i, term in enumerate(terms)]
        pod["spec"]["affinity"] = {side: {when: terms}}

    return fill


def one_term(side: str, part: Callable[[str, int], Json]) -> Fill:
    """Return one required term, with `part(tag, size)`."""

    def fill(pod: Json, tag: str, size: int) -> None:
        pod["spec"]["affinity"] = {side: {REQUIRED: [{"topologyKey": ZONE, **part(tag, size)}]}}

    return fill


def term(name: str, key: str = HOSTNAME, **more: Any) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": name}}, **more}


def own_term(name: str) -> Json:
    """Return a term that selects the pod itself and all other pods without the label."""
    others = {"matchExpressions": [{"key": name, "operator": "DoesNotExist"}]}
    return {"topologyKey": ZONE, "labelSelector": others}


def term_with_namespaces(name: str) -> Json:
    selects = {"matchExpressions": [{"key": name, "operator": "DoesNotExist"}]}
    return term(name, namespaces=[name, f"{name}-b"], namespaceSelector=selects)


def node_terms(pod: Json, tag: str, size: int) -> None:
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": [name]}]} for name in names(tag, size)]
    terms.append({"matchExpressions": [{"key": "disk", "operator": "Exists"}]})
    _node_affinity(pod, {REQUIRED: {"nodeSelectorTerms": terms}})


def node_names(pod: Json, tag: str, size: int) -> None:
    listed = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [n]}]} for n in names(tag, size)]
    _node_affinity(pod, {REQUIRED: {"nodeSelectorTerms": listed}})


def one_node_term(listed: Callable[[str, int], list[Json]]) -> Fill:
    def fill(pod: Json, tag: str, size: int) -> None:
        _node_affinity(pod, {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": listed(tag, size)}]}})

    return fill


def node_preferences(pod: Json, tag: str, size: int) -> None:
    preferred = [
        {"weight": 1 + i % 100, "preference": {"matchExpressions": values(name, 1, "NotIn", "disk")}}
        for i, name in enumerate(names(tag, size))
    ]
    _node_affinity(pod, {PREFERRED: preferred})


def _node_affinity(pod: Json, affinity: Json) -> None:
    pod["spec"]["affinity"] = {"nodeAffinity": affinity}


def metadata_map(name: str) -> Fill:
    def fill(pod: Json, tag: str, size: int) -> None:
        pod["metadata"].setdefault(name, {}).update(dict.fromkeys(names(tag, size), "v"))

    return fill


def node_selector(pod: Json, tag: str, size: int) -> None:
    pod["spec"]["nodeSelector"] = dict.fromkeys(names(tag, size), "v")


def owners(pod: Json, tag: str, size: int) -> None:
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name} for name in names(tag, size)
    ]


def finalizers(pod: Json, tag: str, size: int) -> None:
    pod["metadata"]["finalizers"] = [f"example.com/{name}" for name in names(tag, size)]


def containers(name: str, **more: Any) -> Fill:
    """Return containers with their own images and requests, beside the pod's own container."""

    def fill(pod: Json, tag: str, size: int) -> None:
        listed = pod["spec"].setdefault(name, [])
        for i, new in enumerate(names(tag, size)):
            requests = {"cpu": "1m" if i < 100 else "0", "memory": f"{i % 7}Ki"}
            listed.append({"name": new, "image": f"{new}:1", "resources": {"requests": requests}, **more})

    return fill


def ports(pod: Json, tag: str, size: int) -> None:
    """Write host ports of which half have their own address, so that all are different."""
    pod["spec"]["containers"][0]["ports"] = [
        {"containerPort": 80, "hostPort": 1 + i % 60_000, "hostIP": f"10.{i % 250}.{i // 250}.1" if i % 2 else ""}
        for i in range(size)
    ]


def resources(pod: Json, tag: str, size: int) -> None:
    for name in names(tag, size):
        pod["spec"]["containers"][0]["resources"]["requests"][f"example.com/{name}"] = "1"


def overhead(pod: Json, tag: str, size: int) -> None:
    pod["spec"]["overhead"] = {f"example.com/{name}": "0" for name in names(tag, size)}


def pod_resources(pod: Json, tag: str, size: int) -> None:
    requests = {"cpu": "100m", **{f"hugepages-{i + 1}Ki": "0" for i in range(size)}}
    pod["spec"]["resources"] = {"requests": requests}


def claims(pod: Json, tag: str, size: int) -> None:
    pod["spec"]["resourceClaims"] = [{"name": n, "resourceClaimName": n} for n in names(tag, size)]
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": name} for name in names(tag, size)]


def conditions(pod: Json, tag: str, size: int) -> None:
    pod["status"]["conditions"] = [{"type": name, "status": "True"} for name in names(tag, size)]


def volume(source: Callable[[str, int], Json]) -> Fill:
    return spec_list("volumes", lambda name, i: {"name": name, **source(name, i)})


def monitors(pod: Json, tag: str, size: int) -> None:
    pod["spec"]["volumes"] = [{"name": "v", "rbd": {"monitors": [*names(tag, size)], "image": tag}}]


def ephemeral(name: str, _: int) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "fast"}
    return {"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
NEAR, AWAY = "podAffinity", "podAntiAffinity"

FIELDS: dict[str, Fill] = {
    "tolerations": spec_list("tolerations", lambda name, _: {"key": name, "operator": "Exists"}),
    "tolerations-equal": spec_list("tolerations", lambda name, _: {"key": "dedicated", "value": name}),
    "spread-hard-unknown-keys": constraint(str, HARD),
    "spread-soft-unknown-keys": constraint(str, SOFT),
    "spread-hard-one-key": constraint(lambda _: ZONE, HARD),
    "spread-soft-one-key": constraint(lambda _: ZONE, SOFT),
    "spread-hard-hostname": constraint(lambda _: HOSTNAME, HARD),
    "spread-soft-hostname": constraint(lambda _: HOSTNAME, SOFT),
    "spread-honor-taints": constraint(lambda _: ZONE, HARD, nodeTaintsPolicy="Honor"),
    "spread-match-label-keys": match_label_keys,
    "spread-expressions": one_constraint(selector_of(expressions)),
    "spread-values": one_constraint(selector_of(values)),
    "affinity-terms": affinity_terms(NEAR, own_term),
    "affinity-terms-unmet": affinity_terms(NEAR, term),
    "affinity-preferred": affinity_terms(NEAR, term, PREFERRED),
    "affinity-preferred-keys": affinity_terms(NEAR, lambda name: term(name, name), PREFERRED),
    "anti-affinity-terms": affinity_terms(AWAY, term),
    "anti-affinity-keys": affinity_terms(AWAY, lambda name: term(name, name)),
    "anti-affinity-preferred": affinity_terms(AWAY, term, PREFERRED),
    "anti-affinity-namespace-selectors": affinity_terms(AWAY, term_with_namespaces),
    "anti-affinity-namespaces": one_term(AWAY, lambda tag, size: {"namespaces": [*names(tag, size)]}),
    "anti-affinity-expressions": one_term(AWAY, selector_of(expressions)),
    "anti-affinity-values": one_term(AWAY, selector_of(values)),
    "node-affinity-terms": node_terms,
    "node-affinity-names": node_names,
    "node-affinity-expressions": one_node_term(expressions),
    "node-affinity-values": one_node_term(lambda tag, size: values(tag, size, "NotIn", "disk")),
    "node-affinity-preferred": node_preferences,
    "node-selector": node_selector,
    "labels": metadata_map("labels"),
    "annotations": metadata_map("annotations"),
    "owner-references": owners,
    "finalizers": finalizers,
    "containers": containers("containers"),
    "init-containers": containers("initContainers"),
    "sidecars": containers("initContainers", restartPolicy="Always"),
    "host-ports": ports,
    "resource-names": resources,
    "overhead": overhead,
    "pod-resources": pod_resources,
    "resource-claims": claims,
    "scheduling-gates": spec_list("schedulingGates", lambda name, _: {"name": name}),
    "image-pull-secrets": spec_list("imagePullSecrets", lambda name, _: {"name": name}),
    "conditions": conditions,
    "volumes-pvc": volume(lambda name, _: {"persistentVolumeClaim": {"claimName": name}}),
    "volumes-ephemeral": volume(ephemeral),
    "volumes-gce": volume(lambda name, _: {"gcePersistentDisk": {"pdName": name}}),
    "volumes-ebs": volume(lambda name, _: {"awsElasticBlockStore": {"volumeID": name}}),
    "volumes-iscsi": volume(lambda name, _: {"iscsi": {"targetPortal": "10.0.0.1", "iqn": name, "lun": 0}}),
    "volumes-rbd": volume(lambda name, _: {"rbd": {"monitors": [name, "mon-b"], "image": name}}),
    "volumes-rbd-monitors": monitors,
    "volumes-csi": volume(lambda name, _: {"csi": {"driver": f"{name}.example.com"}}),
    "volumes-image": volume(lambda name, _: {"image": {"reference": name}}),
}
