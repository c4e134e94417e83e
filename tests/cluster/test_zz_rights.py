"""Least privilege, by the audit log of the whole run: everything that was granted was used, nothing else was
asked for, nothing was forbidden. Runs last."""

from __future__ import annotations

import pytest

from moorage.app.configuration import configure
from moorage.manifests.bundle import default_config
from moorage.manifests.rbac import Right, election_rules, packs
from tests.cluster.conftest import ACCOUNT
from tests.cluster.controlplane import ControlPlane

FROM_ELSEWHERE: frozenset[Right] = frozenset({*(("", "configmaps", verb) for verb in ("get", "list", "watch"))})
"""Rights that come with the cluster's own role extension-apiserver-authentication-reader."""
REFUSED = ("", "secrets", "list")
"""What a plugin of test_reload asks for, which no test grants."""
OPEN_PATHS = ("/version", "/api", "/apis", "/healthz", "/livez", "/readyz", "/openapi")
"""Paths that every authenticated user may read."""
ENOUGH_CALLS = 5000
"""Below this the suite did not run as a whole, and unused rights say nothing."""


def granted() -> set[Right]:
    configuration = configure(default_config("moorage"), discover=False)
    rights = set().union(*(pack.rights() for pack in packs(configuration)))
    return rights.union(*(rule.rights() for rule in election_rules("moorage")))


def test_the_audit_log_equals_the_grant(shared_plane: ControlPlane) -> None:
    calls = [c for c in shared_plane.calls(ACCOUNT) if (c.code, c.right) != (403, REFUSED)]
    forbidden = sorted({call.right for call in calls if call.code == 403})
    assert not forbidden, f"forbidden: {forbidden}"
    used = {call.right for call in calls if not call.resource.startswith(OPEN_PATHS)}
    extra = used - granted() - FROM_ELSEWHERE
    assert not extra, f"used but not granted by moorage manifests: {sorted(extra)}"
    if len(calls) < ENOUGH_CALLS:
        pytest.skip(f"only {len(calls)} calls in the audit log: run the whole suite to judge unused rights")
    # A first listing is streamed, which is a watch; servers before 1.32 do not stream, and are listed.
    streamed = {(group, kind, "list") for group, kind, verb in used if verb == "watch"}
    unused = granted() - used - streamed
    assert not unused, f"granted and never used: {sorted(unused)}"
