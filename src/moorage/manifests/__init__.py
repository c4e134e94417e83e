"""What a cluster needs so that Moorage can run on it: roles, workload, budget, as plain objects."""

from moorage.manifests.bundle import kustomization, manifests, to_yaml
from moorage.manifests.options import DeployError, DeployOptions
from moorage.manifests.rbac import Pack, Rule, packs

__all__ = ["DeployError", "DeployOptions", "Pack", "Rule", "kustomization", "manifests", "packs", "to_yaml"]
