"""The rules of containers: names, images, ports, environment, mounts, amounts."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from moorage.embedded.admission import syntax
from moorage.embedded.admission.problems import Problems
from moorage.embedded.admission.syntax import check_requirements
from moorage.store.objects import Raw

PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_ENV_NAME = re.compile(r"[ -<>-~]+")  # printable, without the equals sign
_ENV_NAME_WORDS = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_ONLY_SIDECARS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")


def check_containers(containers: Sequence[Raw], volumes: Collection[str], path: str, problems: Problems) -> None:
    """The regular containers of a pod."""
    if not containers:
        problems.required(path)
    seen: set[str] = set()
    for index, container in enumerate(containers):
        here = f"{path}[{index}]"
        _check_container(container, volumes, here, problems)
        _check_unique(container.get("name") or "", seen, here, problems)
        _check_probes(container, here, problems)
    _check_host_ports(containers, path, problems)


def check_init_containers(
    containers: Sequence[Raw], regular: Sequence[Raw], volumes: Collection[str], path: str, problems: Problems
) -> None:
    """Their names differ from those of the regular ones; only sidecars have probes."""
    seen = {container.get("name") or "" for container in regular}
    for index, container in enumerate(containers):
        here = f"{path}[{index}]"
        _check_container(container, volumes, here, problems)
        _check_unique(container.get("name") or "", seen, here, problems)
        _check_host_ports([container], path, problems)
        policy = container.get("restartPolicy")
        if policy is not None and policy not in ("Always", "Never", "OnFailure"):
            problems.not_supported(f"{here}.restartPolicy", policy, ("Always", "Never", "OnFailure"))
        if policy == "Always":
            _check_probes(container, here, problems)
            continue
        for field in _ONLY_SIDECARS:
            if field in container:
                problems.forbidden(f"{here}.{field}", "may not be set for init containers without restartPolicy=Always")


def _check_container(container: Raw, volumes: Collection[str], path: str, problems: Problems) -> None:
    name, image = container.get("name"), container.get("image")
    if not name:
        problems.required(f"{path}.name")
    elif sentences := syntax.label(name):
        problems.all_invalid(f"{path}.name", name, sentences)
    if not image:
        problems.required(f"{path}.image")
    elif image != image.strip():
        problems.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    problems.one_of(f"{path}.terminationMessagePolicy", container.get("terminationMessagePolicy"), _MESSAGE_POLICIES)
    problems.one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    if ports := container.get("ports"):
        _check_ports(ports, f"{path}.ports", problems)
    if variables := container.get("env"):
        _check_environment(variables, f"{path}.env", problems)
    if mounts := container.get("volumeMounts"):
        _check_mounts(mounts, volumes, f"{path}.volumeMounts", problems)
    if amounts := container.get("resources"):
        check_requirements(amounts, f"{path}.resources", problems)


def _check_unique(name: str, seen: set[str], path: str, problems: Problems) -> None:
    if name in seen and name:
        problems.duplicate(f"{path}.name", name)
    seen.add(name)


def _check_ports(ports: Sequence[Raw], path: str, problems: Problems) -> None:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name")
        if name:
            sentences = syntax.port_name(name)
            problems.all_invalid(f"{here}.name", name, sentences)
            if not sentences and name in seen:
                problems.duplicate(f"{here}.name", name)
            seen.add(name)
        number = port.get("containerPort") or 0
        if not number:
            problems.required(f"{here}.containerPort")
        else:
            problems.all_invalid(f"{here}.containerPort", number, syntax.port_number(number))
        if host_port := port.get("hostPort"):
            problems.all_invalid(f"{here}.hostPort", host_port, syntax.port_number(host_port))
        problems.one_of(f"{here}.protocol", port.get("protocol"), PROTOCOLS)


def _check_host_ports(containers: Sequence[Raw], path: str, problems: Problems) -> None:
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                taken = f"{port.get('protocol')}/{port.get('hostIP') or ''}/{port['hostPort']}"
                if taken in seen:
                    problems.duplicate(f"{path}[{index}].ports[{position}].hostPort", taken)
                seen.add(taken)


def _check_environment(variables: Sequence[Raw], path: str, problems: Problems) -> None:
    for index, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            problems.required(f"{path}[{index}].name")
        elif not _ENV_NAME.fullmatch(name):
            problems.invalid(f"{path}[{index}].name", name, _ENV_NAME_WORDS)
        if variable.get("value") and variable.get("valueFrom"):
            problems.invalid(f"{path}[{index}].valueFrom", "", "may not be specified when `value` is not empty")


def _check_mounts(mounts: Sequence[Raw], volumes: Collection[str], path: str, problems: Problems) -> None:
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        here, name, place = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            problems.required(f"{here}.name")
        if name not in volumes:
            problems.not_found(f"{here}.name", name)
        if not place:
            problems.required(f"{here}.mountPath")
        if place in seen:
            problems.invalid(f"{here}.mountPath", place, "must be unique")
        seen.add(place)


def _check_probes(container: Raw, path: str, problems: Problems) -> None:
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(field)
        if probe is None:
            continue
        here = f"{path}.{field}"
        for number in _PROBE_NUMBERS:
            problems.not_negative(f"{here}.{number}", probe.get(number))
        handlers = [name for name in _HANDLERS if name in probe]
        if not handlers:
            problems.required(here, "must specify a handler type")
        for extra in handlers[1:]:
            problems.forbidden(f"{here}.{extra}", "may not specify more than 1 handler type")
        if field != "readinessProbe" and probe.get("successThreshold", 1) != 1:
            problems.invalid(f"{here}.successThreshold", probe["successThreshold"], "must be 1")
