"""Every queue test runs with the five-minute flush and without it, where a lost wake-up stays lost."""

from __future__ import annotations

import pytest

from tests.queue.kit import World


@pytest.fixture(params=[300.0, None], ids=["flush on", "flush off"])
def flush_after(request):
    return request.param


@pytest.fixture
def world(flush_after):
    return World(flush_after)
