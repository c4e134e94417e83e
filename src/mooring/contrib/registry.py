"""The plugins of this package by name. A module is imported when a configuration names its plugin, so the
others cost nothing. None is enabled unless a configuration says so."""

from __future__ import annotations

PLUGINS: dict[str, str] = {
    "AppAffinity": "mooring.contrib.app_affinity:AppAffinity",
    "BestFit": "mooring.contrib.gpu.packing:BestFit",
    "CapacityScheduling": "mooring.contrib.capacity_scheduling.plugin:CapacityScheduling",
    "Coscheduling": "mooring.contrib.coscheduling.plugin:Coscheduling",
    "CrossNodePreemption": "mooring.contrib.cross_node_preemption.plugin:CrossNodePreemption",
    "DotProduct": "mooring.contrib.gpu.packing:DotProduct",
    "EnergyAware": "mooring.contrib.energy_aware:EnergyAware",
    "FGD": "mooring.contrib.gpu.fgd:FGD",
    "GangPreemption": "mooring.contrib.gang_preemption.plugin:GangPreemption",
    "GpuClustering": "mooring.contrib.gpu.packing:GpuClustering",
    "GpuLeastFree": "mooring.contrib.gpu.packing:GpuLeastFree",
    "GpuPacking": "mooring.contrib.gpu.packing:GpuPacking",
    "GpuShare": "mooring.contrib.gpu.gpu_share:GpuShare",
    "LoadVariationRiskBalancing": (
        "mooring.contrib.trimaran.load_variation_risk_balancing:LoadVariationRiskBalancing"
    ),
    "LowCpuScheduler": "mooring.contrib.low_cpu_scheduler:LowCpuScheduler",
    "LowRiskOverCommitment": "mooring.contrib.trimaran.low_risk_over_commitment:LowRiskOverCommitment",
    "NetworkOverhead": "mooring.contrib.network_aware.network_overhead:NetworkOverhead",
    "NodeMetadata": "mooring.contrib.node_metadata:NodeMetadata",
    "NodeResourceTopologyMatch": "mooring.contrib.topology_match.plugin:NodeResourceTopologyMatch",
    "NodeResourcesAllocatable": "mooring.contrib.node_resources_allocatable:NodeResourcesAllocatable",
    "Peaks": "mooring.contrib.trimaran.peaks:Peaks",
    "PodState": "mooring.contrib.pod_state:PodState",
    "PreemptionToleration": "mooring.contrib.preemption_toleration:PreemptionToleration",
    "QOSSort": "mooring.contrib.qos_sort:QOSSort",
    "SySched": "mooring.contrib.sysched:SySched",
    "TargetLoadPacking": "mooring.contrib.trimaran.target_load_packing:TargetLoadPacking",
    "TenantIsolation": "mooring.contrib.tenant_isolation:TenantIsolation",
    "TopologicalSort": "mooring.contrib.network_aware.topological_sort:TopologicalSort",
}
"""Plugin → `module:Class`."""
