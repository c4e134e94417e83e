"""Which kind and version a file says it is, and what to do about those that cannot be read."""

from collections.abc import Mapping

from mooring.config import history
from mooring.config.problems import Problem, did_you_mean, required
from mooring.config.types import API_VERSION, GROUP, KIND


def identify(tree: object) -> tuple[str, list[Problem]]:
    """The version (`v1beta2`) of a KubeSchedulerConfiguration, or why the file is not one."""
    if not isinstance(tree, Mapping):
        message = f"expected a mapping with apiVersion {API_VERSION} and kind {KIND}"
        return "", [Problem(path="", message=message)]
    api_version, kind = tree.get("apiVersion"), tree.get("kind")
    missing = [required(name) for name in ("apiVersion", "kind") if not tree.get(name)]
    if missing:
        return "", missing
    if kind != KIND:
        return "", [_wrong_kind(tree, api_version, kind)]
    group, _, version = str(api_version).rpartition("/")
    if group == GROUP and version in history.SERVED:
        return version, []
    return "", [_wrong_version(str(api_version), group, version)]


def _wrong_kind(tree: Mapping[str, object], api_version: object, kind: object) -> Problem:
    if kind == "Policy":
        message = "Policy files are not accepted yet; Kubernetes read them up to 1.22"
        hint = f"write the same choice of plugins as a profile of {KIND} ({API_VERSION})"
        return Problem(path="kind", message=message, value=kind, hint=hint)
    if kind == "ConfigMap":
        data = tree.get("data")
        keys = ", ".join(map(str, data)) if isinstance(data, Mapping) else "none"
        message = f"this is a ConfigMap, not the {KIND} inside it"
        hint = f"give the text below data; its keys: {keys}"
        return Problem(path="kind", message=message, value=kind, hint=hint)
    message = f'no kind "{kind}" is registered for version "{api_version}"; expected {KIND}'
    return Problem(path="kind", message=message, value=kind, hint=did_you_mean(str(kind), [KIND]))


def _wrong_version(api_version: str, group: str, version: str) -> Problem:
    if group == GROUP and version in history.GONE:
        message = f"{api_version} was served by Kubernetes {history.GONE[version]} and is not accepted"
        hint = f"write the file as {API_VERSION}; v1beta1 and later are converted when read"
        return Problem(path="apiVersion", message=message, value=api_version, hint=hint)
    message = f'no kind "{KIND}" is registered for version "{api_version}"'
    known = [f"{GROUP}/{name}" for name in history.SERVED]
    return Problem(
        path="apiVersion", message=message, value=api_version, hint=did_you_mean(api_version, known)
    )
