"""The API clients that the scheduler and its plugins get: fenced by the lease, guarded by declarations.

The fence asks right before each write whether this replica leads. Reading is always allowed: a replica that
has lost the lease may still have to learn what became of a bind that it had sent. The guard passes on only
what a plugin's `needs` declare."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.api.errors import NotSent
from mooring.api.resources import Resource
from mooring.framework.access import Access
from mooring.framework.ports import ApiClient, DelegatingClient

MayWrite = Callable[[], bool]

READS = frozenset(("get", "list", "watch"))
NOT_LEADING = "not sent: this replica no longer holds the lease"


def always() -> bool:
    """For a scheduler that is alone."""
    return True


class FencedClient(DelegatingClient):
    """A write without the lease raises NotSent."""

    def __init__(self, client: ApiClient, may_write: MayWrite) -> None:
        super().__init__(client)
        self._may_write = may_write

    def before(self, verb: str, resource: Resource, subresource: str = "") -> None:
        if verb not in READS and not self._may_write():
            raise NotSent(NOT_LEADING)


class GuardedClient(DelegatingClient):
    """Passes the declared calls on. The same declarations become RBAC rules, so what passes here passes on
    the cluster."""

    def __init__(self, client: ApiClient, plugin: str, needs: Sequence[Access]) -> None:
        super().__init__(client)
        self._plugin = plugin
        self._allowed = {(need.resource, need.subresource, verb) for need in needs for verb in need.verbs}

    def before(self, verb: str, resource: Resource, subresource: str = "") -> None:
        if (resource, subresource, verb) not in self._allowed:
            raise undeclared(self._plugin, Access(resource, (verb,), subresource))


def undeclared(plugin: str, access: Access) -> PermissionError:
    """The refusal of a kind or verb that is not among the plugin's `needs`, with the line to add."""
    verbs = "".join(f"{verb!r}, " for verb in access.verbs).rstrip()
    what = f"{access.resource}/{access.subresource}" if access.subresource else str(access.resource)
    sub = f', subresource="{access.subresource}"' if access.subresource else ""
    return PermissionError(
        f"plugin {plugin!r} uses {what} ({', '.join(access.verbs)}) without declaring it: "
        f"add Access(<{access.resource.kind}>, ({verbs}){sub}) to its `needs`"
    )
