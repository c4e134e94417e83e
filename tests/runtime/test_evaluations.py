"""What is remembered is never older, nor about another pod, than it may be."""

from __future__ import annotations

import pytest

from mooring.framework import NODE, FilterPlugin, Status
from mooring.testing import make_nodes, make_pod

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    filter: {enabled: [{name: pinned}]}
"""


class Pinned(FilterPlugin):
    """Reads an annotation, which no template and no other plugin's signature covers."""

    name = "pinned"

    def filter(self, state, pod, node):
        return None if pod.annotations.get("on") == node.name else Status.unschedulable("elsewhere")

    def reads(self, pod):
        return (NODE,)


class Signed(Pinned):
    def sign(self, pod):
        return pod.annotations.get("on", "")


class Unsigned(Pinned):
    def sign(self, pod):
        return None


@pytest.mark.parametrize("plugin", [Pinned, Signed, Unsigned])
def test_pods_that_differ_in_what_a_plugin_reads_do_not_share_its_answer(mooring_cluster, plugin):
    cluster = mooring_cluster(config=CONFIG, plugins=[plugin])
    cluster.add(make_nodes(2))
    cluster.settle()
    for number in range(8):
        on = f"node-{number // 4}"
        cluster.add(make_pod(f"p{number}", annotations={"on": on}))
        cluster.settle()
        assert cluster.node_of(f"p{number}") == on
