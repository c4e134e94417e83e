"""Benchmark workloads of the plugins in `moorage.contrib`: `moorage bench engine --workloads perf`."""

from __future__ import annotations

from moorage.bench.workloads import EngineWorkload
from perf import gpus, groups_and_load, networks, numa, preempting, tenants

WORKLOADS: tuple[EngineWorkload, ...] = (
    EngineWorkload(
        "gangs", "PodGroups of three, with Coscheduling", groups_and_load.gangs, config=groups_and_load.COSCHEDULING
    ),
    EngineWorkload(
        "low-cpu", "as plain, with LowCpuScheduler", groups_and_load.low_cpu, config=groups_and_load.LOW_CPU
    ),
    EngineWorkload(
        "gpu-fgd",
        "parts of GPUs by FGD, a new template for each pod",
        gpus.parts,
        nodes=1500,
        config=gpus.config("FGD"),
        finish_node=gpus.add_cards,
    ),
    *(
        EngineWorkload(
            f"gpus-{policy.lower()}",
            f"the same on all nodes, by {policy}",
            gpus.parts,
            config=gpus.config(policy),
            finish_node=gpus.add_cards,
        )
        for policy in gpus.POLICIES
    ),
    EngineWorkload(
        "network",
        "members of applications, with NetworkOverhead",
        networks.members,
        config=networks.CONFIG,
        finish_node=networks.add_region,
    ),
    EngineWorkload(
        "tenants",
        "pools and nodes of one tenant, with TenantIsolation",
        tenants.isolated,
        config=tenants.ISOLATION,
        finish_node=tenants.add_pool,
    ),
    EngineWorkload("applications", "50 applications, with AppAffinity", tenants.applications, config=tenants.AFFINITY),
    EngineWorkload(
        "system-calls", "20 seccomp profiles, with SySched", tenants.system_calls, config=tenants.SYSTEM_CALLS
    ),
    EngineWorkload("quotas", "20 quotas, with CapacityScheduling", tenants.quotas, config=tenants.QUOTAS),
    *(
        EngineWorkload(
            name,
            f"pods for one of four NUMA zones, {strategy}",
            numa.aligned,
            config=numa.config(strategy),
            finish_node=numa.enlarge,
        )
        for name, strategy in (("numa", "LeastAllocated"), ("numa-least", "LeastNUMANodes"))
    ),
    EngineWorkload("quotas-3", "as plain, quotas in three levels", preempting.quotas, config=preempting.QUOTA_CONFIG),
    EngineWorkload(
        "preemption-4-toleration",
        "4 pods a node, with PreemptionToleration",
        preempting.toleration,
        4,
        40,
        schedulable=False,
        config=tenants.TOLERATION,
    ),
    EngineWorkload(
        "preemption-4-quota",
        "4 pods a node, with CapacityScheduling",
        preempting.borrowed,
        4,
        40,
        schedulable=False,
        config=tenants.QUOTAS,
    ),
    *(
        EngineWorkload(
            f"preemption-gang-{n}",
            f"groups of {n}, GangPreemption",
            preempting.gangs(n),
            4,
            20,
            schedulable=False,
            config=preempting.GANG_CONFIG,
        )
        for n in (8, 64)
    ),
    EngineWorkload(
        "preemption-across",
        "anti-affinity over zones, CrossNodePreemption",
        preempting.across,
        4,
        20,
        schedulable=False,
        config=preempting.ACROSS_CONFIG,
    ),
)
