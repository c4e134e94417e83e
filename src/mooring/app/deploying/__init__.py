"""What a cluster needs so that Mooring can run on it: roles, workload, budget, as plain objects."""

from mooring.app.deploying.manifests import manifests
from mooring.app.deploying.options import DeployError, DeployOptions
from mooring.app.deploying.rights import Pack, Rule, packs
from mooring.app.deploying.writing import kustomization, to_yaml

__all__ = ["DeployError", "DeployOptions", "Pack", "Rule", "kustomization", "manifests", "packs", "to_yaml"]
