"""The CustomResourceDefinition of ElasticQuota. It is that of scheduler-plugins in other words, so either
serves."""

from __future__ import annotations

from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS
from moorage.contrib.definitions import amounts, definition

DEFINITION = definition(
    ELASTICQUOTAS,
    "What the pods of a namespace may use, and what they are sure to get.",
    short_names=("eq", "eqs"),
    approval=52,
    columns=(
        ("Used", ".status.used", "string"),
        ("Max", ".spec.max", "string"),
        ("Age", ".metadata.creationTimestamp", "date"),
    ),
    spec={
        "min": amounts("Guaranteed; others may borrow what is not used of it."),
        "max": amounts("Not to be exceeded; unlimited what is not named."),
    },
    status={
        "used": amounts("What the pods with a node request, those of quotas below this one included."),
        "message": {"type": "string", "description": "What is wrong with the parent that it names."},
    },
)
