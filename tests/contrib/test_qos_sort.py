"""QOSSort: priority, then the QoS class, then the time."""

import pytest

from moorage.api.pod import ResourceRequirements
from moorage.contrib.qos_sort import qos_class
from moorage.testing import Cluster, make_node, make_pod
from moorage.testing.builders import make_container

CPU, MEMORY = {"cpu": "1"}, {"memory": "1Gi"}
BOTH = {**CPU, **MEMORY}
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      queueSort:
        disabled: [{name: "*"}]
        enabled: [{name: QOSSort}]
"""


def container(requests=None, limits=None, name="c"):
    return make_container(name, requests=requests or {}, limits=limits or {})


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([container()], "BestEffort"),
        ([container({"cpu": "0"}, {"nvidia.com/gpu": "1"})], "BestEffort"),
        ([container({"cpu": "1"})], "Burstable"),
        ([container(BOTH, {"cpu": "1"})], "Burstable"),
        ([container(BOTH, BOTH)], "Guaranteed"),
        ([container(BOTH, {"cpu": "1000m", "memory": "1024Mi"})], "Guaranteed"),
        ([container(BOTH, BOTH), container(name="d")], "Burstable"),
        # The sums agree, but one container could use more than its share.
        ([container(CPU, CPU), container(MEMORY, MEMORY, "d")], "Burstable"),
    ],
    ids=[
        "nothing", "nothing that counts", "a request", "a limit missing", "all limited", "other spelling",
        "one container without", "sums that agree",
    ],
)  # fmt: skip
def test_the_class_follows_from_cpu_and_memory_of_every_container(containers, expected):
    assert qos_class(make_pod("p", containers=containers)) == expected


def test_init_containers_count_and_pod_level_resources_come_first():
    guaranteed, plain = container(BOTH, BOTH), container(name="init")
    assert qos_class(make_pod("p", containers=[guaranteed], init_containers=[plain])) == "Burstable"
    whole = ResourceRequirements(requests=BOTH, limits=BOTH)
    assert qos_class(make_pod("p", containers=[plain], resources=whole)) == "Guaranteed"


def test_what_the_api_server_wrote_is_taken():
    assert qos_class(make_pod("p", cpu="1", qos_class="Guaranteed")) == "Guaranteed"


def test_pods_of_equal_priority_are_tried_by_class_and_then_by_age():
    with Cluster(config=CONFIG, start=False) as cluster:
        cluster.add(make_node("a"))
        for name in ("plain-1", "plain-2"):
            cluster.add(make_pod(name))
        cluster.add(make_pod("burstable", cpu="1"))
        cluster.add(make_pod("guaranteed", containers=[container(BOTH, BOTH)]))
        cluster.add(make_pod("urgent", priority=10))
        cluster.start()
        cluster.settle()
        order = [record.pod for record in cluster.scheduler.records]
    assert [key.partition("/")[2] for key in order] == ["urgent", "guaranteed", "burstable", "plain-1", "plain-2"]
