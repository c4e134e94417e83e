"""The package without a cluster: the pod of test-scheduler.yaml waits, then node1 gets the label.

cd examples/02-sample-package && python run.py
"""

import sys
from pathlib import Path

import yaml

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "src"))

from sample_scheduler.plugin import Sample, Sample2  # noqa: E402

from moorage.testing import Cluster, make_node  # noqa: E402


def main() -> None:
    template = yaml.safe_load((HERE / "test-scheduler.yaml").read_text())["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "test-scheduler", **template["metadata"]},
        "spec": template["spec"],
    }
    with Cluster(config=HERE / "scheduler-config.yaml", plugins=[Sample, Sample2]) as cluster:
        cluster.add(make_node("node1"), make_node("node2"))
        cluster.settle()
        cluster.add(pod)
        cluster.settle()
        cluster.label_node("node1", cpu="true")
        cluster.settle()
        for event in cluster.events("test-scheduler"):
            print(f"{event.type}  {event.reason}  {event.note}")


if __name__ == "__main__":
    main()
