"""Compare the preview of an upgrade with what two versions of kube-scheduler answered to the same inputs.

`python -m tests.conformance.upgrade_cases FOLDER` takes all recorded sets of a folder: the preview must report every
change of feasible nodes, totals, preemption and messages between the two recorded answers, and no other.
"""

from __future__ import annotations

import asyncio
import functools
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from moorage.api import decoding
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.app.configuration import Configuration, build_registry, configure
from moorage.config import FeatureGates
from moorage.config.types import API_VERSION, KIND
from moorage.explain import comparing
from moorage.explain.comparing import Difference, EngineDecider, PodOutcome
from moorage.explain.evaluate import NOT_JUDGED, EvaluatedCase
from moorage.explain.upgrading import SEVERAL, changed_pods, upgrade_steps
from moorage.explain.versioned import ERROR, NO_LONGER_ERROR, ConfigurationText, changed_problems
from moorage.scheduler.failing import fit_error

OLDER, NEWER = "1.36", "1.37"
SETS = {
    OLDER: ("small", "large", "small-1.36-new", "large-1.36-new", "more-1.36"),
    NEWER: ("small-1.37", "large-1.37", "more-1.37"),
}
FEASIBLE, TOTALS, ORDER, PREEMPTION, MESSAGE = "feasible", "totals", "order", "preemption", "message"
Json = dict[str, Any]
Pair = tuple[Json, Json]
"""One case with the answers of both versions."""


class CaseDecider:
    """Decides about the incoming pod of a case, as a version reads it."""

    def __init__(self, case: EvaluatedCase) -> None:
        self._pod = case.pod
        self._engine = EngineDecider(case.engine)

    async def decide(self, pod: Pod) -> PodOutcome:
        return await self._engine.judge(self._pod)


def configuration(gates: FeatureGates) -> Configuration:
    """Return the default profile without the plugins that the recorded answers leave out."""
    return _configured(gates.version, msgspec.json.encode((gates.chosen, gates.overrides)))


@functools.lru_cache(maxsize=64)
def _configured(version: str, fields: bytes) -> Configuration:
    chosen, overrides = msgspec.json.decode(fields)
    disabled = [{"name": name} for name in NOT_JUDGED]
    profiles = [{"plugins": {"multiPoint": {"disabled": disabled}}}]
    text = json.dumps({"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles})
    gates = FeatureGates(version=version, chosen=chosen, overrides=overrides)
    return configure(text, discover=False, gates=gates)


def build(case: Json, gates: FeatureGates) -> CaseDecider:
    return CaseDecider(EvaluatedCase(case["input"], configuration(gates)))


def found(case: Json) -> Difference | None:
    """Return what the comparison finds about the pod of a case."""

    async def ask() -> Difference | None:
        before, after = build(case, FeatureGates.of(OLDER)), build(case, FeatureGates.of(NEWER))
        return await anext(comparing.compare(before, after, [_pod(case)]), None)

    return asyncio.run(ask())


def reasons(case: Json) -> tuple[str, ...]:
    """Return the changes that the preview holds responsible; none if there is no difference with an effect."""
    old, new = FeatureGates.of(OLDER), FeatureGates.of(NEWER)
    steps = upgrade_steps(old, new, configuration(old))
    changes, _ = asyncio.run(changed_pods(functools.partial(build, case), old, new, steps, [_pod(case)]))
    return changes[0].reasons if changes else ()


def _pod(case: Json) -> Pod:
    pod = decoding.convert(PODS, case["input"]["pod"])  # a decider reads it again, as its version does
    assert isinstance(pod, Pod)
    return pod


def reported(difference: Difference | None) -> dict[str, tuple[Any, Any]]:
    """Return what the comparison reports: aspect → the answers before and after."""
    if difference is None:
        return {}
    before, after = difference.before, difference.after
    assert before.verdicts is not None
    assert after.verdicts is not None
    both = {
        FEASIBLE: (sorted(before.verdicts.feasible()), sorted(after.verdicts.feasible())),
        TOTALS: (before.verdicts.total(), after.verdicts.total()),
        ORDER: (_order(before.verdicts.total()), _order(after.verdicts.total())),
        PREEMPTION: (_preemption(before), _preemption(after)),
        MESSAGE: (before.message, after.message),
    }
    aspects = {*difference.aspects}
    named = {comparing.FEASIBLE: FEASIBLE, comparing.PREEMPTION: PREEMPTION, comparing.MESSAGE: MESSAGE}
    kept = {named[aspect] for aspect in aspects & named.keys()}
    if comparing.FEASIBLE in aspects or comparing.ORDER in aspects:
        kept.add(ORDER)
    if kept & {ORDER} or (comparing.SCORES in aspects and both[TOTALS][0] != both[TOTALS][1]):
        kept.add(TOTALS)
    return {aspect: answers for aspect, answers in both.items() if aspect in kept and answers[0] != answers[1]}


def _preemption(outcome: PodOutcome) -> tuple[str, list[str]]:
    return outcome.nominated, sorted(key.rpartition("/")[2] for key in outcome.victims)


def recorded(pair: Pair) -> dict[str, tuple[Any, Any]]:
    """Return the changes between the two recorded answers."""
    case, expects = pair[0], [each["expect"] for each in pair]
    totals = [expect.get("total") or {} for expect in expects]
    both = {
        FEASIBLE: tuple(sorted(expect.get("feasible") or ()) for expect in expects),
        TOTALS: tuple(totals),
        ORDER: tuple(map(_order, totals)),
        PREEMPTION: tuple(_recorded_preemption(expect) for expect in expects),
        MESSAGE: tuple(_message(case, expect, minor) for expect, minor in zip(expects, (OLDER, NEWER), strict=True)),
    }
    return {aspect: (old, new) for aspect, (old, new) in both.items() if old != new}


def _recorded_preemption(expect: Json) -> tuple[str, list[str]]:
    given = expect.get("preemption") or {}
    return given.get("node") or "", sorted(given.get("victims") or ())


def _order(totals: Mapping[str, int]) -> list[list[str]]:
    """Return the nodes from the lowest total to the highest; those with the same total together."""
    return [sorted(n for n in totals if totals[n] == value) for value in sorted({*totals.values()})]


def _message(case: Json, expect: Json, version: str) -> str:
    """Return the message that the recorded answers of the plugins lead to; empty if a node is feasible. The part about
    preemption is recorded only for pods with a priority."""
    if expect.get("feasible"):
        return ""
    if expect.get("error") or any("error" in each for each in expect["plugins"].values()):
        return "error"
    nodes = [node["metadata"]["name"] for node in case["input"].get("nodes") or ()]
    if not nodes:
        return "no nodes available to schedule pods"
    points = configuration(FeatureGates.of(version)).profiles[0].points
    answers = expect["plugins"]
    for ref in points["preFilter"]:
        refused = answers.get(ref.name, {}).get("preFilter")
        if refused and refused["code"] != "Skip":
            text = ", ".join(refused["reasons"])
            return fit_error(len(nodes), pre_filter=text, post_filter=_after(expect, version))
    counts = Counter(reason for node in nodes for reason in _refusal(node, answers, points))
    return fit_error(len(nodes), reasons=counts, post_filter=_after(expect, version))


def _refusal(node: str, answers: Json, points: Mapping[str, Any]) -> list[str]:
    """Return the reasons of the first plugin that refuses a node."""
    narrowing = [ref.name for ref in points["preFilter"] if "preFilterNodes" in answers.get(ref.name, {})]
    if any(node not in answers[name]["preFilterNodes"] for name in narrowing):
        return [f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowing))}]"]
    for ref in points["filter"]:
        refused = answers.get(ref.name, {}).get("filter", {}).get(node)
        if refused:
            return list(refused["reasons"])
    raise AssertionError(f"nothing refuses {node}, which is not feasible")


def _after(expect: Json, version: str) -> str:
    given = expect.get("preemption") or {}
    if given.get("code") == "Success":
        node, count = given.get("node"), len(given.get("victims") or ())
        said = f"preemption: found a potential placement for pod on node {node}, preempting {count} victims"
        return said if version == NEWER else ""
    return ", ".join(given.get("reasons") or ())


def differences(pair: Pair) -> Iterator[str]:
    """Yield where the preview and the recorded answers disagree about one case."""
    case, other = pair
    if "*" in case["expect"]["plugins"] or "*" in other["expect"]["plugins"]:
        yield from _changed_arguments(pair)
        return
    want, have = recorded(pair), reported(found(case))
    if want.keys() != have.keys():
        yield f"{case['id']}: changed are {sorted(want)}, reported are {sorted(have)}"
    for aspect in want.keys() & have.keys():
        if not _same(aspect, want[aspect], have[aspect], case):
            yield f"{case['id']}: {aspect}: want {want[aspect]}, have {have[aspect]}"


def _same(aspect: str, want: tuple[Any, Any], have: tuple[Any, Any], case: Json) -> bool:
    """Compare values; of errors only that they are there, and of messages what is recorded."""
    if aspect != MESSAGE:
        return want == have
    if not case["input"]["pod"]["spec"].get("priority"):
        return all(said.startswith(text) or text == "error" for said, text in zip(have, want, strict=True))
    return all(text in ("error", said) for said, text in zip(have, want, strict=True))


def _changed_arguments(pair: Pair) -> Iterator[str]:
    """Arguments that one version refuses are a change of the configuration; those that both refuse are none."""
    case = pair[0]
    entries = [{"name": name, "args": args} for name, args in (case["input"].get("args") or {}).items()]
    header = {"apiVersion": API_VERSION, "kind": KIND}
    given = ConfigurationText(
        build_registry(discover=False), json.dumps({**header, "profiles": [{"pluginConfig": entries}]})
    )
    old, new = (given.read(FeatureGates.of(version))[1] for version in (OLDER, NEWER))
    refused = ["*" in each["expect"]["plugins"] for each in pair]
    if [bool(old), bool(new)] != refused:
        yield f"{case['id']}: refused by {refused}, reported are {old} and {new}"
    elif not all(refused):
        kinds = {change.kind for change in changed_problems(old, new, NEWER, OLDER, case["id"])}
        if kinds != {NO_LONGER_ERROR if refused[0] else ERROR}:
            yield f"{case['id']}: refused by {refused}, reported as {kinds}"


def sample(path: Path) -> list[Pair]:
    """Return the cases of a file that has the answers of both versions."""
    with gzip.open(path, "rt") as lines:
        cases = [json.loads(line) for line in lines]
    return [({**case, "expect": case["expect"][OLDER]}, {**case, "expect": case["expect"][NEWER]}) for case in cases]


def pairs(older: Iterable[Path], newer: Iterable[Path]) -> list[Pair]:
    """Return the cases that both versions have answered."""
    first, second = _cases(older), _cases(newer)
    both = [(first[name], second[name]) for name in first if name in second]
    assert all(old["input"] == new["input"] for old, new in both)
    return both


def _cases(files: Iterable[Path]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for path in files:
        with gzip.open(path, "rt") as lines:
            found |= {case["id"]: case for case in map(json.loads, lines)}
    return found


def main(folder: Path) -> int:
    files = {version: [folder / f"{name}.jsonl.gz" for name in names] for version, names in SETS.items()}
    cases = pairs(files[OLDER], files[NEWER])
    changed, responsible, wrong = Counter[str](), Counter[str](), 0
    for pair in cases:
        for text in differences(pair):
            wrong += 1
            print(f"- {text[:600]}")
        if any("*" in each["expect"]["plugins"] for each in pair):
            changed["arguments"] += 1
        elif want := recorded(pair).keys():
            changed.update(want)
            responsible.update(reasons(pair[0]) if want - {TOTALS} else ("without effect",))
    print(f"{len(cases)} inputs; changed: {dict(changed)}; responsible: {dict(responsible)}; {wrong} wrong")
    return 1 if wrong or responsible[SEVERAL] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
