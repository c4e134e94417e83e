"""Whether the volumes of a pod can be mounted: every claim that it names must be bound to an existing
volume.
"""

from __future__ import annotations

from mooring.api.resources import Unstructured
from mooring.embedded.controllers.cache import Cache
from mooring.embedded.controllers.volume_claims import claims_used


def volumes_ready(pod: Unstructured, claims: Cache, volumes: Cache) -> bool:
    for key in claims_used(pod):
        claim = claims.get(key)
        if claim is None or (claim.raw.get("status") or {}).get("phase") != "Bound":
            return False
        if volumes.get(str((claim.raw.get("spec") or {}).get("volumeName") or "")) is None:
            return False
    return True
