"""The API client that a plugin gets: only what its `needs` declare passes."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.resources import Resource
from mooring.framework.access import Access
from mooring.framework.ports import ApiClient, DelegatingClient


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
