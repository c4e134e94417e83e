"""The plugins of this package by name. A module is imported only when a configuration names its plugin. No plugin is
enabled by default."""

from __future__ import annotations

PLUGINS: dict[str, str] = {
    "AppAffinity": "moorage.contrib.app_affinity:AppAffinity",
    "BestFit": "moorage.contrib.gpu.packing:BestFit",
    "CapacityScheduling": "moorage.contrib.capacity_scheduling.plugin:CapacityScheduling",
    "Coscheduling": "moorage.contrib.coscheduling.plugin:Coscheduling",
    "CrossNodePreemption": "moorage.contrib.cross_node_preemption.plugin:CrossNodePreemption",
    "DotProduct": "moorage.contrib.gpu.packing:DotProduct",
    "EnergyAware": "moorage.contrib.energy_aware:EnergyAware",
    "FGD": "moorage.contrib.gpu.fgd:FGD",
    "GangPreemption": "moorage.contrib.gang_preemption.plugin:GangPreemption",
    "GpuClustering": "moorage.contrib.gpu.packing:GpuClustering",
    "GpuLeastFree": "moorage.contrib.gpu.packing:GpuLeastFree",
    "GpuPacking": "moorage.contrib.gpu.packing:GpuPacking",
    "GpuShare": "moorage.contrib.gpu.gpu_share:GpuShare",
    "LoadVariationRiskBalancing": ("moorage.contrib.trimaran.load_variation_risk_balancing:LoadVariationRiskBalancing"),
    "LowCpuScheduler": "moorage.contrib.low_cpu_scheduler:LowCpuScheduler",
    "LowRiskOverCommitment": "moorage.contrib.trimaran.low_risk_over_commitment:LowRiskOverCommitment",
    "NetworkOverhead": "moorage.contrib.network_aware.network_overhead:NetworkOverhead",
    "NodeMetadata": "moorage.contrib.node_metadata:NodeMetadata",
    "NodeResourceTopologyMatch": "moorage.contrib.topology_match.plugin:NodeResourceTopologyMatch",
    "NodeResourcesAllocatable": "moorage.contrib.node_resources_allocatable:NodeResourcesAllocatable",
    "Peaks": "moorage.contrib.trimaran.peaks:Peaks",
    "PodState": "moorage.contrib.pod_state:PodState",
    "PreemptionToleration": "moorage.contrib.preemption_toleration:PreemptionToleration",
    "QOSSort": "moorage.contrib.qos_sort:QOSSort",
    "SySched": "moorage.contrib.sysched:SySched",
    "TargetLoadPacking": "moorage.contrib.trimaran.target_load_packing:TargetLoadPacking",
    "TenantIsolation": "moorage.contrib.tenant_isolation:TenantIsolation",
    "TopologicalSort": "moorage.contrib.network_aware.topological_sort:TopologicalSort",
}
"""Plugin → `module:Class`."""
