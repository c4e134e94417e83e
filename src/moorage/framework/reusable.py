"""Answers that are kept for later pods: what a plugin reads of the pod, and what else its answer depends on.

Most pods have others of the same template. A plugin that inherits `ReusablePlugin` says by `sign` which pods
are alike to it, and by `reads` what must not have changed for its answer to hold. Its answer for one pod is
then used for the next, and only changed nodes are judged again. Nothing else about the plugin changes: reuse
makes no answer different, only faster; `moorage.testing.Cluster(verify_reuse=True)` finds a `sign` or `reads`
that leaves something out."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import ClassVar

from moorage.api.pod import Pod
from moorage.framework import lifting
from moorage.framework.access import Dependency
from moorage.framework.points import Plugin


class ReusablePlugin(Plugin):
    """A plugin whose answers may be used again; inherited beside the extension points."""

    few_signs: ClassVar[bool] = False
    """Whether `sign` takes few different values, however different the pods are (tolerations and node
    selectors do, labels and requests do not). As long as `reads` names nothing but NODE, NODE_COUNT, kinds
    and versions, what such a plugin says about the nodes is used for all pods with an equal sign, until a
    node changes."""

    @lifting.derived
    def sign(self, pod: Pod) -> Hashable:
        """All that this plugin reads of the pod, as a hashable value. Pods with equal signatures share hint
        answers, and answers about nodes where `reads` is written too. `None` (not overridden): not known, so
        hints are shared by equal namespace, labels, owner and spec, and no answer about nodes is."""
        return None

    @lifting.derived
    def reads(self, pod: Pod) -> Collection[Dependency] | None:
        """What, beside the pod, the answer depends on: members of `Reads`, `Kind(resource)`, a `Version` of
        the plugin's own. Preemption reads it as well: what does not depend on pods is not asked again for
        each victim. `None` (not overridden): not known, so no answer about nodes is used again."""
        return None


def reads_of(plugin: Plugin, pod: Pod) -> Collection[Dependency] | None:
    """What a plugin's answers about this pod depend on; `None` where that is not known."""
    return plugin.reads(pod) if isinstance(plugin, ReusablePlugin) else None
