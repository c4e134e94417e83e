"""Runs the example without a cluster: the pod waits, then node1 gets the label.

cd examples/01-sample-plugin && python run.py
"""

from pathlib import Path

import yaml
from sample import Sample

from moorage.api.resources import PODS
from moorage.testing import Cluster, make_node

HERE = Path(__file__).parent


def main() -> None:
    with Cluster(config=HERE / "scheduler.yaml", plugins=[Sample]) as cluster:
        cluster.add(make_node("k8s"), make_node("node1"))
        cluster.add(make_node("node2", taints=["node.kubernetes.io/unreachable:NoSchedule"]))
        cluster.add(make_node("node3", unschedulable=True))
        cluster.settle()
        pod = yaml.safe_load((HERE / "pod.yaml").read_text())
        cluster.run(cluster.client.create(PODS, {**pod, "metadata": {**pod["metadata"], "namespace": "default"}}))
        cluster.settle()
        cluster.label_node("node1", cpu="true")
        cluster.settle()
        for event in cluster.events("test-scheduler"):
            print(f"{event.type}  {event.reason}  {event.note}")


if __name__ == "__main__":
    main()
