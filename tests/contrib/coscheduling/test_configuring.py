"""Arguments of Coscheduling, the configuration that a tutorial has for it, and the kind that it brings."""

from __future__ import annotations

import pytest
import yaml

from moorage.app import checks
from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.contrib.coscheduling.args import PODGROUP_DEFINITION
from moorage.manifests import DeployOptions, manifests
from moorage.testing import Cluster, make_node
from tests.contrib.configs import enabling
from tests.contrib.coscheduling.gangs import cluster, gang, member, nodes, podgroup, refusal, started
from tests.docs.snippets import ROOT

TUTORIAL = """
apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: "REPLACE_ME_WITH_KUBE_CONFIG_PATH"
profiles:
- schedulerName: default-scheduler
  plugins:
    queueSort:
      enabled:
      - name: Coscheduling
      disabled:
      - name: "*"
    preFilter:
      enabled:
      - name: Coscheduling
    postFilter:
      enabled:
      - name: Coscheduling
    permit:
      enabled:
      - name: Coscheduling
    reserve:
      enabled:
      - name: Coscheduling
    postBind:
      enabled:
      - name: Coscheduling
  pluginConfig:
  - name: Coscheduling
    args:
      permitWaitingTimeSeconds: 10
      deniedPGExpirationTimeSeconds: 3
"""


def test_the_configuration_of_the_tutorial_schedules_a_group():
    with Cluster(config=TUTORIAL) as found:
        found.add(nodes(2), gang("train", 2))
        found.settle(3)
        assert started(found) == {"train": 2}


def test_a_group_that_failed_is_refused_for_the_denied_time_and_no_longer():
    with Cluster(config=TUTORIAL) as found:
        found.add(nodes(1), podgroup("train", 2), member("train", 0), member("train", 1))
        found.settle(2)
        assert "does not fit" in refusal(found, "train-0")
        assert "podGroup default/train failed recently" in refusal(found, "train-1")
        found.add(make_node("late", cpu="1"))
        found.settle(0.5)
        assert started(found) == {}
        found.settle(5)
        assert started(found) == {"train": 2}


def test_a_group_that_backs_off_is_not_tried_again_while_nothing_has_changed():
    with cluster({"podGroupBackoffSeconds": 2}) as found:
        found.add(nodes(1), podgroup("train", 2), member("train", 0), member("train", 1))
        found.settle(60)
        assert found.record("train-0").attempt == 1


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"permitWaitingTimeSeconds": -1}, "TimeSeconds: Invalid value: -1: must be zero or positive"),
        ({"podGroupBackoffSeconds": -1}, "podGroupBackoffSeconds: Invalid value: -1"),
        ({"deniedPGExpirationTimeSeconds": -1}, "deniedPGExpirationTimeSeconds: Invalid value: -1"),
        ({"podGroupRejectPercentage": 101}, "Percentage: Invalid value: 101: must be from 0 to 100"),
        ({"podGroupBackOffSeconds": 1}, "podGroupBackOffSeconds"),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_meant_are_named(args, problem):
    with pytest.raises(ConfigError, match=problem):
        configure(enabling("Coscheduling", args, without=("PrioritySort",)), discover=False)


def test_the_manifests_begin_with_the_kind_and_the_example_has_the_same():
    text = (ROOT / "examples" / "03-coscheduling" / "scheduler.yaml").read_text()
    configured = configure(text, discover=False)
    assert checks.find_mistakes(configured) == []
    [first, *others] = manifests(configured, text, DeployOptions(image="moorage:test"))
    assert first == PODGROUP_DEFINITION
    assert "CustomResourceDefinition" not in [obj["kind"] for obj in others]
    example = (ROOT / "examples" / "03-coscheduling" / "podgroups.yaml").read_text()
    assert yaml.safe_load(example) == PODGROUP_DEFINITION


def test_pods_of_a_group_without_an_object_are_refused_in_permit():
    with cluster() as found:
        found.add(nodes(1), member("train", 0))
        found.settle(2)
        assert "PodGroup not found" in refusal(found, "train-0")
