"""The ceiling of an API server: a process that does nothing but bind the measured pods to the nodes in turn.

python -m moorage.bench.cluster.ceiling KUBECONFIG
"""

from __future__ import annotations

import asyncio
import sys

from moorage.api.resources import NODES, PODS
from moorage.app.clock import SystemClock
from moorage.bench.cluster.bed import LABEL, MEASURED, each
from moorage.client.connection import connect, default_user_agent, find
from moorage.framework.ports import ApiClient

BINDS_AT_ONCE = 64


async def bind_all(client: ApiClient) -> int:
    """Bind every pending measured pod. Return their number."""
    nodes = [node.name for node in (await client.list(NODES, label_selector=LABEL)).items]
    pods = (await client.list(PODS, label_selector=f"{LABEL}={MEASURED}", field_selector="spec.nodeName=")).items
    # Opening the connections is not what is measured.
    await each(range(BINDS_AT_ONCE), lambda _: client.get(NODES, nodes[0]), BINDS_AT_ONCE)
    bindings = [(pod, nodes[index % len(nodes)]) for index, pod in enumerate(pods)]
    await each(bindings, lambda pair: client.bind(pair[0].name, pair[0].namespace, pair[0].uid, pair[1]), BINDS_AT_ONCE)
    return len(bindings)


async def main(kubeconfig: str) -> None:
    """Bind, and stay until the process is ended, so that its CPU time can be read."""
    client = connect(await find(kubeconfig), SystemClock(), qps=0, user_agent=default_user_agent("bench"))
    try:
        await bind_all(client)
        await asyncio.Event().wait()
    finally:
        await client.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
