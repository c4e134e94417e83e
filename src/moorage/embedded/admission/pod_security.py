"""Pod security: the levels baseline and restricted, which a label of the namespace enforces.

The main checks of k8s.io/pod-security-admission/policy with its messages. Not checked: AppArmor, SELinux, Windows
host processes, probes and hooks that name a host, and levels of older versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from moorage.api import resources
from moorage.api.resources import Resource
from moorage.store import refusals
from moorage.store.objects import Raw
from moorage.store.rules import StoreCluster

_ENFORCE = "pod-security.kubernetes.io/enforce"
_DEFAULT_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
_RESTRICTED_VOLUMES = frozenset(
    "configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret".split()  # noqa: SIM905
)
_SAFE_SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    )
)


def check_security(resource: Resource, raw: Raw, cluster: StoreCluster) -> None:
    """Raise Forbidden if a new pod violates the level that its namespace enforces."""
    if resource != resources.PODS:
        return
    namespace = cluster.find(resources.NAMESPACES, raw["metadata"]["namespace"]) or {}
    labels = (namespace.get("metadata") or {}).get("labels") or {}
    level = labels.get(_ENFORCE)
    if level not in _CHECKS:
        return
    found = [problem for check in _CHECKS[level] for problem in check(raw["spec"])]
    if found:
        version = labels.get(f"{_ENFORCE}-version") or "latest"
        why = f'violates PodSecurity "{level}:{version}": {", ".join(found)}'
        raise refusals.forbidden(resource, raw["metadata"]["name"], why)


def _containers(spec: Raw) -> list[tuple[str, Raw, Raw]]:
    """Return the name, the container and the security context of every container."""
    parts = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return [(str(part.get("name")), part, part.get("securityContext") or {}) for part in parts]


def _named(word: str, names: Iterable[str]) -> str:
    """Return `container "a"` or `containers "a", "b"`."""
    quoted = [f'"{name}"' for name in names]
    return f"{word}{'s' if len(quoted) > 1 else ''} {', '.join(quoted)}"


def _host_namespaces(spec: Raw) -> Iterator[str]:
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    if shared:
        yield f"host namespaces ({', '.join(shared)})"


def _privileged(spec: Raw) -> Iterator[str]:
    if bad := [name for name, _, context in _containers(spec) if context.get("privileged")]:
        yield f"privileged ({_named('container', bad)} must not set securityContext.privileged=true)"


def _added(context: Raw) -> set[str]:
    return set((context.get("capabilities") or {}).get("add") or ())


def _capabilities(spec: Raw) -> Iterator[str]:
    found = [(name, _added(context) - _DEFAULT_CAPABILITIES) for name, _, context in _containers(spec)]
    if bad := [name for name, added in found if added]:
        listed = ", ".join(f'"{one}"' for one in sorted(set().union(*(added for _, added in found))))
        what = f"{_named('container', bad)} must not include {listed} in securityContext.capabilities.add"
        yield f"non-default capabilities ({what})"


def _host_paths(spec: Raw) -> Iterator[str]:
    if bad := [volume["name"] for volume in spec.get("volumes") or () if "hostPath" in volume]:
        yield f"hostPath volumes ({_named('volume', bad)})"


def _host_ports(spec: Raw) -> Iterator[str]:
    found = [(n, [p["hostPort"] for p in c.get("ports") or () if p.get("hostPort")]) for n, c, _ in _containers(spec)]
    if bad := [name for name, used in found if used]:
        numbers = sorted({port for _, used in found for port in used}, key=str)
        verb, noun = ("uses", "use")[len(bad) > 1], ("hostPort", "hostPorts")[len(numbers) > 1]
        yield f"hostPort ({_named('container', bad)} {verb} {noun} {', '.join(map(str, numbers))})"


def _sysctls(spec: Raw) -> Iterator[str]:
    given = (spec.get("securityContext") or {}).get("sysctls") or ()
    if bad := [str(one.get("name")) for one in given if one.get("name") not in _SAFE_SYSCTLS]:
        yield f"forbidden sysctls ({', '.join(bad)})"


def _escalation(spec: Raw) -> Iterator[str]:
    found = _containers(spec)
    if bad := [name for name, _, context in found if context.get("allowPrivilegeEscalation") is not False]:
        must = "must set securityContext.allowPrivilegeEscalation=false"
        yield f"allowPrivilegeEscalation != false ({_named('container', bad)} {must})"


def _dropped(spec: Raw) -> Iterator[str]:
    found = _containers(spec)
    kept = [n for n, _, context in found if "ALL" not in ((context.get("capabilities") or {}).get("drop") or ())]
    added = [name for name, _, context in found if _added(context) - {"NET_BIND_SERVICE"}]
    parts = []
    if kept:
        parts.append(f'{_named("container", kept)} must set securityContext.capabilities.drop=["ALL"]')
    if added:
        names = sorted(set().union(*(_added(context) for _, _, context in found)) - {"NET_BIND_SERVICE"})
        listed = ", ".join(f'"{name}"' for name in names)
        parts.append(f"{_named('container', added)} must not include {listed} in securityContext.capabilities.add")
    if parts:
        yield f"unrestricted capabilities ({'; '.join(parts)})"


def _volume_types(spec: Raw) -> Iterator[str]:
    found = [(v["name"], next(iter(v.keys() - {"name"} - _RESTRICTED_VOLUMES), "")) for v in spec.get("volumes") or ()]
    if bad := [name for name, kind in found if kind]:
        kinds = sorted({kind for _, kind in found if kind})
        listed = ", ".join(f'"{kind}"' for kind in kinds)
        verb, noun = ("uses", "use")[len(bad) > 1], ("type", "types")[len(kinds) > 1]
        yield f"restricted volume types ({_named('volume', bad)} {verb} restricted volume {noun} {listed})"


def _non_root(spec: Raw) -> Iterator[str]:
    whole = (spec.get("securityContext") or {}).get("runAsNonRoot")
    found = [(name, context.get("runAsNonRoot", whole)) for name, _, context in _containers(spec)]
    if bad := [name for name, set_ in found if not set_]:
        yield f"runAsNonRoot != true (pod or {_named('container', bad)} must set securityContext.runAsNonRoot=true)"


def _seccomp(spec: Raw) -> Iterator[str]:
    whole = ((spec.get("securityContext") or {}).get("seccompProfile") or {}).get("type")
    found = [(name, (context.get("seccompProfile") or {}).get("type", whole)) for name, _, context in _containers(spec)]
    if bad := [name for name, kind in found if kind not in ("RuntimeDefault", "Localhost")]:
        must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
        yield f"seccompProfile (pod or {_named('container', bad)} {must})"


_BASELINE: tuple[Callable[[Raw], Iterator[str]], ...] = (
    _host_namespaces,
    _privileged,
    _capabilities,
    _host_paths,
    _host_ports,
    _sysctls,
)
_CHECKS = {
    "baseline": _BASELINE,
    "restricted": (
        _host_namespaces,
        _privileged,
        _host_ports,
        _sysctls,
        _escalation,
        _dropped,
        _volume_types,
        _non_root,
        _seccomp,
    ),
}
