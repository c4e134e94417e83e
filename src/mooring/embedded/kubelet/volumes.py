"""Whether the volumes of a pod can be mounted: every claim that it names must be bound to an existing
volume.
"""

from __future__ import annotations

from mooring.api.resources import Unstructured
from mooring.embedded.controllers.cache import Cache


def claim_names(pod: Unstructured) -> list[str]:
    """The claims of a pod, those of generic ephemeral volumes included."""
    names = []
    for volume in (pod.raw.get("spec") or {}).get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            names.append(str(volume["persistentVolumeClaim"].get("claimName") or ""))
        elif volume.get("ephemeral"):
            names.append(f"{pod.name}-{volume.get('name')}")
    return names


def volumes_ready(pod: Unstructured, claims: Cache, volumes: Cache) -> bool:
    for name in claim_names(pod):
        claim = claims.get(f"{pod.namespace}/{name}")
        if claim is None or (claim.raw.get("status") or {}).get("phase") != "Bound":
            return False
        if volumes.get(str((claim.raw.get("spec") or {}).get("volumeName") or "")) is None:
            return False
    return True
