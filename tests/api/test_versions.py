"""The table of versions, and the requests of pods in the middle of a resize by version."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from moorage.api.errors import MoorageError
from moorage.api.pod import Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus, ResourceRequirements
from moorage.api.requests import pod_requests
from moorage.api.versions import (
    ANY_PLUGIN,
    BEHAVIOURS,
    DEFAULT_BEHAVIOUR,
    DEFAULT_VERSION,
    REMOVED_KINDS,
    Behaviour,
    behaviour_of,
    upgrade_path,
)
from moorage.plugins.registry import DEFAULT
from moorage.testing.builders import make_pod


def test_the_versions_differ_in_every_field():
    older, newer = BEHAVIOURS.values()
    same = [
        field.name
        for field in dataclasses.fields(Behaviour)
        if getattr(older, field.name) == getattr(newer, field.name)
    ]
    assert same == []


def test_every_field_says_what_changes_and_whose_answers_depend_on_it():
    older, newer = BEHAVIOURS.values()
    changes = older.changes_to(newer)
    assert [change.field for change in changes] == [field.name for field in dataclasses.fields(Behaviour)]
    assert len({change.text for change in changes}) == len(changes)
    for change in changes:
        assert change.text[0].isupper() or change.text.startswith(("kube-scheduler ", "plugin_")), change
        assert change.text.endswith("."), change
        assert 20 < len(change.text) <= 200, change
        assert change.value == getattr(newer, change.field)
    plugins = {cls.name for cls in DEFAULT}
    assert {change.decides for change in changes} - plugins == {"", ANY_PLUGIN}
    assert older.changes_to(older) == []


def test_removed_kinds_belong_to_minors_that_are_followed():
    assert {*REMOVED_KINDS} <= {*BEHAVIOURS}


def test_an_upgrade_starts_at_the_newest_older_minor_unless_another_is_named():
    older, newer = BEHAVIOURS.values()
    assert upgrade_path("1.37") == upgrade_path("v1.37", "1.36") == (older, newer)


@pytest.mark.parametrize(
    ("to", "since", "says"),
    [
        ("1.36", "1.37", "1.36 is not newer than 1.37, so this is not an upgrade"),
        ("1.37", "1.37", "1.37 is not newer than 1.37"),
        ("1.36", "", "1.36 is the oldest version that Moorage knows; choose 1.37"),
        ("1.38", "", 'version "1.38" is not supported; Moorage answers as kube-scheduler 1.36 or 1.37'),
        ("1.37", "1.35", 'version "1.35" is not supported'),
    ],
)
def test_what_is_no_upgrade_is_refused_with_a_sentence(to, since, says):
    with pytest.raises(MoorageError) as refused:
        upgrade_path(to, since)
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize("text", ["1.36", "v1.36", "kube=1.36", " 1.36 "])
def test_a_version_may_be_written_as_kube_scheduler_takes_it(text):
    assert behaviour_of(text).release == "v1.36.4"


def test_no_version_means_the_default():
    assert behaviour_of("") is DEFAULT_BEHAVIOUR is BEHAVIOURS[DEFAULT_VERSION]


@pytest.mark.parametrize("text", ["1.35", "1.38", "2", "1.36.4", "latest", "=1.36"])
def test_another_version_is_refused_with_those_that_exist(text):
    with pytest.raises(MoorageError, match=r"not supported; Moorage answers as kube-scheduler 1.36 or 1.37"):
        behaviour_of(text)


def cpu(amount: str) -> ResourceRequirements:
    return ResourceRequirements(requests={"cpu": amount})


def resized(*containers: tuple[str, str, str], reason: str = "", init: bool = False, **status: Any) -> Pod:
    """Build a pod whose containers ask for, were allocated and use these amounts; empty for none."""
    specs = tuple(Container(name=f"c{n}", resources=cpu(asked)) for n, (asked, _, _) in enumerate(containers))
    reported = tuple(
        ContainerStatus(
            name=f"c{n}",
            allocated_resources={"cpu": allocated} if allocated else {},
            resources=cpu(used) if used else None,
        )
        for n, (_, allocated, used) in enumerate(containers)
    )
    conditions = (PodCondition(type="PodResizePending", reason=reason),) if reason else ()
    statuses: dict[str, Any] = {"init_container_statuses" if init else "container_statuses": reported}
    spec = PodSpec(init_containers=specs) if init else PodSpec(containers=specs)
    return Pod(
        metadata=make_pod("p").metadata, spec=spec, status=PodStatus(conditions=conditions, **statuses, **status)
    )


@pytest.mark.parametrize(
    ("pod", "in_1_36", "in_1_37"),
    [
        pytest.param(
            resized(("1", "3", "1"), ("3", "1", "1")), 6000, 4000, id="the sum of maxima, the maximum of sums"
        ),
        pytest.param(resized(("1", "2", "")), 1000, 2000, id="allocated counts without actual amounts"),
        pytest.param(
            resized(("5", "2", "3"), reason="Infeasible"), 3000, 3000, id="infeasible: not asked for any more"
        ),
        pytest.param(resized(("5", "", ""), reason="Infeasible"), 5000, 0, id="infeasible and nothing known"),
        pytest.param(resized(("1", "", "2"), init=True), 1000, 2000, id="an ordinary init container"),
        pytest.param(
            resized(("1", "9", "9"), allocated_resources={"cpu": "2"}, resources=cpu("3")),
            9000,
            3000,
            id="the amounts of the whole pod replace those of the containers",
        ),
    ],
)
def test_requests_of_a_pod_in_the_middle_of_a_resize(pod, in_1_36, in_1_37):
    assert pod_requests(pod, behaviour=BEHAVIOURS["1.36"]).get("cpu", 0) == in_1_36
    assert pod_requests(pod, behaviour=BEHAVIOURS["1.37"]).get("cpu", 0) == in_1_37


def test_pod_level_status_counts_only_with_actual_amounts():
    pod = make_pod("p", cpu="1")
    for found, milli in ((None, 1000), (cpu("2"), 3000)):
        status = PodStatus(allocated_resources={"cpu": "3"}, resources=found)
        spec = PodSpec(containers=pod.spec.containers, resources=cpu("1"))
        subject = Pod(metadata=pod.metadata, spec=spec, status=status)
        for behaviour in BEHAVIOURS.values():
            assert pod_requests(subject, behaviour=behaviour) == {"cpu": milli}
