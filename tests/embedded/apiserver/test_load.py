"""The server under load, in a process of its own, over TLS.

Machines are shared, so the bounds are on what the server uses of a processor, which limits its rate when it
has one for itself. Rates as such are measured with `python -m tests.embedded.apiserver.load`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvloop

from tests.embedded.apiserver.load import PODS, Load, Reached, measure, pod_requests, serving

pytestmark = pytest.mark.slow

_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="/proc tells what a process used")


@needs_proc
def test_a_large_cluster_loads_and_is_bound_with_watches_open():
    nodes, pods = 5_000, 20_000

    async def main() -> None:
        async with serving() as reached:
            found = await measure(reached, nodes=nodes, pods=pods, connections=32, watches=3)
        print(found)
        assert pods / found.creation_cpu > 1_500
        assert pods / found.binding_cpu > 1_500

    asyncio.run(main())


@needs_proc
def test_a_hundred_watches_get_every_event_in_order():
    """The pace is kept unless others use the machine, and the server has processor time to spare for it."""
    writes, per_second, watches = 1_000, 200, 100

    async def main() -> None:
        async with serving() as reached, Load(reached, 8) as load:
            seen: list[list[int]] = [[] for _ in range(watches)]

            def follow(versions: list[int]):
                def take(line: bytes) -> bool:
                    found = _VERSION.search(line)
                    if line.startswith(b'{"type":"BOOKMARK"'):
                        return False
                    assert line.startswith(b'{"type":"ADDED"')
                    assert found is not None
                    versions.append(int(found[1]))
                    return len(versions) == writes

                return load.watch("/api/v1/pods", take)

            tasks = [asyncio.create_task(follow(versions)) for versions in seen]
            await asyncio.sleep(1)  # all are open before the first write
            before = Used.now(reached)
            for number, (path, body) in enumerate(pod_requests(writes)):
                await load.send(path, body)
                await asyncio.sleep(max(0.0, before.time + number / per_second - time.perf_counter()))
            await asyncio.wait_for(asyncio.gather(*tasks), 60)
            used = Used.now(reached).since(before)
            rate, cpu = writes / used.time, used.server / writes
            print(
                f"{rate:.0f} writes/s to {watches} watches; processor: the server {cpu * 1e3:.2f} ms "
                f"per write, the client {used.client / writes * 1e3:.2f} ms, others {used.others:.1f} s"
            )
            first = seen[0][0]
            expected = list(range(first, first + writes))
            assert seen == [expected] * watches
            assert 1 / cpu > per_second
            assert rate > 0.95 * per_second or used.others > 0.25 * used.time

    uvloop.run(main())


@dataclass(frozen=True)
class Used:
    """Seconds: of the clock, and of processors by the server, by us, and by all other processes of the machine."""

    time: float
    server: float
    client: float
    others: float

    @classmethod
    def now(cls, reached: Reached) -> Used:
        user, nice, system, _, _, interrupts, soft, steal, *_ = map(
            int, Path("/proc/stat").read_text().split("\n")[0].split()[1:]
        )
        busy = (user + nice + system + interrupts + soft + steal) / os.sysconf("SC_CLK_TCK")
        server, client = reached.cpu_seconds(), time.process_time()
        return cls(time.perf_counter(), server, client, busy - server - client)

    def since(self, before: Used) -> Used:
        return Used(
            self.time - before.time,
            self.server - before.server,
            self.client - before.client,
            self.others - before.others,
        )


def test_a_slow_watcher_sees_a_beginning_without_gaps_and_then_a_410():
    async def main() -> None:
        async with serving("--watch-buffer", "500") as reached, Load(reached, 16) as load:
            url = f"{load.url}/api/v1/pods?watch=true&resourceVersion=0"
            async with load.session.get(url) as response:
                padding = "x" * 4_000
                bodies = []
                for path, body in pod_requests(10_000):
                    raw = json.loads(body)
                    raw["metadata"]["annotations"] = {"padding": padding}
                    bodies.append((path, json.dumps(raw).encode()))
                await load.send_all(bodies)
                lines = (await asyncio.wait_for(response.read(), 60)).splitlines()
            *events, last = (json.loads(line) for line in lines)
            versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
            assert 0 < len(versions) < 10_000
            assert versions == list(range(versions[0], versions[0] + len(versions)))
            assert (last["type"], last["object"]["code"]) == ("ERROR", 410)
            # A new watch is as good as ever.
            async with load.session.get(f"{load.url}{PODS}?limit=1") as response:
                assert response.status == 200

    asyncio.run(main())
