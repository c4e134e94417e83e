"""Runs the example without a cluster: two nodes are too few for three pods, and a third lets them start.

cd examples/03-coscheduling && python run.py
"""

from pathlib import Path

import yaml

from moorage.testing import Cluster, make_node, make_pod

HERE = Path(__file__).parent


def main() -> None:
    group, job = yaml.safe_load_all((HERE / "gang.yaml").read_text())
    template = job["spec"]["template"]
    labels, scheduler = template["metadata"]["labels"], template["spec"]["schedulerName"]
    cpu = template["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    with Cluster(config=HERE / "scheduler.yaml") as cluster:
        cluster.add(group, make_node("a", cpu="4"), make_node("b", cpu="4"))
        for index in range(job["spec"]["parallelism"]):
            cluster.add(make_pod(f"train-{index}", labels=labels, scheduler_name=scheduler, cpu=cpu))
        cluster.settle(5)
        print(cluster.record("train-0").message.partition(". ")[0])
        cluster.add(make_node("c", cpu="4"))
        cluster.settle(15)
        for pod in cluster.pods():
            print(f"{pod.name}  {pod.spec.node_name}")


if __name__ == "__main__":
    main()
