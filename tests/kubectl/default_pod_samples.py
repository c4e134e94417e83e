"""Pods and workloads that leave optional fields unset, with volumes, probes and hooks of every kind."""

from __future__ import annotations

MANIFESTS = """
{apiVersion: v1, kind: Pod, metadata: {name: plain}, spec: {serviceAccountName: robot, containers: [{name: main,
    image: nginx}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: probes, labels: {app: web}}
spec:
  serviceAccountName: robot
  containers:
  - name: main
    image: registry.example.com:5000/web:1.2
    ports: [{containerPort: 80}, {name: dns, containerPort: 53, protocol: UDP, hostPort: 53}]
    livenessProbe: {httpGet: {port: 80}}
    readinessProbe: {tcpSocket: {port: web}, periodSeconds: 3}
    startupProbe: {grpc: {port: 9000}}
    lifecycle: {postStart: {exec: {command: [a]}}, preStop: {httpGet: {port: 80}}}
    env:
    - {name: A}
    - {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: C, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
    - {name: D, valueFrom: {secretKeyRef: {name: s, key: k}}}
    - {name: E, valueFrom: {configMapKeyRef: {name: c, key: k, optional: true}}}
    envFrom: [{prefix: P_, configMapRef: {name: c}}, {secretRef: {name: s}}]
    resources: {limits: {cpu: 1, memory: 1.5Gi}, requests: {cpu: "0.25"}}
  - name: digest
    image: nginx@sha256:0000000000000000000000000000000000000000000000000000000000000000
    livenessProbe: {exec: {command: [a]}, initialDelaySeconds: 5, failureThreshold: 1}
  - {name: latest, image: "nginx:latest", stdin: true, tty: true, workingDir: /x, command: [a], args: [b]}
---
apiVersion: v1
kind: Pod
metadata: {name: first}
spec:
  serviceAccountName: robot
  restartPolicy: OnFailure
  initContainers:
  - {name: once, image: "a:1"}
  - {name: side, image: "a:1", restartPolicy: Always, startupProbe: {httpGet: {port: 1, path: x, scheme: HTTPS}},
      lifecycle: {preStop: {sleep: {seconds: 1}}}}
  containers: [{name: main, image: "a:1", resources: {limits: {cpu: 1, memory: 1Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: volumes}
spec:
  serviceAccountName: robot
  containers:
  - name: main
    image: a
    volumeMounts: [{name: v1, mountPath: /1}, {name: v2, mountPath: /2, readOnly: true, subPath: a}]
    volumeDevices: [{name: v6, devicePath: /dev/x}]
  volumes:
  - {name: v0}
  - {name: v1, emptyDir: {medium: Memory}}
  - {name: v2, hostPath: {path: /x}}
  - {name: v3, configMap: {name: c, items: [{key: a, path: b}]}}
  - {name: v4, secret: {secretName: s, optional: true}}
  - {name: v5, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.labels}}, {path: b,
      resourceFieldRef: {containerName: main, resource: limits.cpu}}]}}
  - {name: v6, persistentVolumeClaim: {claimName: c}}
  - {name: v7, csi: {driver: d.example.com}}
  - {name: v8, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce],
      resources: {requests: {storage: 1Gi}}}}}}
  - {name: v9, nfs: {server: s, path: /x}}
  - name: v10
    projected:
      sources:
      - {serviceAccountToken: {path: t}}
      - {configMap: {name: c}}
      - {secret: {name: s, items: [{key: a, path: b}]}}
      - {downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}
  - {name: v11, projected: {}}
  - {name: v12, iscsi: {targetPortal: 10.0.0.1, iqn: "iqn.2001-04.com.example:a", lun: 0}}
  - {name: v13, rbd: {monitors: [m], image: i}}
  - {name: v14, azureDisk: {diskName: d, diskURI: "https://d.blob.core.windows.net/v/d.vhd"}}
  - {name: v15, scaleIO: {gateway: g, system: s, secretRef: {name: s}, volumeName: v}}
  - {name: v16, awsElasticBlockStore: {volumeID: v}}
  - {name: v17, gcePersistentDisk: {pdName: v}}
  - {name: v18, cephfs: {monitors: [m]}}
  - {name: v19, fc: {targetWWNs: [w], lun: 1}}
  - {name: v20, flexVolume: {driver: d}}
  - {name: v21, cinder: {volumeID: v}}
  - {name: v22, glusterfs: {endpoints: e, path: p}}
  - {name: v23, image: {reference: "a:1"}}
  - {name: v24, image: {reference: a}}
  - {name: v25, gitRepo: {repository: r}}
  - {name: v26, vsphereVolume: {volumePath: p}}
  - {name: v27, portworxVolume: {volumeID: v}}
---
apiVersion: v1
kind: Pod
metadata: {name: placed, labels: {app: web}}
spec:
  serviceAccountName: robot
  priorityClassName: high
  nodeSelector: {a: b}
  hostNetwork: true
  hostPID: true
  hostAliases: [{ip: 10.0.0.1, hostnames: [a]}]
  dnsConfig: {nameservers: [10.0.0.1], options: [{name: ndots}]}
  imagePullSecrets: [{name: s}]
  readinessGates: [{conditionType: example.io/g}]
  schedulingGates: [{name: example.io/g}]
  tolerations: [{key: a}, {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {},
      matchLabelKeys: [app]}]
  affinity:
    nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}
    podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {},
        matchLabelKeys: [app]}]}
    podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1,
        podAffinityTerm: {topologyKey: zone}}]}
  securityContext: {runAsUser: 1, fsGroup: 2, seccompProfile: {type: RuntimeDefault},
      sysctls: [{name: kernel.shm_rmid_forced, value: "1"}]}
  containers:
  - name: main
    image: a
    ports: [{containerPort: 80}]
    securityContext: {procMount: Default, capabilities: {add: [NET_ADMIN]}}
  resourceClaims: [{name: gpu, resourceClaimName: gpus}]
---
apiVersion: v1
kind: Pod
metadata: {name: guaranteed}
spec:
  serviceAccount: robot
  automountServiceAccountToken: false
  enableServiceLinks: false
  shareProcessNamespace: true
  setHostnameAsFQDN: true
  hostname: h
  subdomain: s
  activeDeadlineSeconds: 100
  terminationGracePeriodSeconds: 0
  preemptionPolicy: PreemptLowerPriority
  runtimeClassName: null
  os: {name: linux}
  hostUsers: false
  resources: {limits: {cpu: 2}}
  containers:
  - {name: main, image: "a:1", resources: {limits: {cpu: 500m, memory: 64Mi}, requests: {cpu: "0.5", memory: 64Mi}},
      resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: template}
template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: a,
    livenessProbe: {httpGet: {port: 80}}}]}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: controller}
spec: {template: {metadata: {labels: {app: rc}}, spec: {containers: [{name: main, image: a}]}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: set}
spec: {selector: {matchLabels: {app: rs}}, template: {metadata: {labels: {app: rs}},
    spec: {containers: [{name: main, image: a, resources: {limits: {cpu: 1}}}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {volumes: [{name: v}],
    containers: [{name: main, image: a}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: rolling}
spec:
  replicas: 0
  strategy: {rollingUpdate: {maxSurge: 1}}
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {serviceAccountName: robot, hostNetwork: true,
      containers: [{name: main, image: a, ports: [{containerPort: 80}]}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: recreated}
spec: {strategy: {type: Recreate}, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
    spec: {containers: [{name: main, image: a}]}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: a, volumeMounts: [{name: data,
      mountPath: /d}]}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce],
      resources: {requests: {storage: 1Gi}}}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: parallel}
spec:
  podManagementPolicy: Parallel
  updateStrategy: {type: OnDelete}
  ordinals: {start: 5}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: a}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: stepwise}
spec:
  updateStrategy: {rollingUpdate: {partition: 2}}
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: a}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}},
    spec: {containers: [{name: main, image: a}]}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: manual}
spec: {updateStrategy: {type: OnDelete}, selector: {matchLabels: {app: agent}},
    template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: main, image: a}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: indexed}
spec: {completionMode: Indexed, completions: 3, parallelism: 2, backoffLimitPerIndex: 1,
    template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: policies}
spec:
  suspend: true
  podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec: {schedule: "0 0 * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: OnFailure,
    containers: [{name: main, image: a}]}}}}}
"""
