"""Answer the What-if page on a copy of a cluster that was read. This takes a while, so call it on a thread."""

from __future__ import annotations

import asyncio

from moorage.api.resources import PODS
from moorage.api.versions import upgrade_path
from moorage.app.configuration import Configuration
from moorage.explain.upgrading import preview
from moorage.explain.versioned import ConfigurationText
from moorage.explain.what_if import ClusterCopy, WhatIfOutcome, ended_by
from moorage.snapshots.cluster import ClusterObjects
from moorage.snapshots.manifests import parse_manifest
from moorage.web.source import Json, Question


def what_if(cluster: ClusterObjects, configured: Configuration, question: Question) -> Json:
    """Answer a question of `web.source.WhatIfSource`."""
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


def upgrade(cluster: ClusterObjects, configured: Configuration, to: str) -> Json:
    """Preview an upgrade with the configuration that was read, and without its extenders."""
    given = ConfigurationText.of(configured, extenders=False)
    return asyncio.run(preview(cluster, given, upgrade_path(to))).to_dict()


def _present(cluster: ClusterObjects, outcome: WhatIfOutcome) -> dict[str, str]:
    """Return the present node of each pod of the outcome that exists; empty for a pending one."""
    asked = {*outcome.placed, *outcome.pending, *outcome.preempted, *outcome.moved, *outcome.lost}
    return {pod.key: pod.spec.node_name for pod in cluster.objects.get(PODS, ()) if pod.key in asked}
