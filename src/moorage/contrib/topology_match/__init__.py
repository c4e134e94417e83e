"""NodeResourceTopologyMatch: reject nodes whose kubelet would reject the pod because of its NUMA zones, and score nodes
by their zones. Follows pkg/noderesourcetopology of scheduler-plugins (KEP-119, KEP-454).

    args             the arguments
    topology         the definition of NodeResourceTopology, and one such object: zones,
                     and the settings of the kubelet's topology manager
    demands          the requests of a pod, container by container
    columns          the zones of all nodes as arrays
    aligning         Filter: nodes without a zone for each container
    scoring          Score: LeastAllocated, MostAllocated, BalancedAllocation and LeastNUMANodes
    caching          the objects as published, or without nodes that pods are being bound to;
                     and log messages about missing and outdated objects
    over_reserve     the objects, minus the requests of pods placed since they were published
    placement        whether an object was published with the pods that the scheduler knows, and which zone a
                     container runs in, for preemption
    plugin           the extension points
"""
