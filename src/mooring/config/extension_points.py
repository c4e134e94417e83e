"""The names of the extension points: as written in a configuration, and as Go's interfaces are called.

Upstream's messages name the interface (`FilterPlugin "x" does not exist`). What a point does is the
framework's business.
"""

MULTI_POINT = "multiPoint"

# Wire name -> Go interface, in the order in which upstream builds the points; that order decides which
# interface a message about an unknown multiPoint plugin names.
GO_TYPES: dict[str, str] = {
    "preFilter": "PreFilterPlugin",
    "filter": "FilterPlugin",
    "postFilter": "PostFilterPlugin",
    "reserve": "ReservePlugin",
    "preScore": "PreScorePlugin",
    "score": "ScorePlugin",
    "preBind": "PreBindPlugin",
    "bind": "BindPlugin",
    "postBind": "PostBindPlugin",
    "permit": "PermitPlugin",
    "preEnqueue": "PreEnqueuePlugin",
    "queueSort": "QueueSortPlugin",
}

# The points in the order in which a pod meets them.
POINTS: tuple[str, ...] = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)

# Accepted in a file because v1 has them, but nothing runs them yet.
UNSUPPORTED_POINTS: tuple[str, ...] = ("placementGenerate", "placementScore")
