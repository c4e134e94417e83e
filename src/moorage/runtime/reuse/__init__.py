"""Reuse of plugin results. `cache.ReuseCache.find` gives every attempt its baseline.

    cache         which baseline an attempt gets, what is kept, and for how long
    signatures    what plugins read of a pod, as keys; what else their answers depend on
    node_set      known per node set: plugins that depend on nodes only
    template      known per template: plugins that depend on one row at a time
    refreshing    updates a template's baseline: changed rows are judged again
    turns         templates whose pods take turns: a changed row is judged for all of them at once
    best_rows     the next best row without checking all of them
    incremental   scores that depend on pods anywhere, kept up to date by their plugins

The types `Baseline` and `NothingKnown` are in `runtime/attempt.py`, beside the attempt that uses them.
"""
