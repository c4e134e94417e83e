"""The verbs of an extender, answered by plugins: both forms of nodes, every kind of answer, Go's keys."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from moorage.api.errors import MoorageError
from moorage.api.resources import PODS
from moorage.config import Extender
from moorage.extender.client import HttpExtender
from moorage.framework import (
    Access,
    BindPlugin,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Status,
)
from moorage.framework.optional import VectorFilterPlugin, VectorScorePlugin
from moorage.framework.ports import Victims
from moorage.framework.status import Normalization
from moorage.run.extender.selecting import reload_source
from moorage.store.faults import Fault, lost_answer
from moorage.testing import make_node, make_pod
from tests.extender.kit import VERBS
from tests.extender.server_kit import POD, AppTransport, Extended, by_names, served_of


class Labelled(FilterPlugin):
    """Refuses by a label of the node."""

    name = "Labelled"

    def filter(self, state, pod, node):
        match node.labels.get("say"):
            case "no":
                return Status.unschedulable("not here", "nor now")
            case "never":
                return Status.unresolvable("not ever")
            case "pending":
                return Status.pending("not yet")
            case "broken":
                raise RuntimeError("out of order")
        return None


class LabelledAtOnce(VectorFilterPlugin):
    name = "LabelledAtOnce"

    def filter_nodes(self, state, pod, nodes):
        return nodes.refuse(nodes.label_equals("say", "no"), "not here")


class Ranked(ScorePlugin):
    name = "Ranked"

    def score(self, state, pod, node):
        return int(node.labels["rank"])


class RankedAtOnce(VectorScorePlugin):
    name = "RankedAtOnce"

    def score_nodes(self, state, pod, nodes):
        return nodes.label_numbers("rank").astype(np.int64)


class Relative(RankedAtOnce):
    """Has no answer about no nodes."""

    name = "Relative"

    def score_nodes(self, state, pod, nodes):
        scores = super().score_nodes(state, pod, nodes)
        return scores * 100 // scores.max()


class Normalized(Ranked):
    name = "Normalized"
    normalization = Normalization.DEFAULT


class Full(FilterPlugin):
    """At most one pod on a node."""

    name = "Full"

    def filter(self, state, pod, node):
        return Status.unschedulable("full") if len(node.pods) > 0 else None


NODES = [make_node(name, labels={"say": name}) for name in ("yes", "no", "never", "pending")]
EMPTY: dict[str, Any] = {
    "Nodes": None,
    "NodeNames": [],
    "FailedNodes": {},
    "FailedAndUnresolvableNodes": {},
    "Error": "",
}


def test_filter_answers_names_with_names_and_texts():
    with Extended(served_of(Labelled), NODES) as extended:
        answer = extended.answer("filter", by_names("pending", "never", "unknown", "no", "yes"))
    assert answer == {
        **EMPTY,
        "NodeNames": ["yes"],
        "FailedNodes": {
            "pending": "Labelled: not yet",
            "unknown": "the extender does not know this node yet",
            "no": "Labelled: not here, nor now",
        },
        "FailedAndUnresolvableNodes": {"never": "Labelled: not ever"},
    }


def test_filter_answers_nodes_with_the_very_nodes_that_were_sent():
    sent = [b'{"spec":{"x" : [1,2.50, null]}, "metadata":{"name":"%b","odd":{}}}' % name for name in (b"yes", b"no")]
    body = b'{"Pod":%b,"NodeNames":null,"Nodes":{"metadata":{},"items":[%b]}}' % (
        msgspec.json.encode(POD), b",".join(sent),
    )  # fmt: skip
    with Extended(served_of(Labelled), NODES) as extended:
        code, answer = extended.ask("filter", body)
    assert code == 200
    assert answer["NodeNames"] is None
    assert answer["Nodes"] == {"metadata": {}, "items": [msgspec.json.decode(sent[0])]}
    assert answer["FailedNodes"] == {"no": "Labelled: not here, nor now"}


def test_filter_asks_about_the_named_nodes_only():
    with Extended(served_of(Labelled), NODES, make_node("b", labels={"say": "broken"})) as extended:
        assert extended.answer("filter", by_names("yes")) == {**EMPTY, "NodeNames": ["yes"]}
        assert extended.answer("filter", by_names()) == EMPTY


@pytest.mark.parametrize("nodes", [[], NODES], ids=["none", "some"])
def test_a_cluster_without_the_named_nodes(nodes):
    with Extended(served_of(Labelled, Relative), nodes) as extended:
        failed = extended.answer("filter", by_names("x"))["FailedNodes"]
        assert failed == {"x": "the extender does not know this node yet"}
        assert extended.answer("prioritize", by_names("x")) == [{"Host": "x", "Score": 0}]


def test_an_exception_of_a_plugin_is_the_error_of_the_answer():
    with Extended(served_of(Labelled), make_node("b", labels={"say": "broken"})) as extended:
        answer = extended.answer("filter", by_names("b"))
    assert answer.pop("Error") == (
        'running "Labelled" filter plugin: pod "default/p", node "b": RuntimeError: out of order'
    )
    assert answer == {
        "Nodes": None, "NodeNames": None, "FailedNodes": {}, "FailedAndUnresolvableNodes": {},
    }  # fmt: skip


def pre_filtering(answer):
    class Early(PreFilterPlugin):
        name = "Early"

        def pre_filter(self, state, pod, nodes):
            if isinstance(answer, Exception):
                raise answer
            return answer

    return Early


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Status.unschedulable("later"), {"FailedNodes": {"a": "Early: later", "b": "Early: later"}}),
        (Status.unresolvable("no way"), {"FailedAndUnresolvableNodes": {"a": "Early: no way", "b": "Early: no way"}}),
        (
            PreFilterResult(frozenset({"b", "c"})),
            {"NodeNames": ["b"], "FailedAndUnresolvableNodes": {"a": "node(s) didn't satisfy plugin(s) [Early]"}},
        ),
        (Status.skip(), {"NodeNames": ["a", "b"]}),
        (
            RuntimeError("torn"),
            {"NodeNames": None, "Error": 'running PreFilter plugin "Early": pod "default/p": RuntimeError: torn'},
        ),
    ],
    ids=["refused", "unresolvable", "narrowed", "skipped", "broken"],
)
def test_what_pre_filter_says_is_said_of_every_named_node(answer, expected):
    with Extended(served_of(pre_filtering(answer)), map(make_node, "abc")) as extended:
        assert extended.answer("filter", by_names("a", "b")) == {**EMPTY, **expected}


def test_a_nominated_pod_counts_on_its_node_for_pods_of_lower_priority():
    nominated = make_pod("other", nominated="a", priority=10)
    with Extended(served_of(Full), map(make_node, "ab"), nominated) as extended:
        assert extended.answer("filter", by_names("a", "b"))["FailedNodes"] == {"a": "Full: full"}
        higher = make_pod("higher", priority=11)
        assert extended.answer("filter", by_names("a", "b", pod=higher))["NodeNames"] == ["a", "b"]


def test_what_the_watch_has_shown_counts_in_the_next_request():
    with Extended(served_of(Full), map(make_node, "ab")) as extended:
        assert extended.answer("filter", by_names("a", "b"))["NodeNames"] == ["a", "b"]
        extended.cluster.add(make_pod("new", node="a"))
        extended.cluster.settle()
        assert extended.answer("filter", by_names("a", "b"))["NodeNames"] == ["b"]


RANKS = [make_node(name, labels={"rank": rank}) for name, rank in zip("abcd", ("0", "44", "45", "100"), strict=True)]


@pytest.mark.parametrize(
    ("plugins", "weights", "expected"),
    [
        ((Ranked,), (), [0, 4, 5, 10]),  # 4.5 is rounded up
        ((Ranked,), (7,), [0, 4, 5, 10]),
        ((RankedAtOnce,), (), [0, 4, 5, 10]),
        ((Ranked, RankedAtOnce), (1, 2), [0, 4, 5, 10]),
        ((Ranked, Normalized), (1, 3), [0, 4, 5, 10]),
    ],
)
def test_prioritize_gives_the_weighted_mean_from_0_to_10(plugins, weights, expected):
    with Extended(served_of(*plugins, weights=weights), RANKS) as extended:
        answer = extended.answer("prioritize", by_names("a", "b", "c", "d"))
    assert answer == [{"Host": n, "Score": s} for n, s in zip("abcd", expected, strict=True)]


def test_scores_are_normalized_over_the_named_nodes_and_an_unknown_one_has_none():
    with Extended(served_of(Normalized), RANKS) as extended:
        answer = extended.answer("prioritize", by_names("c", "x", "b"))
    assert answer == [{"Host": "c", "Score": 10}, {"Host": "x", "Score": 0}, {"Host": "b", "Score": 10}]


def test_nodes_are_prioritized_in_both_forms():
    with Extended(served_of(Ranked), RANKS) as extended:
        question = {"Pod": POD, "Nodes": {"items": RANKS[2:]}, "NodeNames": None}
        assert extended.answer("prioritize", question) == [
            {"Host": "c", "Score": 5}, {"Host": "d", "Score": 10},
        ]  # fmt: skip


def test_a_plugin_that_fails_to_score_gives_500_with_its_text():
    with Extended(served_of(Ranked), make_node("a")) as extended:
        code, answer = extended.ask("prioritize", by_names("a"))
    assert code == 500
    assert answer["Error"].startswith('running Score plugins: plugin "Ranked" failed with: pod "default/p"')


def victims(**by_node):
    return {
        "Pod": POD,
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {
            node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 2} for node, uids in by_node.items()
        },
    }


RUNNING = [make_pod(f"{node}{number}", node=node, uid=f"{node}{number}") for node in "abc" for number in (1, 2)]


def test_preempt_keeps_the_nodes_on_which_the_pod_fits_without_the_victims():
    with Extended(served_of(Full), map(make_node, "abc"), RUNNING) as extended:
        answer = extended.answer("preempt", victims(a=["a1", "a2"], b=["b1"], c=["c2", "c1"]))
        assert answer == {
            "NodeNameToMetaVictims": {
                "a": {"Pods": [{"UID": "a1"}, {"UID": "a2"}], "NumPDBViolations": 2},
                "c": {"Pods": [{"UID": "c2"}, {"UID": "c1"}], "NumPDBViolations": 2},
            }
        }
        assert extended.answer("filter", by_names("a"))["FailedNodes"] == {"a": "Full: full"}


def test_victims_that_come_as_pods_are_answered_by_their_uids():
    question = {
        "Pod": POD,
        "NodeNameToMetaVictims": None,
        "NodeNameToVictims": {"a": {"Pods": RUNNING[:2], "NumPDBViolations": 0}},
    }
    with Extended(served_of(Full), map(make_node, "abc"), RUNNING) as extended:
        assert extended.answer("preempt", question) == {
            "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "a1"}, {"UID": "a2"}], "NumPDBViolations": 0}}
        }


@pytest.mark.parametrize(
    "asked", [{"a": ["a1", "a2", "x"]}, {"a": ["a1", "b1", "b2"]}, {"x": ["a1"]}, {"a": [""]}, {}],
    ids=["unknown", "of another node", "unknown node", "without a UID", "none"],
)  # fmt: skip
def test_a_node_with_victims_that_are_not_there_is_dropped(asked):
    with Extended(served_of(Full), map(make_node, "abc"), RUNNING) as extended:
        assert extended.answer("preempt", victims(**asked)) == {"NodeNameToMetaVictims": {}}


def test_a_victim_that_is_named_twice_is_one():
    with Extended(served_of(Full), map(make_node, "abc"), RUNNING) as extended:
        answer = extended.answer("preempt", victims(a=["a1", "a2", "a1"]))
        assert list(answer["NodeNameToMetaVictims"]) == ["a"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [(Status.unschedulable("no"), []), (PreFilterResult(frozenset("b")), ["b"]), (None, ["a", "b"])],
    ids=["refused", "narrowed", "passed"],
)
def test_what_pre_filter_says_holds_for_preemption(said, expected):
    with Extended(served_of(pre_filtering(said)), map(make_node, "abc"), RUNNING) as extended:
        answer = extended.answer("preempt", victims(a=["a1"], b=["b1"]))
        assert list(answer["NodeNameToMetaVictims"]) == expected


def test_a_plugin_that_fails_on_every_node_of_a_preemption_gives_500():
    broken = make_node("a", labels={"say": "broken"})
    with Extended(served_of(Labelled), broken, make_node("b"), RUNNING) as extended:
        code, answer = extended.ask("preempt", victims(a=["a1"]))
        assert (code, "out of order" in answer["Error"]) == (500, True)
        answer = extended.answer("preempt", victims(a=["a1"], b=["b1"]))
        assert list(answer["NodeNameToMetaVictims"]) == ["b"]


class Binder(BindPlugin):
    name = "Binder"
    needs = (Access(PODS, ("create",), "binding"),)

    async def bind(self, state, pod, node_name):
        if pod.labels.get("bind") == "not":
            return Status.unschedulable("rather not")
        await self.handle.client.bind(pod.name, pod.namespace, pod.uid, node_name)
        return None


def binding(name="p", uid="uid-p", node="a"):
    return {"PodName": name, "PodNamespace": "default", "PodUID": uid, "Node": node}


@pytest.mark.parametrize(
    ("asked", "error", "bound"),
    [
        (binding(), "", "a"),
        (binding(uid="other"), 'pod "default/p" with UID "other" is not known to the extender yet', ""),
        (binding(name="q"), 'pod "default/q" with UID "uid-p" is not known to the extender yet', ""),
        (binding(name="shy", uid="uid-shy"), "rather not", ""),
    ],
    ids=["bound", "another UID", "another name", "refused"],
)
def test_bind_runs_the_bind_plugins(asked, error, bound):
    shy = make_pod("shy", uid="uid-shy", labels={"bind": "not"})
    with Extended(served_of(Binder), make_node("a"), POD, shy) as extended:
        assert extended.answer("bind", asked) == {"Error": error}
        assert extended.cluster.node_of("p") == bound


def test_a_bind_whose_answer_is_lost_says_that_it_may_have_happened():
    with Extended(served_of(Binder), make_node("a"), POD) as extended:
        extended.cluster.faults.add(Fault(lost_answer(), verb="bind"))
        assert extended.answer("bind", binding())["Error"].startswith("the pod may be bound or not: ")
        assert extended.cluster.node_of("p") == "a"


def test_default_plugins_answer_where_they_are_served():
    small = make_node("small", cpu="1")
    nodes = (small, make_node("large", cpu="8"), make_node("tainted", taints=["x=y:NoSchedule"]))
    pod = make_pod("p", uid="uid-p", cpu="2")
    with Extended(served_of(Labelled, with_defaults=True), nodes, pod) as extended:
        answer = extended.answer("filter", by_names("small", "large", "tainted", pod=pod))
        assert answer["NodeNames"] == ["large"]
        assert answer["FailedAndUnresolvableNodes"] == {
            "small": "NodeResourcesFit: Insufficient cpu",
            "tainted": "TaintToleration: node(s) had untolerated taint(s)",
        }
        (score,) = extended.answer("prioritize", by_names("large", pod=pod))
        assert 0 < score["Score"] <= 10
        assert extended.answer("bind", binding(node="large")) == {"Error": ""}
        assert extended.cluster.node_of("p") == "large"


class Counting(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Reads in Score what PreFilter wrote."""

    name = "Counting"

    def __init__(self, args, handle):
        self.handle, self.asked = handle, []

    def pre_filter(self, state, pod, nodes):
        self.asked.append(pod.name)
        state.write("Counting", len(self.asked))

    def filter(self, state, pod, node):
        return None

    def pre_score(self, state, pod, nodes):
        state.read("Counting")

    def score(self, state, pod, node):
        return 10 * state.read("Counting")


def counted(extended):
    (profile,) = extended.cluster.scheduler.engine.profiles.values()
    return profile.plugins["Counting"].asked


def test_prioritize_goes_on_with_the_state_of_filter():
    with Extended(served_of(Counting), map(make_node, "ab")) as extended:
        extended.answer("filter", by_names("a", "b"))
        assert extended.answer("prioritize", by_names("a")) == [{"Host": "a", "Score": 1}]
        assert counted(extended) == ["p"]


@pytest.mark.parametrize("between", ["another pod", "a change", "a second time", "nothing before"])
def test_prioritize_begins_anew_after(between):
    with Extended(served_of(Counting), map(make_node, "ab")) as extended:
        if between != "nothing before":
            extended.answer("filter", by_names("a", "b"))
        match between:
            case "another pod":
                extended.answer("filter", by_names("a", pod=make_pod("q")))
            case "a change":
                extended.cluster.label_node("b", changed="yes")
                extended.cluster.settle()
            case "a second time":
                extended.answer("prioritize", by_names("a"))
        before = len(counted(extended))
        assert extended.answer("prioritize", by_names("a")) == [{"Host": "a", "Score": before + 1}]
        assert len(counted(extended)) == before + 1


class Working(FilterPlugin):
    name = "Working"
    limit = 0

    async def run(self):
        type(self).limit = 1

    def filter(self, state, pod, node):
        return None if self.limit else Status.unschedulable("no data yet")


def test_background_work_of_plugins_is_started():
    with Extended(served_of(Working), make_node("a")) as extended:
        assert extended.answer("filter", by_names("a"))["NodeNames"] == []
        extended.cluster.loop.call_soon(extended.verbs.start_plugins)
        extended.cluster.settle()
        assert extended.answer("filter", by_names("a"))["NodeNames"] == ["a"]


def test_pods_that_kube_scheduler_binds_are_not_reported_as_those_of_another_scheduler():
    with Extended(served_of(Full), make_node("a", cpu="1")) as extended:
        for number in range(3):
            extended.cluster.add(make_pod(f"p{number}", node="a", cpu="900m"))
        extended.cluster.settle()
        assert extended.answer("filter", by_names("a"))["FailedNodes"] == {"a": "Full: full"}
        extended.cluster.settle(10)
        assert extended.cluster.events() == []


@pytest.mark.parametrize("names_only", [True, False], ids=["names", "nodes"])
def test_moorage_as_scheduler_and_moorage_as_extender_understand_each_other(names_only):
    config = Extender(url_prefix="http://extender", node_cache_capable=names_only, **VERBS)
    nodes = [make_node(name, labels={"say": name, "rank": "70"}) for name in ("yes", "no", "never")]
    running = make_pod("victim", node="yes", uid="v")
    with Extended(served_of(Labelled, Ranked, Binder), nodes, POD, running) as extended:
        client = HttpExtender(config, AppTransport(extended.app), extended.cluster.clock)
        seen, run = extended.cluster.scheduler.engine.services.nodes(), extended.cluster.run
        found = run(client.filter(POD, seen))
        assert found.names == {"yes"}
        assert dict(found.failed) == {"no": "Labelled: not here, nor now"}
        assert dict(found.failed_and_unresolvable) == {"never": "Labelled: not ever"}
        assert run(client.prioritize(POD, seen)) == {"yes": 7, "no": 7, "never": 7}
        offered = {"yes": Victims([running], 1), "no": Victims([], 0)}
        assert run(client.preempt(POD, offered)) == {"yes": Victims([running], 1)}
        run(client.bind(POD, "yes"))
        assert extended.cluster.node_of("p") == "yes"


async def started(extended: Extended) -> None:
    extended.verbs.start_plugins()


def test_after_a_reload_the_verbs_are_answered_by_the_new_plugins():
    log: list[str] = []

    def polite(version: int) -> type[FilterPlugin]:
        class Polite(FilterPlugin):
            name = "Polite"

            def filter(self, state, pod, node):
                return Status.unschedulable(f"version {version}")

            async def run(self):
                log.append(f"run {version}")

        return Polite

    with Extended(served_of(polite(1)), make_node("a")) as extended:
        extended.cluster.run(started(extended))
        question = by_names("a")
        assert extended.answer("filter", question)["FailedNodes"] == {"a": "Polite: version 1"}
        new = served_of(polite(2))
        extended.cluster.run(extended.cluster.scheduler.reload(new.configuration))
        extended.cluster.settle()
        assert extended.answer("filter", question)["FailedNodes"] == {"a": "Polite: version 2"}
        assert log == ["run 1", "run 2"]


def test_a_configuration_that_would_serve_other_verbs_is_refused_and_another_weight_is_said(caplog):
    served = served_of(Labelled, Ranked, weights=(0, 2))
    others = iter([served_of(Labelled), served_of(Labelled, Ranked, weights=(0, 5))])
    source = reload_source(served, lambda: next(others).configuration, (), plugins=False)
    with pytest.raises(MoorageError, match="now serves filter, preempt instead of filter, prioritize, preempt"):
        source.load()
    assert source.load().profiles[0].scheduler_name == "default-scheduler"
    assert "The Score plugins have another weight" in caplog.text
