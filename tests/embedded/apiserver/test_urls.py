import pytest

from moorage.api.errors import BadRequest
from moorage.embedded.apiserver import urls
from moorage.embedded.apiserver.urls import Path


@pytest.mark.parametrize(
    ("url", "parsed"),
    [
        ("/api/v1/pods", Path("", "v1", "pods")),
        ("/api/v1/pods/", Path("", "v1", "pods")),
        ("/api/v1/nodes/n1", Path("", "v1", "nodes", "", "n1")),
        ("/api/v1/nodes/n1/status", Path("", "v1", "nodes", "", "n1", "status")),
        ("/api/v1/namespaces", Path("", "v1", "namespaces")),
        ("/api/v1/namespaces/a", Path("", "v1", "namespaces", "", "a")),
        ("/api/v1/namespaces/a/status", Path("", "v1", "namespaces", "", "a", "status")),
        ("/api/v1/namespaces/a/finalize", Path("", "v1", "namespaces", "", "a", "finalize")),
        ("/api/v1/namespaces/a/pods", Path("", "v1", "pods", "a")),
        ("/api/v1/namespaces/a/pods/b", Path("", "v1", "pods", "a", "b")),
        ("/api/v1/namespaces/a/pods/b/binding", Path("", "v1", "pods", "a", "b", "binding")),
        ("/api/v1/namespaces/a/pods/b/proxy/x/y", Path("", "v1", "pods", "a", "b", "proxy/x/y")),
        ("/api/v1/watch/pods", Path("", "v1", "pods", watch=True)),
        ("/api/v1/watch/namespaces/a/pods/b", Path("", "v1", "pods", "a", "b", watch=True)),
        ("/apis/apps/v1/deployments", Path("apps", "v1", "deployments")),
        ("/apis/apps/v1/namespaces/a/deployments/b/scale", Path("apps", "v1", "deployments", "a", "b", "scale")),
        ("/apis/example.com/v1/watch", Path("example.com", "v1", "watch")),
        ("/", None),
        ("", None),
        ("/api", None),
        ("/api/v1", None),
        ("/api/v1/", None),
        ("/apis", None),
        ("/apis/apps", None),
        ("/apis/apps/v1", None),
        ("/apis/apps/v1/", None),
        ("/other/v1/pods", None),
        ("/api/v1//pods", None),
        ("/api/v1/namespaces//pods", None),
        ("/api/v1/pods//log", None),
        ("api/v1/pods", None),
    ],
)
def test_a_url_names_an_object_or_nothing(url: str, parsed: Path | None):
    assert urls.parse_path(url) == parsed


ONE, MANY = Path("", "v1", "pods", "a", "b"), Path("", "v1", "pods", "a")


@pytest.mark.parametrize(
    ("method", "path", "watch", "verb"),
    [
        ("GET", ONE, False, "get"),
        ("HEAD", ONE, False, "get"),
        ("GET", ONE, True, "get"),
        ("GET", ONE._replace(watch=True), False, "watch"),
        ("GET", MANY, False, "list"),
        ("GET", MANY, True, "watch"),
        ("GET", MANY._replace(watch=True), False, "watch"),
        ("POST", MANY, False, "create"),
        ("POST", ONE, False, ""),
        ("POST", ONE._replace(subresource="binding"), False, "create"),
        ("PUT", ONE, False, "update"),
        ("PUT", MANY, False, ""),
        ("PATCH", ONE, False, "patch"),
        ("PATCH", MANY, False, ""),
        ("DELETE", ONE, False, "delete"),
        ("DELETE", MANY, False, "deletecollection"),
        ("OPTIONS", ONE, False, ""),
        ("TRACE", MANY, False, ""),
    ],
)
def test_method_and_path_make_the_verb(method: str, path: Path, watch: bool, verb: str):
    assert urls.verb_of(method, path, watch) == verb


@pytest.mark.parametrize(
    "raw",
    [
        b"/api/v1/pods/..",
        b"/api/v1/./pods",
        b"/../etc/passwd",
        b"/api/v1/pods/a%2Fb",
        b"/api/v1/pods/a%2fb",
        b"/api/v1/pods/%2e%2e",
        b"/api/v1/pods/a%00",
        b"/api/v1/pods/a%5Cb",
        b"/api/v1/pods/a\\b",
    ],
)
def test_paths_that_can_be_read_in_two_ways_are_refused(raw: bytes):
    with pytest.raises(BadRequest, match="path of the request"):
        urls.check_path(raw)


@pytest.mark.parametrize("raw", [b"/api/v1/pods/a.b", b"/api/v1/pods/a..b", b"/apis/a.b/v1/c", b"/.well-known/x"])
def test_dots_inside_names_are_fine(raw: bytes):
    urls.check_path(raw)
