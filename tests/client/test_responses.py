"""What answers mean: errors, lists with bad objects in them, and answers of unknown servers."""

import json
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from moorage.api import errors
from moorage.api.errors import BadAnswer, ObjectError
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS, custom
from moorage.client import responses
from moorage.client.responses import Answer
from moorage.client.transport import HttpRequest
from moorage.framework.ports import Malformed

WALL = 1_767_225_600.0
GET = HttpRequest("GET", "/api/v1/pods")
WIDGETS = custom("example.com", "v1", "widgets", "Widget")


def failure(status: int, body: bytes = b"", **headers: str) -> errors.ApiError:
    return responses.failure(Answer(status, headers, body), GET, WALL)


def status_body(**fields: object) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", **fields}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServiceUnavailable),
        (504, "Timeout", errors.GatewayTimeout),
    ],
)
def test_every_failure_has_its_error(code, reason, kind):
    error = failure(code, status_body(code=code, reason=reason, message="why"))
    assert (type(error), error.code, error.status.message) == (kind, code, "why")
    assert type(failure(code)) is kind or reason == "AlreadyExists", "the code alone tells as well"


def http_date(seconds: float) -> str:
    return format_datetime(datetime.fromtimestamp(WALL + seconds, UTC), usegmt=True)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        (" 3 ", 3.0),
        ("1000000000", 60.0),
        ("9" * 400, 60.0),
        (http_date(5), 5.0),
        (http_date(-100), 0.0),
        (http_date(10**6), 60.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("\u0667", None),
        ("Thu, 99 Foo 2026 99:99:99 GMT", None),
    ],
)
def test_a12_retry_after(header, seconds):
    for code in (429, 503):
        assert failure(code, **{"retry-after": header}).retry_after == seconds


def test_retry_after_in_the_status_counts_if_there_is_no_header():
    assert failure(429, status_body(code=429, details={"retryAfterSeconds": 4})).retry_after == 4.0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the API server gave no message"),
        (b"upstream connect error\r\n\x1b[31mred", "upstream connect error [31mred"),
        (b'{"kind": "Pod"}', '{"kind": "Pod"}'),
        (b"\xff\xfe", "\ufffd"),
    ],
)
def test_failures_without_a_status_show_what_came_on_one_line(body, message):
    error = failure(502, body)
    assert isinstance(error, errors.ServerError)
    assert message in str(error)
    assert "\x1b" not in str(error)


def test_long_answers_are_shown_in_part():
    assert len(str(failure(500, b"x" * 10**6))) < 400


def test_a31_a_redirect_is_an_error_that_names_where_to():
    error = failure(302, location="https://login.example.com/?next=api")
    assert "redirected to https://login.example.com/?next=api, which is not followed" in str(error)


# Objects and lists


def test_a31_a_page_in_place_of_an_object_is_an_error():
    for read in (responses.read_object, responses.read_list):
        with pytest.raises(BadAnswer, match=r"an HTML page.*proxies on the way"):
            read(PODS, b"\n<html><body>Sign in</body></html>", GET)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"kind": "Table", "rows": []}', "found a Table"),
        (b'{"kind": "NodeList", "items": []}', "found a NodeList"),
        (b'{"items": []}', "found an object without kind"),
        (b'{"kind": "PodList", "items": [', "no JSON of the API"),
        (b"[]", "no JSON of the API"),
        (b"", "no JSON of the API"),
        (b'{"kind": "PodList", "items": 3}', "no JSON of the API"),
    ],
)
def test_lists_of_anything_else_are_errors(body, message):
    with pytest.raises(BadAnswer, match=message):
        responses.read_list(PODS, body, GET)


def test_an_object_of_another_kind_is_an_error():
    with pytest.raises(BadAnswer, match="expected a Pod, found a Node"):
        responses.read_object(PODS, b'{"kind": "Node"}', GET)


def test_a_malformed_object_names_its_field():
    with pytest.raises(ObjectError, match=r"Pod a/p: metadata\.labels"):
        responses.read_object(PODS, b'{"kind": "Pod", "metadata": {"name": "p", "namespace": "a", "labels": 3}}', GET)


def test_a_custom_list_may_be_called_anything():
    envelope = responses.read_list(WIDGETS, b'{"kind": "ListOfWidgetsList", "items": null}', GET)
    assert envelope.items is None


def test_a27_one_malformed_object_does_not_cost_the_others():
    items = [{"metadata": {"name": f"p{i}", "namespace": "a"}} for i in range(10_000)]
    items[1234]["spec"] = {"priority": "high"}
    body = json.dumps({"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": items}).encode()
    envelope = responses.read_list(PODS, body, GET)
    read = responses.item_reader(PODS)
    good, bad = responses.list_parts([read(raw) for raw in envelope.items or []])
    assert len(good) == 9_999
    assert all(isinstance(obj, Pod) for obj in good)
    assert [(problem.key, "spec.priority" in problem.error) for problem in bad] == [("a/p1234", True)]


def test_what_is_no_object_at_all_is_set_aside_too():
    read = responses.item_reader(NODES)
    assert all(isinstance(read(raw), Malformed) for raw in (b"null", b"3", b'"x"', b"[]"))


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip"])
def test_a28_answers_that_would_have_to_be_inflated_are_refused(encoding):
    with pytest.raises(BadAnswer, match="look for a proxy"):
        responses.check_encoding({"content-encoding": encoding}, GET)
    responses.check_encoding({}, GET)
    responses.check_encoding({"content-encoding": "identity"}, GET)
