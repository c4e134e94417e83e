"""VolumeBinding: find a volume for every claim of a pod, reserve it, and bind it before the pod is bound.

Follows pkg/scheduler/framework/plugins/volumebinding of kube-scheduler. `claims` sorts a pod's claims, `reach` finds
the nodes that can access a volume, `matching` chooses among existing volumes, `finding` combines them into a verdict
per node, `binder` reserves and binds, `scoring` scores nodes if the feature gate is on. `plugin` has the extension
points."""

from moorage.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
