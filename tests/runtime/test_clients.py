"""Every call of the API port passes the fence: reads always, writes only with the lease."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from moorage.api.errors import NotSent
from moorage.api.resources import PODS, Resource
from moorage.framework.ports import ApiClient, DelegatingClient
from moorage.runtime.services import FencedClient

CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any], tuple[str, str]]] = {
    "list": ((PODS,), {"namespace": "a", "limit": 5}, ("list", "")),
    "watch": ((PODS,), {"resource_version": "1"}, ("watch", "")),
    "get": ((PODS, "p", "a"), {}, ("get", "")),
    "create": ((PODS, {}), {"dry_run": True}, ("create", "")),
    "replace": ((PODS, {}), {"subresource": "status"}, ("update", "status")),
    "patch": ((PODS, "p", {}), {"namespace": "a", "subresource": "status"}, ("patch", "status")),
    "delete": ((PODS, "p"), {"namespace": "a", "grace_period": 0}, ("delete", "")),
    "bind": (("p", "a", "uid", "n"), {}, ("create", "binding")),
}
READS = {"list", "watch", "get"}


class Recorder:
    """Stands for the client behind: keeps what arrives."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            self.calls.append((name, args, options))
            return None if name == "watch" else asyncio.sleep(0, name)

        return call


class Asking(DelegatingClient):
    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.asked: list[tuple[str, Resource, str]] = []

    def before(self, verb: str, resource: Resource, subresource: str = "") -> None:
        self.asked.append((verb, resource, subresource))


def send(client: Any, name: str) -> None:
    args, options, _ = CALLS[name]
    answer = getattr(client, name)(*args, **options)
    if inspect.iscoroutine(answer):
        asyncio.run(answer)


def test_the_table_has_every_call_of_the_port():
    assert set(CALLS) == {name for name in vars(ApiClient) if not name.startswith("_")}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_announced_and_passed_on_as_it_is(name):
    args, options, (verb, subresource) = CALLS[name]
    behind = Recorder()
    client = Asking(behind)
    send(client, name)
    assert client.asked == [(verb, PODS, subresource)]
    ((sent, given, passed),) = behind.calls
    assert (sent, given, passed) == (name, args, options)


@pytest.mark.parametrize("name", CALLS)
def test_without_the_lease_only_reads_are_sent(name):
    behind = Recorder()
    client = FencedClient(behind, lambda: False)
    if name in READS:
        send(client, name)
        assert len(behind.calls) == 1
    else:
        with pytest.raises(NotSent, match="no longer holds the lease"):
            send(client, name)
        assert behind.calls == []
    send(FencedClient(behind, lambda: True), name)
    assert behind.calls[-1][0] == name
