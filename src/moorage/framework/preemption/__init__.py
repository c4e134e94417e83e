"""Preemption: deleting less important pods so that a pod fits. For plugins that want it.

`Preemption` runs the steps of kube-scheduler (eligibility, candidates, dry run,
reprieve, disruption budgets, extenders, choice, execution). What a plugin may want to decide otherwise is in
`PreemptionPolicy`. Everything is written against the Handle.
"""

from moorage.framework.preemption.budgets import Budgets
from moorage.framework.preemption.candidates import Candidate, Candidates
from moorage.framework.preemption.evaluator import NEEDS, Preemption
from moorage.framework.preemption.executor import Executor
from moorage.framework.preemption.policy import PreemptionPolicy, best_candidate
from moorage.framework.preemption.search import CandidateSearch

__all__ = [
    "NEEDS",
    "Budgets",
    "Candidate",
    "CandidateSearch",
    "Candidates",
    "Executor",
    "Preemption",
    "PreemptionPolicy",
    "best_candidate",
]
