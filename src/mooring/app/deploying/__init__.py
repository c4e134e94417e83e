"""What a cluster needs so that Mooring can run on it: roles, workload, budget, as plain objects."""

from mooring.app.deploying.manifests import kustomization, manifests, to_yaml
from mooring.app.deploying.options import DeployError, DeployOptions
from mooring.app.deploying.rbac import Pack, Rule, packs

__all__ = ["DeployError", "DeployOptions", "Pack", "Rule", "kustomization", "manifests", "packs", "to_yaml"]
