import asyncio

import pytest

from moorage.embedded.controllers.writes import MAX_BURST, slow_start


def sizes_of(count, fails_at=None):
    """How many acts begin before the first of them ends, batch by batch."""
    begun, sizes = [], []

    async def act(number):
        begun.append(number)
        await asyncio.sleep(0)
        if begun:
            sizes.append(len(begun))
            begun.clear()
        if number == fails_at:
            raise ValueError(number)

    return act, sizes


def test_batches_grow_to_a_limit():
    act, sizes = sizes_of(300)
    asyncio.run(slow_start(range(300), act))
    assert sizes == [1, 2, 4, 8, 16, 32, MAX_BURST, MAX_BURST, MAX_BURST, 300 - 63 - 3 * MAX_BURST]


def test_nothing_is_begun_after_a_failure():
    act, sizes = sizes_of(300, fails_at=4)
    with pytest.raises(ValueError, match="4"):
        asyncio.run(slow_start(range(300), act))
    assert sizes == [1, 2, 4]


def test_nothing_to_do_is_done():
    asyncio.run(slow_start([], lambda item: asyncio.sleep(0)))
