"""How the pages write ages and addresses."""

from __future__ import annotations

import pytest

from moorage.web.pages.text import address, age, node_url, pod_url


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-5, "0s"), (119, "119s"), (200, "3m20s"), (3600, "60m"), (18600, "5h10m"), (200_000, "2d")],
)
def test_ages_are_as_kubectl_shows_them(seconds, expected):
    assert age(seconds) == expected


def test_addresses_quote_whatever_a_name_has():
    assert pod_url("a/b/c?d#e") == "/pod/a/b%2Fc%3Fd%23e"
    assert node_url("../x") == "/node/..%2Fx"
    assert address("/", {"search": "a&b", "reason": ""}) == "/?search=a%26b"
