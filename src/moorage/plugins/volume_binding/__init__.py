"""VolumeBinding: finds a volume for every claim of a pod, books it, and has it bound before the pod is.

`claims` sorts a pod's claims, `reach` knows which nodes reach a volume, `matching` picks among volumes that
exist, `finding` joins them into a verdict per node, `binder` books and binds, `scoring` rates nodes where a
gate asks for it. `plugin` is the plugin itself.
"""

from moorage.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
