"""apply, create, edit, patch, replace, label, annotate, run, expose, set: how users change things."""

from __future__ import annotations

import shlex
import stat
from pathlib import Path

import pytest
import yaml

from tests.kubectl.manifests import CONFIG_MAP, DEPLOYMENT, PICKY_POD, POD
from tests.kubectl.runner import Kubectl

pytestmark = pytest.mark.slow


def apply(kubectl: Kubectl, manifest: str, *options: str) -> str:
    return kubectl("apply", "-f", "-", *options, stdin=manifest)


# apply


def test_apply_creates_leaves_alone_and_changes(kubectl):
    assert apply(kubectl, DEPLOYMENT) == "deployment.apps/web created\n"
    assert apply(kubectl, DEPLOYMENT) == "deployment.apps/web unchanged\n"
    changed = DEPLOYMENT.replace("web:1", "web:2").replace("replicas: 2", "replicas: 3")
    assert apply(kubectl, changed) == "deployment.apps/web configured\n"
    deployment = yaml.safe_load(kubectl("get", "deploy", "web", "-o", "yaml"))
    assert deployment["spec"]["replicas"] == 3
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "web:2"
    assert container["env"] == [{"name": "MODE", "value": "fast"}]


def test_apply_merges_lists_by_their_keys_and_keeps_what_others_wrote(kubectl):
    apply(kubectl, DEPLOYMENT)
    kubectl("set", "env", "deployment/web", "EXTRA=1")
    kubectl("label", "deployment", "web", "owner=me")
    apply(kubectl, DEPLOYMENT.replace("value: fast", "value: slow"))
    deployment = yaml.safe_load(kubectl("get", "deploy", "web", "-o", "yaml"))
    env = {e["name"]: e["value"] for e in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env == {"MODE": "slow", "EXTRA": "1"}
    assert deployment["metadata"]["labels"] == {"team": "blue", "owner": "me"}


def test_apply_removes_what_it_applied_before(kubectl):
    apply(kubectl, DEPLOYMENT)
    apply(kubectl, DEPLOYMENT.replace("labels: {team: blue}", "labels: {}"))
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.labels}") in ("", "{}")


def test_apply_of_a_directory_and_of_a_list(kubectl, tmp_path):
    (tmp_path / "a.yaml").write_text(DEPLOYMENT)
    (tmp_path / "b.yaml").write_text(CONFIG_MAP + "---" + POD)
    out = kubectl("apply", "-f", str(tmp_path))
    assert out == "deployment.apps/web created\nconfigmap/settings created\npod/one created\n"
    items = kubectl("get", "configmaps", "--field-selector", "metadata.name=settings", "-o", "yaml")
    assert apply(kubectl, items) == "configmap/settings configured\n"
    kubectl("delete", "configmap", "settings")
    items = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(CONFIG_MAP)]})
    assert apply(kubectl, items) == "configmap/settings created\n"


def test_a_list_is_validated_too(kubectl):
    wrong = {"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(POD.replace("containers", "contaners"))]}
    assert "contaners" in kubectl.refused("apply", "-f", "-", stdin=yaml.safe_dump(wrong))


def test_dry_run_changes_nothing(kubectl):
    assert apply(kubectl, DEPLOYMENT, "--dry-run=server") == "deployment.apps/web created (server dry run)\n"
    assert "NotFound" in kubectl.refused("get", "deploy", "web")
    apply(kubectl, DEPLOYMENT)
    scaled = DEPLOYMENT.replace("replicas: 2", "replicas: 5")
    assert apply(kubectl, scaled, "--dry-run=server") == "deployment.apps/web configured (server dry run)\n"
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "2"


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (
            DEPLOYMENT.replace("replicas", "replicass"),
            'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
            'unknown field "spec.replicass"',
        ),
        (
            DEPLOYMENT.replace("image: web:1", "imag: web:1"),
            'strict decoding error: unknown field "spec.template.spec.containers[0].imag"',
        ),
        (DEPLOYMENT.replace("replicas: 2", "replicas: two"), "spec.replicas"),
        (DEPLOYMENT.replace("replicas: 2", "replicas: -2"), "spec.replicas: Invalid value: -2"),
        (DEPLOYMENT.replace("100m", "lots"), "spec.template.spec.containers[0].resources.requests"),
        (DEPLOYMENT.replace("name: web", "name: Web_"), 'metadata.name: Invalid value: "Web_"'),
        (DEPLOYMENT.replace("labels: {app: web}", "labels: {app: db}"), "`selector` does not match template `labels`"),
        (DEPLOYMENT.replace("apps/v1", "apps/v9"), 'no matches for kind "Deployment" in version "apps/v9"'),
    ],
    ids=["field", "deep field", "type", "range", "quantity", "name", "selector", "version"],
)
def test_mistakes_are_named_and_nothing_is_created(kubectl, wrong, problem):
    assert problem in kubectl.refused("apply", "-f", "-", stdin=wrong)
    assert kubectl.run("get", "deploy").out == ""


def test_validation_can_warn_or_be_off(kubectl):
    result = kubectl.run("apply", "-f", "-", "--validate=warn", stdin=POD.replace("spec:", "spec:\n  colour: red"))
    assert result.out == "pod/one created\n"
    assert 'Warning: unknown field "spec.colour"' in result.err
    other = POD.replace("name: one", "name: two").replace("spec:", "spec:\n  colour: red")
    result = kubectl.run("apply", "-f", "-", "--validate=false", stdin=other)
    assert (result.out, result.err) == ("pod/two created\n", "")


def test_a_patch_with_an_unknown_field_is_refused(kubectl):
    apply(kubectl, DEPLOYMENT)
    err = kubectl.refused("apply", "-f", "-", stdin=DEPLOYMENT.replace("replicas", "replicass"))
    assert 'strict decoding error: unknown field "spec.replicass"' in err


def test_server_side_apply_says_what_to_do_instead(kubectl):
    assert "without --server-side" in kubectl.refused("apply", "--server-side", "-f", "-", stdin=POD)


def test_diff(kubectl):
    apply(kubectl, DEPLOYMENT)
    assert kubectl.run("diff", "-f", "-", stdin=DEPLOYMENT).code == 0
    result = kubectl.run("diff", "-f", "-", stdin=DEPLOYMENT.replace("web:1", "web:2"))
    assert result.code == 1
    assert "-        image: web:1" in result.out
    assert "+        image: web:2" in result.out


# create


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("deployment web --image=web:1 --replicas=2 --port=80", "deployment.apps/web created"),
        ("configmap cm --from-literal=a=b", "configmap/cm created"),
        ("secret generic s --from-literal=a=b", "secret/s created"),
        ("serviceaccount sa", "serviceaccount/sa created"),
        ("service clusterip svc --tcp=80:8080", "service/svc created"),
        ("service nodeport np --tcp=80", "service/np created"),
        ("job j --image=web", "job.batch/j created"),
        ("cronjob cj --image=web '--schedule=*/5 * * * *'", "cronjob.batch/cj created"),
        ("role r --verb=get --resource=pods", "role.rbac.authorization.k8s.io/r created"),
        ("rolebinding rb --role=r --serviceaccount=default:sa", "rolebinding.rbac.authorization.k8s.io/rb created"),
        ("quota q --hard=pods=10", "resourcequota/q created"),
        ("poddisruptionbudget pdb --min-available=50% --selector=a=b", "poddisruptionbudget.policy/pdb created"),
        ("ingress i --rule=host/path=svc:80", "ingress.networking.k8s.io/i created"),
    ],
    ids=lambda text: text.split()[0],
)
def test_create(kubectl, arguments, said):
    assert kubectl("create", *shlex.split(arguments)) == f"{said}\n"
    assert "already exists" in kubectl.refused("create", *shlex.split(arguments))


def test_create_cluster_wide_kinds(admin):
    assert admin("create", "namespace", "made") == "namespace/made created\n"
    assert admin("create", "priorityclass", "urgent", "--value=1000") == (
        "priorityclass.scheduling.k8s.io/urgent created\n"
    )
    assert admin.run("get", "pc", "urgent").rows()[1][:3] == ["urgent", "1000", "false"]
    assert admin("create", "clusterrole", "seer", "--verb=get", "--resource=nodes").endswith("seer created\n")
    assert admin("delete", "namespace/made", "priorityclass/urgent", "clusterrole/seer").count("deleted") == 3


def test_create_in_a_namespace_that_is_not_there(admin):
    assert 'namespaces "nowhere" not found' in admin.refused("create", "configmap", "x", "-n", "nowhere")


def test_run_and_expose(kubectl):
    assert kubectl("run", "box", "--image=web", "--port=80") == "pod/box created\n"
    assert kubectl("expose", "pod", "box", "--port=80") == "service/box exposed\n"
    row = kubectl.run("get", "service", "box", "-o", "wide").rows()[1]
    assert row[1] == "ClusterIP"
    assert row[4] == "80/TCP"
    assert row[6] == "run=box"


def test_create_token(kubectl):
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot").strip()
    who = kubectl("auth", "whoami", "--token", token)
    assert f"system:serviceaccount:{kubectl.namespace}:robot" in who


# edit, patch, replace


def editor(folder: Path, old: str, new: str) -> str:
    script = folder / "editor"
    script.write_text(f"#!/bin/sh\nsed -i 's/{old}/{new}/' \"$1\"\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def test_edit(kubectl, tmp_path):
    apply(kubectl, DEPLOYMENT)
    said = kubectl("edit", "deployment", "web", KUBE_EDITOR=editor(tmp_path, "image: web:1", "image: web:9"))
    assert said == "deployment.apps/web edited\n"
    assert "web:9" in kubectl("get", "deploy", "web", "-o", "yaml")
    said = kubectl.run("edit", "deployment", "web", KUBE_EDITOR=editor(tmp_path, "nothing", "nothing"))
    assert "Edit cancelled, no changes made." in said.err + said.out


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("strategic", '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"web:5"}]}}}}'),
        (
            "merge",
            '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"web:5","env":'
            '[{"name":"MODE","value":"fast"}]}]}}}}',
        ),
        ("json", '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"web:5"}]'),
    ],
)
def test_patch(kubectl, kind, patch):
    apply(kubectl, DEPLOYMENT)
    said = kubectl("patch", "deployment", "web", "--type", kind, "-p", patch)
    assert said == "deployment.apps/web patched\n"
    container = yaml.safe_load(kubectl("get", "deploy", "web", "-o", "yaml"))["spec"]["template"]["spec"]["containers"][
        0
    ]
    assert container["image"] == "web:5"
    assert container["env"] == [{"name": "MODE", "value": "fast"}]


def test_a_patch_that_changes_nothing_says_so(kubectl):
    apply(kubectl, CONFIG_MAP)
    assert kubectl("patch", "cm", "settings", "-p", '{"data":{"mode":"fast"}}') == (
        "configmap/settings patched (no change)\n"
    )


def test_patch_of_the_status(kubectl):
    apply(kubectl, PICKY_POD)
    kubectl("patch", "pod", "picky", "--subresource=status", "-p", '{"status":{"message":"hello"}}')
    assert kubectl("get", "pod", "picky", "-o", "jsonpath={.status.message}") == "hello"


def test_replace(kubectl):
    missing = kubectl.refused("replace", "-f", "-", stdin=CONFIG_MAP)
    assert 'configmaps "settings" not found' in missing
    apply(kubectl, CONFIG_MAP)
    assert kubectl("replace", "-f", "-", stdin=CONFIG_MAP.replace("fast", "slow")) == "configmap/settings replaced\n"
    assert kubectl("get", "cm", "settings", "-o", "jsonpath={.data.mode}") == "slow"
    forced = kubectl("replace", "--force", "-f", "-", stdin=CONFIG_MAP)
    assert forced.endswith("configmap/settings replaced\n")


def test_a_write_with_an_old_version_is_a_conflict(kubectl):
    apply(kubectl, CONFIG_MAP)
    old = kubectl("get", "cm", "settings", "-o", "yaml")
    kubectl("annotate", "cm", "settings", "a=b")
    refused = kubectl.refused("replace", "-f", "-", stdin=old)
    assert "the object has been modified; please apply your changes to the latest version" in refused


def test_label_and_annotate(kubectl):
    apply(kubectl, POD)
    assert kubectl("label", "pod", "one", "tier=front") == "pod/one labeled\n"
    assert "already has a value (front)" in kubectl.refused("label", "pod", "one", "tier=back")
    assert kubectl("label", "pod", "one", "tier=back", "--overwrite") == "pod/one labeled\n"
    assert kubectl("label", "pod", "one", "tier-") == "pod/one unlabeled\n"
    assert kubectl("annotate", "pod", "one", "note=hello there") == "pod/one annotated\n"
    assert kubectl("get", "pod", "one", "-o", "jsonpath={.metadata.annotations.note}") == "hello there"
    assert "Invalid value" in kubectl.refused("label", "pod", "one", "bad key=x")


def test_immutable_fields_are_refused(kubectl):
    apply(kubectl, DEPLOYMENT)
    moved = DEPLOYMENT.replace("{app: web}", "{app: other}")
    assert "field is immutable" in kubectl.refused("apply", "-f", "-", stdin=moved)
    apply(kubectl, POD)
    refused = kubectl.refused("patch", "pod", "one", "-p", '{"spec":{"restartPolicy":"Never"}}')
    assert "pod updates may not change fields other than" in refused


def test_set_image(kubectl):
    apply(kubectl, DEPLOYMENT)
    assert kubectl("set", "image", "deployment/web", "main=web:7") == "deployment.apps/web image updated\n"
    assert "web:7" in kubectl("get", "deploy", "web", "-o", "wide")
    assert kubectl("set", "resources", "deployment/web", "--requests=cpu=200m").endswith(
        "resource requirements updated\n"
    )
