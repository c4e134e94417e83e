"""The story of the sample plugin, typed by a user with kubectl: pending, the reason, the label, running."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from moorage.cli.story import APP, DEPLOYMENT, LABELLED, Story
from tests.kubectl.runner import Kubectl

REFUSED = (
    r"Warning +FailedScheduling +\S+ +sample-scheduler +0/4 nodes are available: 1 Node: k8s, 1 Node: node1, "
    r"1 node\(s\) had untolerated taint\(s\), 1 node\(s\) were unschedulable\."
)


def test_the_story_with_kubectl(programs: list[Path], home: Path) -> None:
    async def tell() -> None:
        async with Story() as story:
            await story.nodes()
            kubectl = Kubectl(programs[0], story.kubeconfig, home)

            async def typed(*words: str, stdin: str = "") -> str:
                """In a thread: the scheduler goes on in this one."""
                return await asyncio.to_thread(lambda: str(kubectl(*words, stdin=stdin)))

            assert "deployment.apps/test-scheduler created" in await typed("apply", "-f", "-", stdin=DEPLOYMENT)
            pod = await story.first_pod()
            await story.attempt(pod, 1)
            assert re.search(r"0/1 +Pending", await typed("get", "pods", "-l", f"app={APP}"))
            assert re.search(REFUSED, await typed("describe", "pod", pod.name))
            assert f"node/{LABELLED} labeled" in await typed("label", "nodes", LABELLED, "cpu=true")
            await story.running_pod()
            assert re.search(r"1/1 +Running", await typed("get", "pods", "-l", f"app={APP}"))
            said = await typed("describe", "pod", pod.name)
            assert re.search(REFUSED, said)
            assigned = f"Successfully assigned default/{pod.name} to {LABELLED}"
            assert re.search(rf"Normal +Scheduled +\S+ +sample-scheduler +{re.escape(assigned)}", said)

    asyncio.run(tell())
