"""The flags of old that name a Policy, the scheduler and its lock."""

import json

import pytest

from moorage.api.errors import MoorageError
from moorage.config import ConfigError
from moorage.run.flags import parse
from moorage.run.options import configuration_of, options_of
from tests.config.builders import DATA, POLICY, PUBLISHED_POLICY
from tests.run.api_thread import ApiThread

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def policy(tmp_path):
    file = tmp_path / "policy.json"
    file.write_text(POLICY)
    return file


def configured(*args):
    return configuration_of(parse(args))


def names(configuration):
    """In the configuration and in the resolved profiles."""
    written = [profile.scheduler_name for profile in configuration.config.profiles]
    assert written == [profile.scheduler_name for profile in configuration.profiles]
    return written


def test_the_flags_of_old_in_one_command(policy):
    found = configured(
        "--port=0",
        "--leader-elect=true",
        "--lock-object-namespace=pingcap",
        "--lock-object-name=my-scheduler",
        "--scheduler-name=my-scheduler",
        f"--policy-config-file={policy}",
    )
    assert names(found) == ["my-scheduler"]
    election = found.config.leader_election
    assert (election.resource_namespace, election.resource_name) == ("pingcap", "my-scheduler")
    assert [extender.filter_verb for extender in found.config.extenders] == ["filter"]
    assert "NodePreferAvoidPodsPriority is dropped" in str(found.config.notes[-1])
    assert options_of(parse(["--port=0"])) == options_of(parse([]))


def test_a_policy_without_a_name_is_the_default_scheduler(policy):
    assert names(configured(f"--policy-config-file={policy}")) == ["default-scheduler"]


def test_the_newer_names_of_the_lock_win():
    found = configured("--leader-elect-resource-name=new", "--lock-object-name=old")
    assert found.config.leader_election.resource_name == "new"


def test_a_broken_policy_is_named_with_line_and_column(tmp_path):
    file = tmp_path / "policy.json"
    file.write_text(PUBLISHED_POLICY)
    with pytest.raises(ConfigError, match=r"policy\.json: 1 problem\n  not valid JSON: line 13, column 38"):
        configured(f"--policy-config-file={file}")


def test_one_configuration_is_named(policy):
    with pytest.raises(MoorageError, match="--config and --policy-config-file exclude each other"):
        configured(f"--policy-config-file={policy}", f"--config={policy}")


@pytest.mark.parametrize("args", [[f"--config={DATA / 'minimal-v1beta2.yaml'}"], []], ids=["a file", "no file"])
def test_the_scheduler_name_is_that_of_the_only_profile(args):
    assert names(configured("--scheduler-name=lowcpu-scheduler", *args)) == ["lowcpu-scheduler"]


def test_the_scheduler_name_cannot_be_that_of_several_profiles():
    file = DATA / "two-profiles-v1beta2.yaml"
    with pytest.raises(MoorageError, match=r"several profiles \(default-scheduler, no-scoring-scheduler\)"):
        configured("--scheduler-name=x", f"--config={file}")


def test_a_policy_in_a_config_map(tmp_path):
    with ApiThread(tmp_path) as api:

        def put(name, data):
            path = "/api/v1/namespaces/kube-system/configmaps"
            api.request("POST", path, {"metadata": {"name": name}, "data": data})

        def read(name, *flags):
            return configured(f"--kubeconfig={api.kubeconfig}", f"--policy-configmap={name}", *flags)

        put("policy", {"policy.cfg": json.dumps({"predicates": [{"name": "HostName"}], "priorities": []})})
        put("other", {"policy.json": "{}"})
        put("broken", {"policy.cfg": PUBLISHED_POLICY})
        (profile,) = read("policy", "--scheduler-name=mine").profiles
        assert profile.scheduler_name == "mine"
        assert [ref.name for ref in profile.points["filter"]][:3] == [
            "NodeUnschedulable",
            "NodeName",
            "TaintToleration",
        ]
        with pytest.raises(MoorageError, match=r"kube-system/other does not have the key policy\.cfg"):
            read("other")
        with pytest.raises(ConfigError, match=r"configmap kube-system/broken, policy\.cfg: 1 problem"):
            read("broken")
        with pytest.raises(MoorageError, match=r'cannot read configmap default/policy: .*"policy" not found'):
            read("policy", "--policy-configmap-namespace=default")
