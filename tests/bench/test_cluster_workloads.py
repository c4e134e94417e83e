"""Workloads of `moorage bench cluster`: what is read, what is refused, and with which words."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.bench.cluster.templates import Template, WorkloadError, fill
from moorage.bench.cluster.workloads import START, ClusterWorkload, read_workloads

POD = "metadata: {generateName: pod-, labels: {index: 'i-{{.Index}}'}}\nspec: {containers: [{name: c, image: pause}]}\n"
NODES = {"opcode": "createNodes", "countParam": "$initNodes"}
MEASURED = {"opcode": "createPods", "countParam": "$measurePods", "collectMetrics": True}


def case(*steps: dict[str, Any], variant: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    sizes = {"name": "5Nodes", "params": {"initNodes": 5, "measurePods": 7, "pause": "2s"}}
    return {"name": "Basic", "workloadTemplate": list(steps), "workloads": [{**sizes, **(variant or {})}], **more}


def read(folder: Path, *cases: dict[str, Any], **options: Any) -> list[ClusterWorkload]:
    (folder / "pod.yaml").write_text(POD)
    file = folder / "performance-config.yaml"
    file.write_text(yaml.safe_dump(list(cases)))
    return read_workloads(file, **options)


def test_the_built_in_workloads_follow_nodes_and_pods() -> None:
    found = {workload.name: workload for workload in read_workloads(params={"nodes": 20, "pods": 60})}
    assert {name: (found[name].nodes, found[name].measured) for name in ("plain", "mixed", "preemption")} == {
        "plain": (20, 60),
        "mixed": (20, 60),
        "preemption": (20, 20),
    }
    assert found["preemption"].running == 80
    assert len(found) == 9
    assert not set(START) & set(found)
    groups = [pod["metadata"]["labels"]["app"] for pod in map(found["anti-affinity"].steps[-1].render, range(60))]
    assert max(map(groups.count, groups)) == 20, "a group that is larger than the cluster would not fit"


def test_another_size_has_another_digest_and_the_same_nodes() -> None:
    [small], [large] = (read_workloads(params={"nodes": 5, "pods": pods}, names=["plain"]) for pods in (5, 6))
    assert small.digest != large.digest
    assert small.steps[0].digest == large.steps[0].digest


def test_a_file_of_scheduler_perf_is_read_as_it_is(tmp_path) -> None:
    steps = (
        NODES | {"uniqueNodeLabelStrategy": {"labelKey": "slot"}},
        {"opcode": "createNamespaces", "prefix": "sched", "count": 2},
        {"opcode": "createPodSets", "count": 2, "namespacePrefix": "sched", "createPodsOp": {"count": 3}},
        {"opcode": "createPods", "count": 4, "skipWaitToCompletion": True},
        {"opcode": "churn", "mode": "recreate", "number": 1, "templatePaths": ["pod.yaml"], "intervalMilliseconds": 10},
        {"opcode": "barrier", "stageRequirement": "Attempted"},
        {"opcode": "sleep", "durationParam": "$pause"},
        MEASURED,
    )  # fmt: skip
    one = case(*steps, defaultPodTemplatePath="pod.yaml", labels=["fast"], variant={"threshold": 270})
    [workload] = read(tmp_path, one, params={"measurePods": "9"})
    assert (workload.name, workload.nodes, workload.running, workload.measured) == ("Basic/5Nodes", 5, 6, 9)
    assert [step.fields["namespace"] for step in workload.steps[2:4]] == ["sched-0", "sched-1"]
    assert workload.steps[-2].fields["seconds"] == 2
    assert workload.steps[-1].render(8)["metadata"]["labels"] == {"index": "i-8"}


@pytest.mark.parametrize(
    ("steps", "more", "message"),
    [
        ([NODES, {"opcode": "deletePods", "namespace": "x"}, MEASURED], {}, r"step 1 \(deletePods\) has an opcode"),
        ([NODES, MEASURED | {"steadyState": True}], {}, r"\(createPods\) has steadyState, .* --ignore steadyState"),
        ([NODES, MEASURED], {"variant": {"featureGates": {"A": True}}}, "the workload has featureGates"),
        ([NODES, MEASURED], {"schedulerConfigPath": "x.yaml"}, "the case has schedulerConfigPath"),
        ([NODES, {"opcode": "barrier"}, NODES, MEASURED], {}, r"step 2 \(createNodes\) creates objects after step 1"),
        ([NODES, MEASURED, {"opcode": "sleep", "duration": "1s"}], {}, "step 2 .* comes after the measured pods"),
        ([NODES], {}, "fewer than two pods"),
        ([NODES | {"countParam": "$none"}, MEASURED], {}, r"uses the parameter \$none"),
        ([NODES, {"opcode": "createPods"}, MEASURED], {}, "needs a number in count or countParam"),
        ([NODES, {"opcode": "sleep", "duration": "soon"}, MEASURED], {}, "write 500ms or 10s"),
        ([NODES, MEASURED | {"podTemplatePath": "none.yaml"}], {}, "none.yaml: No such file"),
        ([NODES, MEASURED | {"podTemplate": {"a": "{{len .Index}}"}}], {}, r"cannot evaluate \{\{len .Index\}\}"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_named(tmp_path, steps, more, message) -> None:
    with pytest.raises(WorkloadError, match=message):
        read(tmp_path, case(*steps, **more))


def test_fields_can_be_ignored_by_name(tmp_path) -> None:
    one = case(NODES, MEASURED | {"steadyState": True}, {"opcode": "deletePods"}, variant={"featureGates": {}})
    [workload] = read(tmp_path, one, ignore=["featureGates", "steadyState", "deletePods"])
    assert workload.measured == 7


def test_an_unknown_workload_and_a_bad_file_are_reported(tmp_path) -> None:
    with pytest.raises(WorkloadError, match="no workload 'nope'; known workloads are Basic/5Nodes"):
        read(tmp_path, case(NODES, MEASURED), names=["nope"])
    with pytest.raises(WorkloadError, match="No such file"):
        read_workloads(tmp_path / "none.yaml")
    (tmp_path / "text.yaml").write_text("text")
    with pytest.raises(WorkloadError, match="not a list of cases"):
        read_workloads(tmp_path / "text.yaml")


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("a-{{.Index}}-{{ .Count }}", "a-7-10"),
        ("{{AddInt 50 (Mod .Index 4)}}m", "53m"),
        ("{{DivideInt .Index 2}} {{MultiplyInt 2 3}} {{SubtractInt 9 .Index}} {{Min .Index 3}}", "3 6 2 3"),
        ("none", "none"),
    ],
)
def test_actions_are_replaced(text, filled) -> None:
    assert fill(text, {"Index": 7, "Count": 10}) == filled


@pytest.mark.parametrize("action", ["", ".Other", "mod .Index", "mod .Index 2 3", "div 1 0", "(Mod 1 2", "if .Index"])
def test_other_actions_are_refused(action) -> None:
    with pytest.raises(WorkloadError, match="cannot evaluate"):
        fill(f"{{{{{action}}}}}", {"Index": 7})


def test_numbers_in_a_template_file_stay_numbers(tmp_path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("spec: {port: {{.Index}}, name: '{{.Index}}'}")
    assert Template.read(file).render({"Index": 8}) == {"spec": {"port": 8, "name": "8"}}
