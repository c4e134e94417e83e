"""The workload: configuration, Deployment, disruption budget, Service and ServiceMonitor."""

from __future__ import annotations

import hashlib
from typing import Any

from moorage.api.node import HOSTNAME, ZONE
from moorage.manifests.options import DeployOptions
from moorage.manifests.rbac import metadata

Json = dict[str, Any]
CONFIG_FILE = "scheduler.yaml"
CONFIG_FOLDER = "/etc/moorage"
TLS_FOLDER = "/etc/moorage-tls"
USER = 10001
"""A user id that no host uses."""
TERMINATION_SECONDS = 40
"""Longer than a stopping scheduler needs to finish its bindings (20 s) and to release the lease."""


def namespace(options: DeployOptions) -> Json:
    """Return a namespace that admits only pods of the restricted security standard."""
    standard = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": options.namespace, "labels": {**options.labels, **standard}},
    }


def config_map(options: DeployOptions, text: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(options, f"{options.name}-config"),
        "data": {CONFIG_FILE: text},
    }


def deployment(options: DeployOptions, text: str, arguments: list[str]) -> Json:
    """Return the Deployment; its pods are replaced when the configuration `text` changes."""
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(options, options.name),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": options.selector},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": options.labels, "annotations": {"moorage/config-checksum": checksum}},
                "spec": _pod_spec(options, arguments),
            },
        },
    }


def _pod_spec(options: DeployOptions, arguments: list[str]) -> Json:
    return {
        "serviceAccountName": options.name,
        "automountServiceAccountToken": True,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": TERMINATION_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {"podAntiAffinity": _apart(options, HOSTNAME)},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": options.selector},
            }
        ],
        "containers": [_container(options, arguments)],
        "volumes": [
            {"name": "config", "configMap": {"name": f"{options.name}-config"}},
            {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
            *([{"name": "tls", "secret": {"secretName": options.tls_secret}}] if options.tls_secret else ()),
        ],
    }


def _apart(options: DeployOptions, topology: str) -> Json:
    """Prefer different nodes for replicas, but do not require them: a cluster may have one node only."""
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": options.selector}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def _container(options: DeployOptions, arguments: list[str]) -> Json:
    return {
        "name": "moorage",
        "image": options.image,
        "imagePullPolicy": "IfNotPresent",
        "args": arguments,
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"name": "https", "containerPort": options.port}],
        "startupProbe": _probe("/livez", period=2, failures=60),
        "livenessProbe": _probe("/livez", period=10, failures=6),
        "readinessProbe": _probe("/readyz", period=5, failures=3),
        "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
            *([{"name": "tls", "mountPath": TLS_FOLDER, "readOnly": True}] if options.tls_secret else ()),
        ],
    }


def _probe(path: str, *, period: int, failures: int) -> Json:
    return {
        "httpGet": {"path": path, "port": "https", "scheme": "HTTPS"},
        "periodSeconds": period,
        "failureThreshold": failures,
        "timeoutSeconds": 5,
    }


def disruption_budget(options: DeployOptions) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(options, options.name),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": options.selector}},
    }


def service(options: DeployOptions, name: str) -> Json:
    ports = [{"name": "https", "port": options.port, "targetPort": "https"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(options, name),
        "spec": {"selector": options.selector, "ports": ports},
    }


def scraping(options: DeployOptions) -> list[Json]:
    """Return a Service for all replicas, the ServiceMonitor, and the role for a scraper."""
    headless = service(options, f"{options.name}-metrics")
    headless["spec"] = {"clusterIP": "None", **headless["spec"]}
    reader = f"{options.name}-metrics-reader"
    return [
        headless,
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": reader, "labels": options.labels},
            "rules": [{"nonResourceURLs": ["/metrics", "/metrics/*"], "verbs": ["get"]}],
        },
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": metadata(options, options.name),
            "spec": {
                "selector": {"matchLabels": options.selector},
                "endpoints": [
                    {
                        "port": "https",
                        "scheme": "https",
                        "path": "/metrics",
                        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                        "tlsConfig": {"insecureSkipVerify": True},
                    }
                ],
            },
        },
    ]
