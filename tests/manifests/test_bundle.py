"""What `moorage manifests` makes: the shape of the objects, and the promises of the security notes."""

from __future__ import annotations

import pytest
import yaml

from moorage.app.configuration import configure
from moorage.manifests import DeployError, DeployOptions, kustomization, manifests, to_yaml
from moorage.manifests.bundle import default_config, warnings

OPTIONS = DeployOptions(image="registry.example/moorage:1")


def made(options=OPTIONS, text=""):
    text = text or default_config(options.name)
    return manifests(configure(text, discover=False), text, options)


def one(objects, kind, name=None):
    found = [o for o in objects if o["kind"] == kind and name in (None, o["metadata"]["name"])]
    assert len(found) == 1, (kind, name, len(found))
    return found[0]


def test_kinds():
    kinds = [obj["kind"] for obj in made() if "Cluster" not in obj["kind"]]
    assert kinds == [
        "Namespace", "ServiceAccount", "Role", "RoleBinding", "RoleBinding", "ConfigMap", "Deployment",
        "PodDisruptionBudget",
    ]  # fmt: skip


def test_pods_keep_the_restricted_standard():
    spec = one(made(), "Deployment")["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] >= 10000
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    assert not [volume for volume in spec["volumes"] if "hostPath" in volume]
    assert all("sizeLimit" in volume["emptyDir"] for volume in spec["volumes"] if "emptyDir" in volume)


def test_the_token_is_mounted_by_the_scheduler_only():
    objects = made()
    assert one(objects, "ServiceAccount")["automountServiceAccountToken"] is False
    assert one(objects, "Deployment")["spec"]["template"]["spec"]["automountServiceAccountToken"] is True


def test_every_binding_has_its_role_and_the_account():
    objects = made(DeployOptions(name="two", namespace="there", image="i"))
    roles = {(o["kind"], o["metadata"]["name"]) for o in objects if o["kind"] in ("Role", "ClusterRole")}
    roles.add(("Role", "extension-apiserver-authentication-reader"))
    bindings = [o for o in objects if o["kind"].endswith("RoleBinding")]
    assert len(bindings) == len(roles)
    for binding in bindings:
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in roles
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "two", "namespace": "there"}]


def test_the_lease_is_our_own_unless_the_file_names_one():
    objects = made()
    arguments = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--leader-elect-resource-name=moorage" in arguments
    assert "--leader-elect-resource-namespace=moorage" in arguments
    text = default_config("x") + "leaderElection: {resourceName: theirs, resourceNamespace: elsewhere}\n"
    objects = made(text=text)
    role = one(objects, "Role")
    assert role["metadata"]["namespace"] == "elsewhere"
    assert role["rules"][1]["resourceNames"] == ["theirs"]
    arguments = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert not [argument for argument in arguments if "leader-elect" in argument]


def test_no_election_no_rights_on_leases():
    text = default_config("x") + "leaderElection: {leaderElect: false}\n"
    assert not [o for o in made(text=text) if o["kind"] == "Role"]


def test_changed_configuration_replaces_the_pods():
    def annotation(text):
        return one(made(text=text), "Deployment")["spec"]["template"]["metadata"]["annotations"]

    assert annotation(default_config("a")) == annotation(default_config("a"))
    assert annotation(default_config("a")) != annotation(default_config("b"))


def test_configuration_arrives_as_written():
    text = default_config("x") + "# a comment that matters\n"
    stream = to_yaml(made(text=text))
    found = [obj for obj in yaml.safe_load_all(stream) if obj["kind"] == "ConfigMap"]
    assert found[0]["data"] == {"scheduler.yaml": text}


def test_yaml_says_the_same_as_the_objects():
    options = DeployOptions(image="i", service_monitor=True)
    assert list(yaml.safe_load_all(to_yaml(made(options)))) == made(options)


def test_one_replica_has_no_budget_that_blocks_draining():
    assert not [o for o in made(DeployOptions(image="i", replicas=1)) if o["kind"] == "PodDisruptionBudget"]


def test_service_monitor_finds_the_service():
    objects = made(DeployOptions(image="i", service_monitor=True))
    labels = one(objects, "Service")["metadata"]["labels"]
    wanted = one(objects, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= labels.items()


@pytest.mark.parametrize("space", ["kube-system", "default"])
def test_namespaces_of_the_cluster_are_not_created(space):
    objects = made(DeployOptions(image="i", namespace=space))
    assert not [o for o in objects if o["kind"] == "Namespace"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (DeployOptions(name="Not-A-Name", image="i"), "--name 'Not-A-Name'"),
        (DeployOptions(name="n" * 41, image="i"), "at most 40"),
        (DeployOptions(namespace="-x", image="i"), "--namespace '-x'"),
        (DeployOptions(image="two words"), "--image 'two words'"),
        (DeployOptions(), "--image ''"),
        (DeployOptions(image="i", replicas=0), "--replicas 0"),
    ],
)
def test_refused_options(options, message):
    with pytest.raises(DeployError, match=message):
        made(options, default_config("x"))


def test_warnings():
    options = DeployOptions(image="i")
    assert warnings(configure(default_config("mine"), discover=False), options) == []
    message = warnings(configure(default_config("default-scheduler"), discover=False), options)
    assert "only in place of kube-scheduler" in message[0]
    text = default_config("x") + "leaderElection: {leaderElect: false}\n"
    assert "leader election is off" in warnings(configure(text, discover=False), options)[0]


def test_kustomize_base_has_everything_once(tmp_path):
    objects = made(DeployOptions(image="i", service_monitor=True))
    kustomization(tmp_path / "base", objects)
    listing = yaml.safe_load((tmp_path / "base" / "kustomization.yaml").read_text())
    found = [obj for name in listing["resources"] for obj in yaml.safe_load_all((tmp_path / "base" / name).read_text())]
    key = lambda obj: (obj["kind"], obj["metadata"]["name"])  # noqa: E731
    assert sorted(found, key=key) == sorted(objects, key=key)
