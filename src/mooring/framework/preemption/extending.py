"""What extenders with the preempt verb say about the candidates: they may drop nodes and victims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.pod import Pod
from mooring.framework.extending import Extender, ExtenderError, Victims
from mooring.framework.preemption.candidates import Candidate, Candidates
from mooring.telemetry import logs

_log = logs.get(__name__)


async def narrowed(extenders: Sequence[Extender], pod: Pod, candidates: Candidates) -> Candidates:
    """The candidates that all interested extenders leave, one after the other. An ExtenderError of one that
    is not ignorable passes through."""
    for extender in extenders:
        if not candidates:
            break
        if not (extender.preempts and extender.is_interested(pod)):
            continue
        try:
            candidates = await _ask(extender, pod, candidates)
        except ExtenderError as error:
            if not extender.ignorable:
                raise
            _log.warning("Skipping extender that returned an error", extender=extender.name, err=str(error))
    return candidates


async def _ask(extender: Extender, pod: Pod, candidates: Candidates) -> Candidates:
    asked = {c.node_name: Victims(c.victims, c.pdb_violations) for c in candidates}
    answer = await extender.preempt(pod, asked)
    unknown = sorted(set(answer) - set(asked))
    if unknown:
        raise ExtenderError(
            f'extender {extender.name!r} claims a node "{unknown[0]}" that it was not asked about'
        )
    return Candidates.of(kept for c in candidates if (kept := _kept(extender, c, answer)) is not None)


def _kept(extender: Extender, candidate: Candidate, answer: Mapping[str, Victims]) -> Candidate | None:
    left = answer.get(candidate.node_name)
    if left is None:
        return None
    if not left.pods:
        if extender.ignorable:
            _log.info(2, "Ignored node without victims", extender=extender.name, node=candidate.node_name)
            return None
        raise ExtenderError(f'expected at least one victim pod on node "{candidate.node_name}"')
    return Candidate(candidate.node_name, left.pods, left.pdb_violations)
