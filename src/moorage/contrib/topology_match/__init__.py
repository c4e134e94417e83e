"""NodeResourceTopologyMatch: keeps pods off nodes whose kubelet would refuse them for their NUMA zones, and
prefers nodes by their zones.

    args             the arguments
    topology         the definition of NodeResourceTopology, and what one such object says: zones,
                     and the settings of the kubelet's topology manager
    demands          what a pod asks for, container by container
    columns          the zones of all nodes as arrays
    aligning         Filter: nodes without a zone for each container
    scoring          Score: LeastAllocated, MostAllocated, BalancedAllocation and LeastNUMANodes
    caching          what is known of nodes, as it is published, or without nodes that pods are about to use;
                     and log messages about missing and outdated objects
    over_reserve     what is known of nodes, less what pods have been promised since it was published
    placement        whether an object was published with the pods that the scheduler knows, and which zone a
                     container runs in, for preemption
    plugin           the plugin
"""
