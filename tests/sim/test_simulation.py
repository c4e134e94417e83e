"""Simulations run the real scheduler: what happens in them, and that they are repeated by their seed."""

import pytest

from moorage import Simulation
from moorage.api.errors import MoorageError
from moorage.api.resources import PODS
from moorage.framework.points import FilterPlugin
from moorage.framework.status import Status
from moorage.scheduler import assembly
from moorage.sim import simulation as simulation_module
from moorage.sim.results import read_result
from tests.extender.kit import extender_server, replying

NODES = "nodes: [{name: node, count: 4, zones: 2, allocatable: {cpu: 4, memory: 16Gi}}]\n"


def run(text, **options):
    return Simulation(NODES + text, **options).run()


def config(*enabled, disabled=(), args=""):
    return (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- schedulerName: own\n  plugins: {multiPoint: {enabled: ["
        + ", ".join(f"{{name: {name}}}" for name in enabled)
        + "], disabled: ["
        + ", ".join(f"{{name: {name}}}" for name in disabled)
        + f"]}}}}\n{args}"
    )


def test_pods_are_placed_run_and_end():
    result = run("workloads: [{name: a, count: 6, rate: 1/s, shape: {cpu: 1}, lifetime: {fixed: 10s}}]")
    assert (result["arrived"], result["scheduled"], result["ended"], result["running"]) == (6, 6, 6, 0)
    assert [placed.pod for placed in result.placements()] == [f"default/a-{i}" for i in range(6)]
    assert result.maximum("running") == 6
    assert result.virtual_seconds >= 15
    assert result.problems == []


def test_pods_that_find_no_node_wait_until_one_ends():
    result = run(
        "workloads: [{name: a, count: 4, shape: {cpu: 4}, lifetime: {fixed: 5m}},"
        " {name: b, count: 1, start: 1m, shape: {cpu: 2}}]\nduration: 1h"
    )
    [late] = [placed for placed in result.placements() if placed.pod == "default/b-0"]
    assert late.wait == pytest.approx(240, abs=1)
    assert result["wait.p99"] > 200
    assert result.maximum("pending.NodeResourcesFit") == 1
    assert (result["pending.NodeResourcesFit"], result["pending"]) == (0, 0)


def test_a_run_without_a_duration_ends_although_a_pod_never_fits():
    result = run("workloads: [{name: a, count: 1, shape: {cpu: 64}}]")
    assert result["pending"] == 1
    assert [placed.node for placed in result.placements()] == [""]


def test_preemption_takes_place_and_jobs_come_again():
    result = run(
        "workloads: [{name: low, as: job, count: 4, shape: {cpu: 4}, lifetime: {fixed: 10m}},"
        " {name: high, count: 1, start: 1m, priority: 10, shape: {cpu: 4}, lifetime: {fixed: 1m}}]\n"
        "grace: 30s\nduration: 30m"
    )
    assert (result["preempted"], result["deleted"], result["ended"]) == (1, 1, 5)
    [high] = [placed for placed in result.placements() if placed.pod == "default/high-0"]
    assert high.wait == pytest.approx(30, abs=2)
    assert "default/low-again-0" in result.nodes()


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("failNode: node-0", {"lost": 2, "nodes": 3, "running": 8}),
        ("failNode: node-0, for: 1m", {"lost": 2, "nodes": 4, "running": 8}),
        ("drain: [node-0, node-1]", {"deleted": 4, "nodes": 4, "running": 8}),
        ("removeNodes: {matchLabels: {topology.kubernetes.io/zone: zone-0}}", {"deleted": 4, "nodes": 2}),
        ("addNodes: {name: node, count: 2, allocatable: {cpu: 1}}", {"nodes": 6}),
        ("scale: {workload: web, count: 3}", {"running": 3, "deleted": 5}),
        ("scale: {workload: web, count: 10}", {"running": 10}),
        ("failNode: {random: 1}", {"lost": 2, "nodes": 3}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_events_change_the_cluster_and_deployments_are_kept(event, expected):
    result = run(
        "workloads: [{name: web, as: deployment, count: 8, shape: {cpu: 1}}]\n"
        f"events: [{{at: 1m, {event}}}]\nduration: 5m"
    )
    assert {name: result[name] for name in expected} == expected
    assert result.problems == []


def test_cordons_labels_taints_and_objects_reach_the_scheduler():
    result = run(
        "workloads:\n"
        "- {name: a, count: 4, start: 2m, pod: {spec: {nodeSelector: {disk: ssd}}}}\n"
        "events:\n"
        "- {at: 1m, label: {nodes: {matchLabels: {}}, labels: {disk: ssd}}}\n"
        "- {at: 1m, label: {nodes: node-3, labels: {disk: null}}}\n"
        "- {at: 1m, cordon: node-0}\n"
        "- {at: 1m, taint: {nodes: node-1, add: [{key: k, effect: NoSchedule}]}}\n"
        "- {at: 10m, uncordon: node-0}\n"
        "- {at: 10m, taint: {nodes: node-1, remove: [k]}}\n"
        "- {at: 11m, apply: [{apiVersion: v1, kind: Pod, metadata: {name: x}}]}\n"
        "- {at: 12m, delete: {kind: Pod, name: x}}\n"
        "duration: 15m"
    )
    nodes = result.nodes()
    assert {nodes[f"default/a-{i}"] for i in range(4)} == {"node-2"}
    assert nodes["default/x"] in ("node-0", "node-1")
    assert result["deleted"] == 1


def test_what_cannot_be_done_is_a_problem_and_the_run_goes_on():
    result = run("events: [{at: 1, drain: nope}]\nworkloads: [{name: a, count: 1, start: 2s, shape: {cpu: 1}}]")
    assert result["scheduled"] == 1
    assert result.problems == ["at 1 s: there is no node 'nope'"]


def test_assertions_are_judged_at_their_time_with_figures():
    result = run(
        "workloads: [{name: a, count: 3, start: 1m, shape: {cpu: 1}, lifetime: {fixed: 1m}}]\n"
        "assertions:\n"
        "- {at: 1m, measure: running, op: '==', value: 3}\n"
        "- {at: 90s, measure: running, op: '>', value: 3}\n"
        "- {measure: ended, op: '>=', value: 3}\n"
        "- {measure: nope, op: '>', value: 0}\n"
        "duration: 5m"
    )
    assert not result.holds
    assert result.failed[0] == "running > 3 at 90 s: the value is 3"
    assert result.failed[1].startswith("nope > 0 at 300 s: no such measure; known are arrived,")
    assert len(result.failed) == 2


CHURN = """
workloads:
- {name: a, rate: 1/s, arrival: poisson, shape: {cpu: 500m, memory: 1Gi}, lifetime: {exponential: 20s}}
- name: b
  as: job
  rate: 6/m
  arrival: burst
  burst: 3
  priority: 5
  shape: {cpu: 3}
  lifetime: {lognormal: {median: 30s}}
events: [{at: 1m, failNode: {random: 1}, for: 30s}]
duration: 2m
"""


def test_a_seed_gives_the_same_run_and_another_seed_another():
    first, second = run(CHURN, seed=3), run(CHURN, seed=3)
    assert list(first.placements()) == list(second.placements())
    assert first.measures == second.measures
    assert list(first.placements()) != list(run(CHURN, seed=4).placements())


def test_configurations_see_the_same_arrivals():
    packed = config("NodeResourcesFit", args=(
        "  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated,"
        " resources: [{name: cpu, weight: 1}]}}}]"
    ))  # fmt: skip

    def arrivals(given):
        seen: list[str] = []

        def note(view):
            seen.extend(pod.name for pod in view.arrived if "again" not in pod.name)
            return 0.0

        run(CHURN, config=given, measures={"note": note})
        return seen

    assert arrivals(None) == arrivals(packed) != []


def test_nothing_of_pods_that_are_gone_is_kept(monkeypatch):
    engines = []

    def assemble(*args, **options):
        engines.append(assembly.assemble(*args, **options))
        return engines[-1]

    monkeypatch.setattr(simulation_module, "assemble", assemble)
    result = run("workloads: [{name: a, count: 300, rate: 10/s, shape: {cpu: 1}, lifetime: {fixed: 1s}}]")
    [engine] = engines
    assert result["ended"] == 300
    assert len(engine.cache) == len(engine.queue) == len(list(engine.cache.expected())) == 0
    assert len(engine.stores[PODS]) == 0
    assert not engine.bindings.now()


def test_plugins_with_a_run_of_their_own_run():
    class Opens(FilterPlugin):
        """Refuses everything for a minute."""

        name = "Opens"
        opened = False

        async def run(self):
            await self.handle.clock.sleep(60)
            self.opened = True

        def filter(self, state, pod, node):
            return None if self.opened else Status.unschedulable("closed")

    result = run(
        "workloads: [{name: a, count: 1, shape: {cpu: 1}}]\nduration: 10m", config=config("Opens"), plugins=[Opens]
    )
    assert result["scheduled"] == 1
    assert result.maximum("pending.Opens") == 1


def test_groups_of_contrib_start_together():
    group = (
        "objects:\n"
        "- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g},"
        " spec: {minMember: 3}}\n"
        "workloads:\n"
        "- {name: a, count: 3, rate: 1/m, labels: {scheduling.x-k8s.io/pod-group: g}, shape: {cpu: 1}}\n"
        "duration: 10m"
    )
    result = run(group, config=config("Coscheduling", disabled=("PrioritySort",)))
    assert {placed.time for placed in result.placements()} == {120.0}
    alone = run(group)
    assert sorted(placed.time for placed in alone.placements()) == [0.0, 60.0, 120.0]
    [problem] = alone.problems
    assert problem.startswith("1 objects of the kind PodGroup of scheduling.x-k8s.io/v1alpha1 were ignored")


def test_quotas_of_contrib_give_lent_space_back():
    quotas = "objects:\n" + "".join(
        f"- {{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota,"
        f" metadata: {{name: quota, namespace: {team}}}, spec: {{min: {{cpu: '8'}}}}}}\n"
        for team in ("red", "blue")
    )
    teams = (
        "workloads:\n"
        "- {name: red, namespace: red, count: 16, priority: 100, shape: {cpu: 1}}\n"
        "- {name: blue, namespace: blue, count: 6, start: 1m, shape: {cpu: 1}}\n"
        "duration: 5m"
    )
    given = config("CapacityScheduling", disabled=("DefaultPreemption",))
    result = run(quotas + teams, config=given)
    assert (result["preempted"], result["running"], result["pending"]) == (6, 16, 0)
    # By priority alone blue would have got nothing.
    assert run(quotas + teams)["preempted"] == 0


def test_own_measures_are_functions_or_classes_made_for_each_run():
    class Bound:
        def __init__(self):
            self.total = 0

        def __call__(self, view):
            self.total += len(view.bound)
            return self.total

    text = "workloads: [{name: a, count: 5, rate: 1/s, shape: {cpu: 1}}]"
    twice = Simulation(NODES + text, measures={"bound": Bound, "pods": lambda view: len(view.pods)})
    for _ in range(2):
        result = twice.run()
        assert (result["bound"], result["pods"]) == (5, 5)


@pytest.mark.parametrize(
    ("reference", "message"),
    [("nope:f", "No module named 'nope'"), ("math:nope", "no attribute 'nope'"), ("math:pi", "is not a function")],
)
def test_a_measure_that_is_not_there_is_named(reference, message):
    with pytest.raises(MoorageError, match=message):
        Simulation(NODES + f"measures: {{m: {reference}}}")


def test_until_ends_a_run_early():
    result = run("workloads: [{name: a, count: 100, rate: 1/s, shape: {cpu: 1m}}]\nduration: 1h", until=10.0)
    assert result.virtual_seconds == 10.0
    assert result["arrived"] == 11


EXTENDED = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
THREE_PODS = "workloads: [{name: w, count: 3, shape: {cpu: 1m}}]\n"


def test_extenders_filter_in_a_simulation():
    def only_the_second(verb, question):
        assert verb == "filter"
        names = [node["metadata"]["name"] for node in question["Nodes"]["items"]]
        kept = [node for node in question["Nodes"]["items"] if node["metadata"]["name"] == names[-1]]
        return {"Nodes": {"items": kept}, "FailedNodes": dict.fromkeys(names[:-1], "not here")}

    with extender_server(replying(only_the_second)) as url:
        extended = EXTENDED + f"extenders: [{{urlPrefix: '{url}', filterVerb: filter, bindVerb: bind}}]"
        result = run(THREE_PODS, config=extended)
    assert result["scheduled"] == 3
    assert len(set(result.nodes().values())) == 1
    assert result.problems == []


def test_an_extender_that_cannot_be_reached_is_a_problem_of_the_run():
    extended = EXTENDED + "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter, ignorable: true}]"
    result = run(THREE_PODS, config=extended)
    assert result["scheduled"] == 3
    [problem] = result.problems
    assert problem.startswith("An extender failed: failed filter with extender at URL http://127.0.0.1:1/filter: ")


def test_a_result_is_the_same_from_its_folder(tmp_path):
    kept = Simulation(NODES + CHURN).run(tmp_path)
    found = read_result(tmp_path)
    memory = run(CHURN)
    assert found.measures == kept.measures == memory.measures
    assert list(found.series) == list(memory.series)
    assert found.nodes() == memory.nodes()
    assert found.mean("pending") == pytest.approx(memory.mean("pending"))
