"""A small blocking client for the tests' own requests, apart from Moorage's: plain objects in and out."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from moorage.api import resources as kinds
from moorage.api.resources import Resource

Json = dict[str, Any]

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class ApiProblem(Exception):
    """An answer that is not a success."""

    def __init__(self, method: str, path: str, status: int, body: str) -> None:
        super().__init__(f"{method} {path}: {status} {body[:500]}")
        self.status = status


class Api:
    """One server with one credential. Connections are kept and shared; any thread may call."""

    def __init__(self, server: str, context: ssl.SSLContext, token: str = "") -> None:
        self.server = server
        self._address = urlsplit(server)
        self._context = context
        self._headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._idle: list[http.client.HTTPSConnection] = []

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """The decoded answer; a connection that the server has closed meanwhile is opened once more."""
        target = f"{path}?{urlencode(query)}" if query else path
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Content-Type": content_type}
        status, kind, text = self._exchange(method, target, data, headers)
        if status >= 400:
            raise ApiProblem(method, target, status, text.decode(errors="replace"))
        return json.loads(text) if kind == "application/json" else text.decode()

    def _exchange(
        self, method: str, target: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, str, bytes]:
        for last in (False, True):
            connection = self._connection(fresh=last)
            try:
                connection.request(method, target, data, headers)
                response = connection.getresponse()
                text = response.read()
            except (http.client.HTTPException, OSError):
                connection.close()
                if last:
                    raise
            else:
                self._idle.append(connection)
                return response.status, response.headers.get_content_type(), text
        raise AssertionError("unreachable")

    def _connection(self, fresh: bool) -> http.client.HTTPSConnection:
        try:
            if not fresh:
                return self._idle.pop()
        except IndexError:
            pass
        assert self._address.hostname
        return http.client.HTTPSConnection(
            self._address.hostname, self._address.port, context=self._context, timeout=60
        )

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()

    # Objects. The kind of a written object says where it goes.

    def create(self, obj: Json, *, namespace: str = "", subresource: str = "", dry_run: bool = False) -> Json:
        resource = resource_of(obj)
        space = obj["metadata"].get("namespace") or namespace or "default"
        name = obj["metadata"].get("name", "") if subresource else ""
        query = {"dryRun": "All"} if dry_run else None
        answer: Json = self.request("POST", path(resource, space, name, subresource), obj, query=query)
        return answer

    def create_all(self, objects: Iterable[Json], *, namespace: str = "", workers: int = 8) -> list[Json]:
        """Many at once; order of creation is not kept."""
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(lambda obj: self.create(obj, namespace=namespace), objects))

    def apply(self, obj: Json, *, namespace: str = "", dry_run: bool = False) -> Json:
        """Server-side apply."""
        resource = resource_of(obj)
        space = obj["metadata"].get("namespace") or namespace or "default"
        query = {"fieldManager": "test", "force": "true"} | ({"dryRun": "All"} if dry_run else {})
        target = path(resource, space, obj["metadata"]["name"])
        answer: Json = self.request("PATCH", target, obj, content_type=APPLY, query=query)
        return answer

    def get(self, resource: Resource, name: str, namespace: str = "default") -> Json:
        answer: Json = self.request("GET", path(resource, namespace, name))
        return answer

    def find(self, resource: Resource, name: str, namespace: str = "default") -> Json | None:
        """None when there is none."""
        try:
            return self.get(resource, name, namespace)
        except ApiProblem as problem:
            if problem.status != 404:
                raise
            return None

    def list(self, resource: Resource, namespace: str = "", **query: str) -> list[Json]:
        return list(self.listing(resource, namespace, **query)["items"])

    def listing(self, resource: Resource, namespace: str = "", **query: str) -> Json:
        """The whole answer, with its resourceVersion."""
        answer: Json = self.request("GET", path(resource, namespace), query=query)
        return answer

    def replace(self, obj: Json, *, subresource: str = "") -> Json:
        resource, meta = resource_of(obj), obj["metadata"]
        target = path(resource, meta.get("namespace", ""), meta["name"], subresource)
        answer: Json = self.request("PUT", target, obj)
        return answer

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str = "default",
        *,
        subresource: str = "",
        content_type: str = MERGE,
    ) -> Json:
        target = path(resource, namespace, name, subresource)
        answer: Json = self.request("PATCH", target, patch, content_type=content_type)
        return answer

    def delete(self, resource: Resource, name: str, namespace: str = "default", *, now: bool = False) -> None:
        """`now` does not wait for a kubelet."""
        body = {"gracePeriodSeconds": 0} if now else None
        try:
            self.request("DELETE", path(resource, namespace, name), body)
        except ApiProblem as problem:
            if problem.status != 404:
                raise

    def delete_all(self, resource: Resource, namespace: str = "") -> None:
        """Every object of the kind, without waiting for a kubelet."""
        found = self.list(resource, namespace)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda obj: self._remove(resource, obj["metadata"]), found))

    def _remove(self, resource: Resource, meta: Json) -> None:
        name, namespace = meta["name"], meta.get("namespace", "")
        if meta.get("finalizers"):
            try:
                self.patch(resource, name, {"metadata": {"finalizers": None}}, namespace)
            except ApiProblem as problem:
                if problem.status != 404:
                    raise
        self.delete(resource, name, namespace, now=True)


def resource_of(obj: Json) -> Resource:
    found = kinds.by_kind(obj["kind"], obj["apiVersion"])
    if found is None:
        group, _, version = obj["apiVersion"].rpartition("/")
        return kinds.custom(group, version, obj["kind"].lower() + "s", obj["kind"])
    return found


def path(resource: Resource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    parts = [resource.path_prefix]
    if resource.namespaced and namespace:
        parts += ["namespaces", quote(namespace)]
    parts.append(resource.plural)
    parts += [quote(part) for part in (name, subresource) if part]
    return "/".join(parts)


def eventually(check: Callable[[], Any], seconds: float = 30.0, what: str = "") -> Any:
    """The first true answer; a failed assertion with the last answer when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (answer := check()):
        assert time.monotonic() < deadline, f"not in {seconds:g} s: {what or check}; last: {answer!r}"
        time.sleep(0.1)
    return answer


def batches(items: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
