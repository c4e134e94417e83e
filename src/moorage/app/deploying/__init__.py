"""What a cluster needs so that Moorage can run on it: roles, workload, budget, as plain objects."""

from moorage.app.deploying.manifests import kustomization, manifests, to_yaml
from moorage.app.deploying.options import DeployError, DeployOptions
from moorage.app.deploying.rbac import Pack, Rule, packs

__all__ = ["DeployError", "DeployOptions", "Pack", "Rule", "kustomization", "manifests", "packs", "to_yaml"]
