"""Manifests that leave optional fields unset, one or more of every served kind.

Two API servers that create them should return the same objects.
"""

from __future__ import annotations

MANIFESTS = """
{apiVersion: v1, kind: Namespace, metadata: {name: space, labels: {a: b}}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-a}, spec: {podCIDR: 10.1.0.0/24}}
---
apiVersion: v1
kind: Node
metadata: {name: node-b}
spec: {taints: [{key: a, effect: NoSchedule}]}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: empty}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: full}, data: {a: "1"}, binaryData: {b: AQI=}, immutable: true}
---
{apiVersion: v1, kind: Secret, metadata: {name: plain}, stringData: {a: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: login}, type: kubernetes.io/basic-auth, stringData: {username: u}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}, automountServiceAccountToken: false}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: puller}, imagePullSecrets: [{name: login}],
    secrets: [{name: s}]}
---
{apiVersion: v1, kind: Service, metadata: {name: plain}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
apiVersion: v1
kind: Service
metadata: {name: several}
spec:
  selector: {app: web}
  sessionAffinity: ClientIP
  ports: [{name: a, port: 80, targetPort: web}, {name: b, port: 53, protocol: UDP}, {name: c, port: 9,
      appProtocol: http}]
---
{apiVersion: v1, kind: Service, metadata: {name: headless}, spec: {clusterIP: None, selector: {app: web},
    ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: no-ports}, spec: {clusterIP: None}}
---
{apiVersion: v1, kind: Service, metadata: {name: on-nodes}, spec: {type: NodePort, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: local}, spec: {type: NodePort, externalTrafficPolicy: Local,
    ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: balanced}, spec: {type: LoadBalancer, ports: [{port: 80}]}}
---
apiVersion: v1
kind: Service
metadata: {name: balanced-local}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, allocateLoadBalancerNodePorts: false, ports: [{port: 80}]}
---
{apiVersion: v1, kind: Service, metadata: {name: outside}, spec: {type: ExternalName, externalName: example.com}}
---
{apiVersion: v1, kind: Service, metadata: {name: named-outside}, spec: {type: ExternalName,
    externalName: example.com, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: families}, spec: {ipFamilyPolicy: PreferDualStack,
    ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: manual}, subsets: [{addresses: [{ip: 10.0.0.1}],
    ports: [{port: 80}]}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: slice}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.2], conditions: {ready: false}, targetRef: {kind: Pod,
    name: a}}]
ports: [{port: 80}, {name: dns, protocol: UDP}]
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: bare}, addressType: FQDN, endpoints: []}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 5Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /x}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: remote}
spec: {capacity: {storage: 5Gi}, accessModes: [ReadWriteMany], claimRef: {name: c, namespace: default},
    csi: {driver: d.io, volumeHandle: h}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: target}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadOnlyMany], iscsi: {targetPortal: 10.0.0.1,
    iqn: "iqn.2001-04.com.example:a", lun: 0}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: attached}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  local: {path: /x}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: slow}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: no-class}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: copy}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: slow,
    dataSource: {kind: PersistentVolumeClaim, name: claim}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: slow}, provisioner: example.com/slow}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: driver.example.com}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: bare.example.com}, spec: {attachRequired: false}}
---
{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: node-a}, spec: {drivers: [{name: driver.example.com,
    nodeID: a}]}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, metadata: {name: free}, storageClassName: slow,
    capacity: 1Gi}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: attachment}
spec: {attacher: driver.example.com, nodeName: node-a, source: {persistentVolumeName: disk}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  tls: [{hosts: [a.example.com]}]
  rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: plain,
      port: {number: 80}}}}]}}]
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: all},
    spec: {defaultBackend: {service: {name: plain, port: {name: web}}}}}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: sandboxed}, handler: sandbox,
    overhead: {podFixed: {cpu: 0.25, memory: 64Mi}}, scheduling: {nodeSelector: {a: b}, tolerations: [{key: k}]}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: front},
    spec: {controller: example.com/front, parameters: {kind: A, name: a}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: in}
spec: {podSelector: {}, ingress: [{ports: [{port: 80}], from: [{podSelector: {}}]}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: both}
spec: {podSelector: {matchLabels: {a: b}}, ingress: [], egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}],
    ports: [{protocol: UDP}]}]}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: nothing}, spec: {podSelector: {}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: budget}, spec: {minAvailable: 1,
    selector: {matchLabels: {app: web}}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: bare}, spec: {}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: patient}, value: 5,
    preemptionPolicy: Never, description: d}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: lease}, spec: {holderIdentity: me}}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: bare}}
---
{apiVersion: v1, kind: Event, metadata: {name: old}, involvedObject: {kind: Pod, name: a, namespace: default},
    reason: R, message: m}
---
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: new}
eventTime: "2026-01-02T03:04:05.123456Z"
regarding: {kind: Pod, name: a, namespace: default}
reportingController: example.com/me
reportingInstance: me-1
action: Act
reason: R
type: Normal
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: nothing}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader},
    rules: [{nonResourceURLs: [/x], verbs: [get]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sum}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers}
roleRef: {kind: Role, name: reader}
subjects: [{kind: User, name: u}, {kind: Group, name: g}, {kind: ServiceAccount, name: robot, namespace: default}]
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: readers},
    roleRef: {kind: ClusterRole, name: reader}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpus}
spec:
  devices:
    requests: [{name: one, exactly: {deviceClassName: gpu}}, {name: some, exactly: {deviceClassName: gpu,
        count: 2}}, {name: any, firstAvailable: [{name: a, deviceClassName: gpu}]}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec: {spec: {devices: {requests: [{name: all, exactly: {deviceClassName: gpu, allocationMode: All,
    tolerations: [{key: a, operator: Exists}]}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice}
spec: {driver: gpu.example.com, nodeName: node-a, pool: {name: node-a, generation: 1, resourceSliceCount: 1},
    devices: [{name: gpu-0}]}
---
{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: revision}, revision: 1, data: {a: b}}
"""
LAST = """
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec:
  limits:
  - {type: Container, default: {cpu: "1"}, max: {memory: 1Gi, cpu: 2}, min: {memory: 1Mi, ephemeral-storage: 1Ki}}
  - {type: Pod, max: {cpu: "2"}, maxLimitRequestRatio: {cpu: "4"}}
  - {type: PersistentVolumeClaim, min: {storage: 1Gi}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: quota}, spec: {hard: {pods: 10, cpu: "2"}}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: scoped}, spec: {hard: {pods: 1}, scopes: [BestEffort]}}
"""
"""Created after the pods, because these kinds change what is admitted."""
