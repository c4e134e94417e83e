"""GPUs that pods share: whole cards and parts of one card, 1,000 milli each, in the model of "Beware of
Fragmentation" (USENIX ATC 2023).

    requests         what a pod asks for, and the cards that it has
    cards            what is free on every card, as a column of the node table
    gpu_share        the plugin that keeps account: Filter, Reserve and PreBind
    packing          BestFit, DotProduct, GpuPacking, GpuClustering and GpuLeastFree, for Score
    fragmentation    how much idle GPU typical pods cannot use
    fgd              Fragmentation Gradient Descent, for Score
"""
