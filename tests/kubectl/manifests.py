"""Manifests for the tests, as users write them."""

from __future__ import annotations

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {team: blue}
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: main
        image: web:1
        ports: [{containerPort: 80}]
        env: [{name: MODE, value: fast}]
        resources: {requests: {cpu: 100m, memory: 64Mi}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: one
  labels: {app: one}
spec:
  containers: [{name: main, image: web}]
"""
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: fast}
"""
PICKY_POD = """
apiVersion: v1
kind: Pod
metadata: {name: picky}
spec:
  nodeSelector: {disk: ssd}
  containers: [{name: main, image: web}]
"""
WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {kind: Widget, plural: widgets, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Mode, type: string, jsonPath: .spec.mode, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
    schema:
      openAPIV3Schema:
        type: object
        description: A thing that has a size.
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 0, description: How large it is.}
              mode: {type: string, enum: [fast, slow], default: fast}
          status:
            type: object
            properties:
              size: {type: integer}
"""
WIDGET = """
apiVersion: example.io/v1
kind: Widget
metadata: {name: first}
spec: {size: 3}
"""
