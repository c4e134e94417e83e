"""Templates for new objects."""

from __future__ import annotations

TEMPLATES = {
    "pods": """\
apiVersion: v1
kind: Pod
metadata:
  generateName: pod-
spec:
  containers:
  - name: pause
    image: registry.k8s.io/pause:3.10
    resources:
      requests: {cpu: 100m, memory: 128Mi}
""",
    "nodes": """\
apiVersion: v1
kind: Node
metadata:
  generateName: node-
  labels: {topology.kubernetes.io/zone: zone-a}
status:
  capacity: {cpu: "4", memory: 32Gi, pods: "110"}
  allocatable: {cpu: "4", memory: 32Gi, pods: "110"}
""",
    "deployments.v1.apps": """\
apiVersion: apps/v1
kind: Deployment
metadata:
  generateName: deployment-
spec:
  replicas: 3
  selector:
    matchLabels: {app: example}
  template:
    metadata:
      labels: {app: example}
    spec:
      containers:
      - name: pause
        image: registry.k8s.io/pause:3.10
        resources:
          requests: {cpu: 100m, memory: 128Mi}
""",
    "priorityclasses.v1.scheduling.k8s.io": """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  generateName: priority-
value: 1000
""",
    "namespaces": """\
apiVersion: v1
kind: Namespace
metadata:
  generateName: namespace-
""",
    "storageclasses.v1.storage.k8s.io": """\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  generateName: storage-
provisioner: moorage.dev/provisioner
volumeBindingMode: WaitForFirstConsumer
""",
    "persistentvolumeclaims": """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  generateName: claim-
spec:
  accessModes: [ReadWriteOnce]
  resources:
    requests: {storage: 1Gi}
""",
    "persistentvolumes": """\
apiVersion: v1
kind: PersistentVolume
metadata:
  generateName: volume-
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  persistentVolumeReclaimPolicy: Delete
  hostPath: {path: /tmp/data}
""",
}
"""Kind → YAML. The server generates names, so one text can create many objects."""


def template(kind: str, api_version: str, name: str) -> str:
    """Return the template of a kind, named as in the address; other kinds get the fields that every object has."""
    return TEMPLATES.get(kind) or f"apiVersion: {api_version}\nkind: {name}\nmetadata:\n  name: example\n"
