"""Answers that are used again. `cache.ReuseCache.find` gives every attempt its baseline.

    cache         which baseline an attempt gets, what is kept, and for how long
    signatures    what of a pod the plugins read, as keys; what beside the pod their answers depend on
    node_set      known per node set: plugins that look at nodes alone
    template      known per template: plugins that look at one row at a time
    refreshing    a template's baseline brought up to date: changed rows are judged again
    turns         templates whose pods take turns: a changed row is judged for all of them at once
    best_rows     the next best row without looking at all of them
    incremental   scores that depend on pods anywhere, kept up to date by their plugins

The types `Baseline` and `NothingKnown` are in `runtime/attempt.py`, beside the attempt that uses them.
"""
