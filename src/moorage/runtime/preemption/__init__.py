"""How preemption runs: evaluation, search, disruption budgets, and eviction of the victims.

Follows pkg/scheduler/framework/preemption of kube-scheduler. Plugins reach it through `handle.preemption`; their side
is `moorage.framework.preemption`."""
