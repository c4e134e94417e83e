"""NodeResourceTopologyMatch: keeps pods off nodes whose kubelet would refuse them for their NUMA zones, and
prefers nodes by their zones.

    args             the arguments
    definition       the CustomResourceDefinition of NodeResourceTopology
    topology         what one such object says: zones, and the settings of the kubelet's topology manager
    demands          what a pod asks for, container by container
    columns          the zones of all nodes as arrays
    aligning         Filter: nodes without a zone for each container
    scoring          Score: LeastAllocated, MostAllocated and BalancedAllocation
    least_numa       Score: LeastNUMANodes
    caching          what is known of nodes, as it is published, or without nodes that pods are about to use
    over_reserve     what is known of nodes, less what pods have been promised since it was published
    fingerprints     whether an object was published with the pods that the scheduler knows
    placement        which zone a container runs in, for preemption
    notes            what an operator should know: no objects, or old ones
    plugin           the plugin
"""
