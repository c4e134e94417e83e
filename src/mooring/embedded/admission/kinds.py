"""What the rules of one kind consist of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mooring.embedded.admission import names
from mooring.embedded.admission.problems import Problems
from mooring.store.objects import Raw
from mooring.store.rules import Cluster


def _same(raw: Raw) -> Raw:
    return raw


def _as_created(raw: Raw, cluster: Cluster) -> Raw:
    return raw


def _as_updated(new: Raw, old: Raw, cluster: Cluster) -> Raw:
    return new


def _fine(raw: Raw, problems: Problems) -> None:
    return


def _may_change(new: Raw, old: Raw, problems: Problems) -> None:
    return


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one kind, each a function of plain objects; none of them changes its arguments.

    A new object goes through `default`, `admit`, `check` and `check_new`; a changed one through `default`,
    `carry`, `check` and `check_update`; a changed status through `default_status` and `check_status`.
    """

    default: Callable[[Raw], Raw] = _same
    """Fills in what is not given, whenever an object is read from a client."""
    default_status: Callable[[Raw], Raw] = _same
    """The same for a write to the status."""
    admit: Callable[[Raw, Cluster], Raw] = _as_created
    """Fills in, once, what depends on the rest of the cluster; may refuse."""
    carry: Callable[[Raw, Raw, Cluster], Raw] = _as_updated
    """Takes over into the new state what an update does not say or cannot change."""
    check: Callable[[Raw, Problems], None] = _fine
    check_new: Callable[[Raw, Problems], None] = _fine
    """What holds besides when an object is created."""
    check_update: Callable[[Raw, Raw, Problems], None] = _may_change
    """Of the new and the old state."""
    check_status: Callable[[Raw, Raw, Problems], None] = _may_change
    name: names.Check = names.subdomain
    first_status: Raw | None = None
    """What the status of a new object is, whatever the client says; None leaves it to the client."""
