"""A process that writes to a data directory under load until it is killed. Run by `test_killed`.

It tells on its standard output what it is about to write and what has been acknowledged, a line each,
straight to the pipe, so that the lines survive it.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time

from moorage.api.resources import PODS
from moorage.embedded.durable.opening import open_data_dir
from moorage.store.store import Store
from tests.store.kit import pod

WRITERS = 16


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def write(store: Store, name: str, rng: random.Random) -> None:
    """Creates, changes, deletes and creates one pod again and again."""
    exists = any(stored.name == name for stored in store.list(PODS, field_selector=f"metadata.name={name}").items)
    for step in range(sys.maxsize):
        remove = exists and rng.random() < 0.3
        say("will", "delete" if remove else "put", name)
        if remove:
            version = store.delete(PODS, name, namespace="default").version
        elif exists:
            labels = {"step": f"{step}-{rng.random()}"}
            version = store.patch(PODS, name, {"metadata": {"labels": labels}}, namespace="default").version
        else:
            version = store.create(PODS, pod(name)).version
        await store.settled()
        say("done", "delete" if remove else "put", name, version)
        exists = not remove


async def main(path: str, seed: int) -> None:
    data = open_data_dir(path, time.time, random.Random(seed))
    say("started", data.store.version)
    rng = random.Random(seed)
    await asyncio.gather(*(write(data.store, f"p{number}", rng) for number in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
