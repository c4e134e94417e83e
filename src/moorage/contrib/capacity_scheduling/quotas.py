"""ElasticQuota objects and their hierarchy: the guaranteed amounts and the limits of a quota.

A quota may name a parent in an annotation. Its pods then count towards the parent too, and towards all levels above.
The guaranteed amount of a quota is its min, or the sum of its children's guaranteed amounts if that is larger; the
excess over the children is for pods of the quota's own namespace. All quotas without a parent are below the root, whose
amount is the sum of theirs.

A resource that max does not name is unlimited; one that min does not name is not guaranteed. Amounts are the integers
of `api.requests`: milli-cpu, bytes, counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from moorage.api.errors import QuantityError
from moorage.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, resource_value
from moorage.api.resources import Unstructured, custom
from moorage.contrib.definitions import amounts, definition

ELASTICQUOTAS = custom("scheduling.x-k8s.io", "v1alpha1", "elasticquotas", "ElasticQuota")
PARENT = "moorage.dev/parent"
"""The annotation that names the parent: `namespace/name`, or a name that no other quota has."""

Amounts = Mapping[str, int]
"""Resource → amount."""

_NATIVE = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))
"""Held against a quota even by a pod that requests none of them."""


def add(total: dict[str, int], more: Amounts, sign: int = 1) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + sign * amount


class QuotaLevel:
    """A share of the cluster, and its usage, which includes the pods of all levels below."""

    __slots__ = ("min", "parent", "used")

    def __init__(self, used: dict[str, int]) -> None:
        self.used = used
        """The account keeps it up to date."""
        self.min: dict[str, int] = {}
        """What is guaranteed."""
        self.parent: QuotaLevel | None = None
        """None for the root."""

    def path(self) -> Iterator[QuotaLevel]:
        """Return this level and those above, up to the root."""
        level: QuotaLevel | None = self
        while level is not None:
            yield level
            level = level.parent

    def over_min_with(self, asked: Amounts) -> bool:
        """Return whether pods with these requests would exceed the guaranteed amount."""
        names = _NATIVE | asked.keys()
        return any(_sum(name, self.used, asked) > self.min.get(name, 0) for name in names)

    def over_min(self, change: Amounts) -> bool:
        """Return whether the level borrows, after a change of usage."""
        return any(_sum(name, self.used, change) > self.min.get(name, 0) for name in self.used)

    def exhausted_with(self, asked: Amounts, change: Amounts) -> bool:
        """Return whether existing pods, or pods with these requests, exceed the guaranteed amount of any resource."""
        names = self.used.keys() | asked.keys()
        return any(_sum(n, self.used, asked, change) > self.min.get(n, 0) for n in names)


class Quota(QuotaLevel):
    """The quota of one namespace."""

    __slots__ = ("leaf", "max", "name", "namespace", "parent_name", "problem", "remark", "spec_min")

    def __init__(self, obj: Unstructured, used: dict[str, int]) -> None:
        super().__init__(used)
        self.namespace, self.name = obj.namespace, obj.name
        self.problem = ""
        """Why the object cannot be read; no pod of the namespace may run until it can."""
        self.spec_min = self._read(obj, "min")
        self.max = self._read(obj, "max")
        self.parent_name = obj.metadata.annotations.get(PARENT, "")
        self.remark = ""
        """Why it has no parent although it names one."""
        self.leaf: QuotaLevel = self
        """What pods of the namespace itself count on: the quota, or a part of it where it has children."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def _read(self, obj: Unstructured, field: str) -> dict[str, int]:
        amounts = {}
        for name, text in (obj.get("spec", field) or {}).items():
            try:
                amounts[name] = resource_value(name, text)
            except QuantityError:
                where = f"ElasticQuota {obj.key}: spec.{field}.{name}"
                self.problem = f'{where}: {text!r} is not a quantity: write a number such as "500m" or "2Gi"'
        return amounts

    def over_max_with(self, asked: Amounts, change: Amounts) -> bool:
        """Return whether pods with these requests would exceed max, after a change of usage."""
        names = _NATIVE | asked.keys()
        limits = ((name, self.max[name]) for name in names if name in self.max)
        return any(_sum(name, self.used, asked, change) > limit for name, limit in limits)


def _sum(name: str, *parts: Amounts) -> int:
    return sum(part.get(name, 0) for part in parts)


def link(quotas: Mapping[str, Quota], own: Mapping[str, dict[str, int]]) -> QuotaLevel:
    """Link the quotas of all namespaces into their hierarchy and return the root. `own` is the usage of each
    namespace."""
    parents = parents_of(quotas.values())
    children: dict[Quota, list[Quota]] = {}
    for quota, parent in parents.items():
        children.setdefault(parent, []).append(quota)
    root = QuotaLevel({})
    for quota in sorted(quotas.values(), key=lambda quota: -len([*_ancestors(quota, parents)])):
        quota.parent = parents.get(quota, root)
        quota.leaf, quota.used, quota.min = quota, own[quota.namespace], dict(quota.spec_min)
        if below := children.get(quota):
            _sum_up(quota, below)
    roots = [quota for quota in quotas.values() if quota not in parents]
    root.min, root.used = _total(quota.min for quota in roots), _total(quota.used for quota in roots)
    return root


def parents_of(quotas: Iterable[Quota]) -> dict[Quota, Quota]:
    """Return the parents of the quotas that have one. If the named parent does not exist or is below the quota itself,
    the quota has none, and its remark says why."""
    by_name: dict[str, list[Quota]] = {}
    for quota in quotas:
        for name in (quota.key, quota.name):
            by_name.setdefault(name, []).append(quota)
    parents: dict[Quota, Quota] = {}
    for quota in quotas:
        quota.remark = ""
        named = by_name.get(quota.parent_name, []) if quota.parent_name else []
        if len(named) == 1:
            parents[quota] = named[0]
        elif quota.parent_name:
            several = f'several quotas are called "{quota.parent_name}": write namespace/name'
            none = f'there is no quota "{quota.parent_name}" that counts: create it or name another'
            quota.remark = _remark(several if named else none)
    circle = [quota for quota in parents if quota in _ancestors(quota, parents)]
    for quota in circle:
        quota.remark = _remark(f'"{quota.parent_name}" is below this quota: name another')
        del parents[quota]
    return parents


def _remark(what: str) -> str:
    return f"annotation {PARENT}: {what}; until then this one has no parent"


def _ancestors(quota: Quota, parents: Mapping[Quota, Quota]) -> Iterator[Quota]:
    """Yield the parent and its ancestors, each once."""
    seen: set[Quota] = set()
    above = parents.get(quota)
    while above is not None and above not in seen:
        seen.add(above)
        yield above
        above = parents.get(above)


def _sum_up(quota: Quota, children: Iterable[Quota]) -> None:
    """Add up the amounts of a quota and its children. The excess over the children is for the quota's own pods."""
    shares = _total(child.min for child in children)
    quota.min = {n: max(quota.min.get(n, 0), shares.get(n, 0)) for n in quota.min.keys() | shares.keys()}
    quota.leaf = QuotaLevel(quota.used)
    quota.leaf.parent = quota
    quota.leaf.min = {name: amount - shares.get(name, 0) for name, amount in quota.min.items()}
    quota.used = _total((quota.used, *(child.used for child in children)))


def _total(parts: Iterable[Amounts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        add(total, part)
    return total


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
