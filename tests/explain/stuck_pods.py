"""The cluster with stuck pods, and what `moorage explain` must say about each of them.

tests/explain/test_stuck_pods.py asks about a snapshot of this cluster, and tests/cluster/test_stuck_pods.py about the
same cluster on a real control plane, where kube-scheduler is in charge. Objects are manifests, as users write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.cluster import objects
from tests.cluster.objects import Json

NAMESPACE, FULL = "t", "q"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
GPU = "nvidia.com/gpu"
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
HOLD = "example.com/hold"
"""A finalizer that keeps an object while it is being deleted."""
SSD = {"disk": "ssd"}
TAINT = "Tolerate taint nvidia.com/gpu=present:NoSchedule"
TAINT_YAML = "- key: nvidia.com/gpu"


def nodes() -> Iterator[Json]:
    for index, zone in enumerate("abc"):
        yield objects.node(f"w{index}", memory="8Gi", labels={ZONE: zone, "pool": "general", **SSD})
    gpus = {"pool": "gpu"}
    yield objects.node("gpu0", cpu="8", memory="32Gi", labels=gpus, taints=[GPU_TAINT], extended={GPU: "2"})
    yield objects.node("cord", memory="8Gi", labels={"pool": "general"}, unschedulable=True)
    dying = objects.node("dying", memory="8Gi", labels={"pool": "old"})
    dying["metadata"]["finalizers"] = [HOLD]
    yield dying


def others() -> Iterator[Json]:
    """Everything that is neither a node nor a pod, in the order of creation."""
    yield objects.namespace(NAMESPACE)
    yield objects.namespace(FULL)
    yield objects.priority_class("high", 1000)
    yield objects.priority_class("high-never", 1000, "Never")
    yield inside(NAMESPACE, objects.budget("guarded", {"app": "guarded"}, minAvailable=3))
    yield {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "4"}},
    }
    yield objects.storage_class("csi", "csi.example", "Immediate")
    yield objects.storage_class("static", mode="WaitForFirstConsumer")
    yield objects.storage_class("gone", mode="Immediate")
    yield inside(NAMESPACE, objects.claim("unbound", "csi"))
    yield inside(NAMESPACE, objects.claim("big", "static", "100Gi"))
    yield objects.volume("pv-small", "w0", "static", "10Gi")
    away = objects.volume("pv-b", "w0", "gone", "5Gi")
    terms = [{"key": ZONE, "operator": "In", "values": ["zone-gone"]}]
    away["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = [{"matchExpressions": terms}]
    yield away
    claim = inside(NAMESPACE, objects.claim("away", "gone"))
    claim["spec"]["volumeName"] = "pv-b"
    yield claim
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "accelerator.example.com"},
        "spec": {},
    }
    request = {"name": "one", "exactly": {"deviceClassName": "accelerator.example.com"}}
    yield inside(
        NAMESPACE,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "device"},
            "spec": {"devices": {"requests": [request]}},
        },
    )
    hard = {"pods": "1"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": hard}}
    yield inside(FULL, {**quota, "status": {"hard": hard, "used": {"pods": "1"}}})


def inside(namespace: str, obj: Json) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def running() -> Iterator[Json]:
    """The pods that have a node from the start."""
    for index in range(3):
        on = {"nodeName": f"w{index}"}
        high: Json = {"priorityClassName": "high", **on}
        yield pod(f"base{index}", cpu="2500m", memory="4Gi", labels={"app": "base"}, **high)
        guarded = {"terminationGracePeriodSeconds": 3600, **on}
        yield pod(f"guarded{index}", cpu="1", labels={"app": "guarded"}, **guarded)
    for index in range(2):
        yield pod(f"spread{index}", requests={}, labels={"app": "spread"}, nodeName="w0")
    yield pod("port-holder", cpu="100m", ports=[{"containerPort": 80, "hostPort": 80}], nodeName="w0")


def pod(name: str, **options: Any) -> Json:
    return inside(NAMESPACE, objects.pod(name, **options))


@dataclass(frozen=True)
class Stuck:
    """One stuck pod and a good answer about it."""

    pod: Json
    first: str
    """A regular expression for the whole headline, after the name of the pod."""
    facts: tuple[str, ...] = ()
    """Texts that the output has, somewhere."""
    remedy: str = ""
    """How the first remedy begins; empty: there is none."""
    command: str = ""
    """A part of what is to be copied for it."""
    further: tuple[str, ...] = ()
    """How other remedies begin."""
    never: tuple[str, ...] = ()
    """Texts that the output must not have."""
    exit: int = 3
    status: Json = field(default_factory=dict)
    """What the kubelet, or the scheduler, writes into the status of the pod."""

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])


PENDING = r"is pending: 0 of 6 nodes are feasible\."
NEVER = ("kubernetes.io/hostname=w0 ", "(dying)", "best: dying")
WAITING = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
PULL = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}


def affinity(kind: str, key: str, **labels: str) -> Json:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def table() -> list[Stuck]:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeAffinityPolicy": "Ignore",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    level = pod("pod-level", requests={}, resources={"requests": {"cpu": "5"}})
    return [
        Stuck(
            pod("selector", cpu="3", nodeSelector={"pool": "gpu"}),
            PENDING,
            ("Only gpu0 matches", "taint nvidia.com/gpu=present:NoSchedule"),
            TAINT,
            TAINT_YAML,
        ),
        Stuck(
            pod("six-cpu", cpu="6"),
            PENDING,
            ("6 cpu requested; most free: 8 on gpu0;", "500m on w1 and w2", "taint nvidia.com/gpu=present:NoSchedule"),
            TAINT,
            TAINT_YAML,
            ("Request at most 500m cpu",),
        ),
        Stuck(
            pod("large", memory="64Gi"),
            PENDING,
            ("No node has 64Gi memory: the largest is gpu0 with 32Gi.",),
            "Add a node with at least 64Gi memory",
            never=("Request at most 4Gi memory",),
        ),
        Stuck(
            pod("lonely", affinity=affinity("podAffinity", ZONE, app="cache")),
            PENDING,
            ("No running pod matches app=cache in namespace t",),
            "Drop the required pod affinity",
            "podAffinity",
        ),
        Stuck(
            pod("apart", nodeSelector=SSD, affinity=affinity("podAntiAffinity", HOSTNAME, app="base")),
            PENDING,
            ("t/base0 on w0, t/base1 on w1, t/base2 on w2",),
            "Prefer the pod anti-affinity instead of requiring it",
            "preferredDuringSchedulingIgnoredDuringExecution",
            ("Add one more node like w0",),
        ),
        Stuck(
            pod("skewed", labels={"app": "spread"}, nodeSelector={ZONE: "a"}, topologySpreadConstraints=[spread]),
            PENDING,
            ("maxSkew 1: limit 1, actual 3 (2 over)",),
            f"Allow a maxSkew of 3 over {ZONE}",
            "maxSkew: 3",
            (f"Drop node selector {ZONE}=a", f"Spread over {ZONE} with ScheduleAnyway"),
            never=(f"kubectl label node/w1 {ZONE}",),
        ),
        Stuck(
            pod("unprovisioned", volumes=objects.uses_claim("unbound")),
            PENDING,
            (
                "The claim t/unbound waits for the provisioner csi.example.",
                "No CSIDriver, node or pod of that name shows that it runs",
            ),
        ),
        Stuck(
            pod("unclaimed", volumes=objects.uses_claim("not-there")),
            PENDING,
            ("The claim not-there does not exist in namespace t. Create it, or correct the name.",),
        ),
        Stuck(
            pod("other-zone", volumes=objects.uses_claim("away")),
            PENDING,
            ("Volume pv-b of claim t/away needs a node with", f"{ZONE}=zone-gone", f"Values of {ZONE} here: a, b, c."),
        ),
        Stuck(
            pod("too-big", volumes=objects.uses_claim("big")),
            PENDING,
            ("asks for 100Gi of class static; the largest available volume is pv-small with 10Gi",),
        ),
        Stuck(
            pod("port", ports=[{"containerPort": 80, "hostPort": 80}], nodeSelector={HOSTNAME: "w0"}),
            PENDING,
            ("port TCP/80: in use by t/port-holder",),
            "Do without host ports",
            "ports",
            (f"Drop node selector {HOSTNAME}=w0", "Delete pod t/port-holder on node w0"),
            never=("Label node",),
        ),
        Stuck(
            pod("gated", schedulingGates=[{"name": "example.com/quota"}]),
            r"is gated by the scheduling gate example\.com/quota\. The scheduler does not try it until it is removed\.",
            ("Who set the gate is not recorded",),
            "Remove the scheduling gate example.com/quota",
            "kubectl -n t patch pod/gated --type=json -p",
        ),
        Stuck(
            pod("foreign", scheduler="volcano"),
            r"waits for the scheduler volcano; default-scheduler does not schedule it\.",
            ("of 6 nodes would be feasible", "Node dying is feasible, but it has been terminating since"),
            "Start the scheduler volcano, or recreate the pod without schedulerName",
            "schedulerName: default-scheduler",
        ),
        Stuck(
            pod("nominated", cpu="1", priorityClassName="high", nodeSelector=SSD),
            r"is nominated to w1 and waits for 1 victim to leave\.",
            ("has been terminating since", "violates the disruption budget t/guarded"),
            status={"nominatedNodeName": "w1"},
        ),
        Stuck(
            pod("fpga", requests={"example.com/fpga": "1"}),
            PENDING,
            ("No node offers example.com/fpga.",),
            "Add a node with at least 1 example.com/fpga",
        ),
        Stuck(
            pod("mistyped", nodeSelector={"poool": "general"}),
            PENDING,
            ("No node has the label poool; did you mean pool (5 nodes)?",),
            "Select pool=general instead of poool=general",
            "pool: general",
        ),
        Stuck(
            pod("kata", cpu="500m", runtimeClassName="kata"),
            PENDING,
            ("cpu: 500m requested + 4 overhead of RuntimeClass kata = 4500m.",),
            TAINT,
            TAINT_YAML,
            never=("Request at most",),
        ),
        Stuck(
            level, PENDING, ("The pod-level resources request 5 cpu.",), TAINT, further=("Request at most 500m cpu",)
        ),
        Stuck(
            pod("unpullable", nodeSelector={"pool": "old"}, image="x"),
            r'is placed on dying and does not run: container main: ImagePullBackOff: Back-off pulling image "x"\.',
            ("Node dying has been terminating since",),
            "Correct the image of container main",
            "kubectl -n t set image pod/unpullable main=IMAGE",
            exit=0,
            status={"containerStatuses": [{**WAITING, "state": {"waiting": PULL}}]},
        ),
        Stuck(
            pod("device", resourceClaims=[{"name": "one", "resourceClaimName": "device"}]),
            PENDING,
            ("resource claims is not supported yet",),
        ),
        Stuck(
            pod("old", nodeSelector={"pool": "old"}),
            r"is placed on dying; its containers do not run yet\.",
            ("Node dying has been terminating since",),
            exit=0,
        ),
        Stuck(
            pod("polite", cpu="1", priorityClassName="high-never", nodeSelector=SSD),
            PENDING,
            ("The pod could preempt t/guarded", "but its preemptionPolicy is Never."),
            "Request at most",
            "cpu:",
            ("Drop preemptionPolicy Never, which would preempt t/guarded",),
        ),
        Stuck(
            pod("cordoned", nodeSelector={HOSTNAME: "cord"}),
            PENDING,
            ("1 node is cordoned: cord.",),
            "Uncordon node cord",
            "kubectl uncordon cord",
        ),
        Stuck(
            pod("four-gpus", requests={GPU: "4"}, tolerations=[{"key": GPU, "operator": "Exists"}]),
            PENDING,
            ("No node has 4 nvidia.com/gpu: the largest is gpu0 with 2.",),
            "Request at most 2 nvidia.com/gpu",
            "nvidia.com/gpu: '2'",
        ),
    ]


DEPLOYMENT = inside(FULL, objects.deployment("qd", 2, scheduler="default-scheduler"))
OCCUPANT = inside(FULL, objects.pod("occupant", requests={}, nodeName="w2"))
"""The pod that uses up the quota."""
QUOTA_FACT = "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"
QUOTA_COMMAND = """kubectl -n q patch resourcequota/few --type=merge -p '{"spec":{"hard":{"pods":"3"}}}'"""
