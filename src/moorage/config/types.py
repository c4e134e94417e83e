"""The scheduler configuration, version v1, as immutable values.

Attributes are snake_case, the wire is camelCase; durations are seconds here and Go strings there. The values
are plain: decoding, defaults that depend on each other, merging and validation live in modules of their own.
"""

import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated

import msgspec

from moorage.api.errors import MoorageError
from moorage.api.meta import Int32, Int64, Record
from moorage.api.problems import Problem
from moorage.api.times import Duration

GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{GROUP}/v1"
KIND = "KubeSchedulerConfiguration"

MULTI_POINT = "multiPoint"
# Accepted in a file because v1 has them, but nothing runs them yet.
UNSUPPORTED_POINTS = ("placementGenerate", "placementScore", "podGroupPostFilter")

# Marks a field that only lives in Python: never read from a file, never written, not part of equality.
NOT_ON_WIRE = msgspec.Meta(extra={"wire": "absent"})


@functools.cache  # resolving annotations costs more than everything else that loading does
def wire_fields(record: type[msgspec.Struct]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """The fields of a record that a file can contain, by wire name."""
    fields = (field for field in msgspec.structs.fields(record) if not _is_absent(field.type))
    return MappingProxyType({field.encode_name: field for field in fields})


def _is_absent(annotation: object) -> bool:
    metadata = getattr(annotation, "__metadata__", ())
    return any(isinstance(meta, msgspec.Meta) and meta.extra == NOT_ON_WIRE.extra for meta in metadata)


class Traced(Record, eq=False):
    """A value that carries its history beside its content; two are equal when their content is."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = [field.name for field in wire_fields(type(self)).values()]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment]  # plugin args may be dicts


class Note(Record):
    """Something worth knowing that stops no scheduler: what was converted, dropped or has no effect."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(MoorageError):
    """A configuration cannot be used; `problems` lists every reason found."""

    def __init__(self, problems: Iterable[Problem], source: str = "<config>") -> None:
        self.problems = tuple(problems)
        self.source = source
        count = f"{len(self.problems)} problem{'s' if len(self.problems) != 1 else ''}"
        super().__init__("\n".join([f"{source}: {count}", *(f"  {problem}" for problem in self.problems)]))


class Plugin(Record):
    """A plugin by name. `weight` counts at score only (directly or through multiPoint); 0 means unset."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(Record):
    """What a profile says about one extension point; `*` disables all defaults."""

    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(Record):
    """The plugin sets of a profile. `multi_point` stands for every point that a plugin implements."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()

    def sets(self) -> dict[str, PluginSet]:
        """Every set under its wire name."""
        return {name: getattr(self, field.name) for name, field in wire_fields(type(self)).items()}

    @classmethod
    def of(cls, sets: dict[str, PluginSet]) -> "Plugins":
        """The inverse of `sets`; sets that are not named stay empty."""
        fields = wire_fields(cls)
        return cls(**{fields[point].name: chosen for point, chosen in sets.items()})


class PluginConfig(Record):
    """Arguments of one plugin: a typed value when the plugin's Args type is known, else the plain mapping."""

    name: str = ""
    args: object = None


class Profile(Traced):
    """One scheduler name with its plugins."""

    scheduler_name: str = ""
    # 0-100, 0 = adaptive; None = what the configuration says globally.
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()
    # Plugins that the file itself asks for, as opposed to those that the defaults brought in.
    user_named: Annotated[frozenset[str], NOT_ON_WIRE] = frozenset()
    # The plugin sets as the file has them, before merging: where an entry stands, for messages.
    written: Annotated[Plugins, NOT_ON_WIRE] = Plugins()


class LeaderElection(Record):
    """Who may schedule when several replicas run."""

    leader_elect: bool = True
    lease_duration: Duration = 15.0
    renew_deadline: Duration = 10.0
    retry_period: Duration = 2.0
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(Record):
    """How to talk to the API server; an empty kubeconfig means in-cluster."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: Int32 = 100


class ExtenderTLSConfig(Record):
    """Transport security towards an extender; data fields are base64 on the wire and win over files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderManagedResource(Record):
    """An extended resource that an extender looks after."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(Record):
    """A webhook that takes part in scheduling; an empty verb means that it does not offer it."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = 5.0
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(Traced):
    """A complete configuration: defaults filled in, plugins merged, args decoded."""

    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    # 0-100; 0 = adaptive.
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
    # What a reader should know about how this came about; see `moorage check`.
    notes: Annotated[tuple[Note, ...], NOT_ON_WIRE] = ()
