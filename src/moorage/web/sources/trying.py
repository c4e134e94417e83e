"""Answer the What-if page on a copy of a cluster that was read."""

from __future__ import annotations

from moorage.api.resources import PODS
from moorage.app.configuration import Configuration
from moorage.explain.what_if import ClusterCopy, WhatIfOutcome, ended_by
from moorage.snapshots.cluster import ClusterObjects
from moorage.snapshots.manifests import parse_manifest
from moorage.web.source import Json, Question


def what_if(cluster: ClusterObjects, configured: Configuration, question: Question) -> Json:
    """Answer a question of `web.source.WhatIfSource`. This takes a while, so call it on a thread."""
    manifests = parse_manifest(question.manifests, "the manifest")
    with ClusterCopy(cluster, configured) as copy:
        if question.add_nodes:
            copy.add_nodes(question.add_nodes, question.like)
        for node in question.drain:
            copy.drain(node)
        copy.add(manifests)
        outcome = copy.settle()
        why = ended_by(copy, outcome)
        return {
            **outcome.to_dict(),
            "present": _present(cluster, outcome),
            "explanation": None if why is None else why.to_dict(),
        }


def _present(cluster: ClusterObjects, outcome: WhatIfOutcome) -> dict[str, str]:
    """Return the present node of each pod of the outcome that exists; empty for a pending one."""
    asked = {*outcome.placed, *outcome.pending, *outcome.preempted, *outcome.moved, *outcome.lost}
    return {pod.key: pod.spec.node_name for pod in cluster.objects.get(PODS, ()) if pod.key in asked}
