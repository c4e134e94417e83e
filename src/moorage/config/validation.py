"""Rules for values, beyond the type of a single field.

Messages are upstream's. A profile is judged as written, so that paths are those of the file; only the rule
that profiles share a queue sort is judged after conversion and merging. Plugin arguments bring their own
rules (`framework.args`); what only shows when the plugins are known is found by `resolving`.
"""

from collections.abc import Collection, Iterator

from moorage.api import times
from moorage.api.meta import is_extended_resource, qualified_name_faults
from moorage.api.problems import Problem, child, duplicate, invalid, required
from moorage.config.types import (
    API_VERSION,
    ClientConnection,
    Extender,
    KubeSchedulerConfiguration,
    LeaderElection,
    Profile,
)
from moorage.config.versions import LIMITS_PLUGINS
from moorage.framework.points import BY_NAME

MAX_EXTENDER_WEIGHT = 2**62 // 100
"""What the weights of extenders may add up to. Each counts up to 100 times in a node's total, an int64; half
of that is enough for plugins, whose weights have 32 bits."""


def validate(config: KubeSchedulerConfiguration, version: str) -> Iterator[Problem]:
    """Everything wrong with a configuration of that version, as written but with zeros filled in."""
    yield from _client_connection(config.client_connection, "clientConnection")
    yield from _leader_election(config.leader_election, "leaderElection")
    if config.parallelism <= 0:
        yield invalid("parallelism", config.parallelism, "should be an integer value greater than zero")
    yield from _profiles(config.profiles, version)
    yield from _percentage(config.percentage_of_nodes_to_score, "percentageOfNodesToScore")
    yield from _backoff(config)
    yield from _extenders(config.extenders)


def validate_queue_sort(profiles: tuple[Profile, ...]) -> Iterator[Problem]:
    """There is one queue, so the profiles must agree on its order."""
    if not profiles:  # only when the list itself could not be read
        return
    canon = profiles[0].plugins.queue_sort
    if len(canon.enabled) > 1:
        path = "profiles[0].plugins.queueSort.enabled"
        yield invalid(path, len(canon.enabled), "only one queue sort plugin can be enabled")
    name = canon.enabled[0].name if canon.enabled else ""
    args = _args_of(profiles[0], name)
    for index, profile in enumerate(profiles[1:], 1):
        path = child("profiles", index)
        if profile.plugins.queue_sort != canon:
            shown = [entry.name for entry in profile.plugins.queue_sort.enabled]
            detail = "must be the same for all profiles"
            yield invalid(child(path, "plugins", "queueSort"), shown, detail)
        for position, entry in enumerate(profile.plugin_config):
            if name and entry.name == name and entry.args != args:
                where = child(path, "pluginConfig", position, "args")
                yield invalid(where, name, "queueSort must be the same for all profiles")


def _client_connection(connection: ClientConnection, path: str) -> Iterator[Problem]:
    if connection.burst < 0:
        yield invalid(child(path, "burst"), connection.burst, "must be non-negative")


def _leader_election(election: LeaderElection, path: str) -> Iterator[Problem]:
    if not election.leader_elect:
        return
    for name, seconds in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        if seconds <= 0:
            yield invalid(child(path, name), times.format_duration(seconds), "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        shown = times.format_duration(election.lease_duration)
        yield invalid(child(path, "leaseDuration"), shown, "must be greater than `RenewDeadline`")
    if election.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        yield invalid(child(path, "resourceLock"), election.resource_lock, detail)


def _percentage(value: int | None, path: str) -> Iterator[Problem]:
    if value is not None and not 0 <= value <= 100:
        yield invalid(path, value, "not in valid range [0-100]")


def _backoff(config: KubeSchedulerConfiguration) -> Iterator[Problem]:
    first, last = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if first <= 0:
        yield invalid("podInitialBackoffSeconds", first, "must be greater than 0")
    if last < first:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid("podMaxBackoffSeconds", last, detail)


def _profiles(profiles: tuple[Profile, ...], version: str) -> Iterator[Problem]:
    first_use: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path = child("profiles", index)
        name = profile.scheduler_name
        if not name:
            yield required(child(path, "schedulerName"))
        elif name in first_use:
            where = child("profiles", first_use[name], "schedulerName")
            problem = duplicate(child(path, "schedulerName"), name)
            yield Problem(path=problem.path, message=f"{problem.message}, as in {where}", value=name)
        first_use.setdefault(name, index)
        yield from _percentage(profile.percentage_of_nodes_to_score, child(path, "percentageOfNodesToScore"))
        # Older versions still had the plugins that v1 removed; conversion replaces them.
        removed = LIMITS_PLUGINS if version == "v1" else ()
        yield from _plugin_names(profile, removed, path)
        yield from _plugin_config(profile, removed, path)


def _plugin_names(profile: Profile, removed: Collection[str], path: str) -> Iterator[Problem]:
    for point, chosen in profile.plugins.sets().items():
        for kind, entries in (("enabled", chosen.enabled), ("disabled", chosen.disabled)):
            for index, entry in enumerate(entries):
                where = child(path, "plugins", point, kind, index)
                if not entry.name:
                    yield required(child(where, "name"))
                # Upstream looks for removed names at the single points only, never in multiPoint.
                elif kind == "enabled" and point in BY_NAME and entry.name in removed:
                    yield _removed(where, entry.name)


def _plugin_config(profile: Profile, removed: Collection[str], path: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, entry in enumerate(profile.plugin_config):
        where = child(path, "pluginConfig", index)
        if not entry.name:
            yield required(child(where, "name"))
        elif entry.name in seen:
            yield duplicate(where, entry.name)
        elif entry.name in removed:
            yield _removed(where, entry.name)
        seen.add(entry.name)


def _removed(path: str, name: str) -> Problem:
    # The version in the text is that of the core API, not of this group: upstream's own slip.
    detail = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
    return invalid(path, name, detail, hint="NodeVolumeLimits took its place")


def _args_of(profile: Profile, name: str) -> object:
    return next((entry.args for entry in profile.plugin_config if entry.name == name), None)


def _extenders(extenders: tuple[Extender, ...]) -> Iterator[Problem]:
    managed: set[str] = set()
    weights = 0
    for index, extender in enumerate(extenders):
        path = child("extenders", index)
        if not extender.url_prefix:
            yield required(child(path, "urlPrefix"))
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(child(path, "weight"), extender.weight, "must have a positive weight applied to it")
        elif extender.prioritize_verb:
            weights += extender.weight
            if weights > MAX_EXTENDER_WEIGHT:
                limit = f"weights of extenders add up to {MAX_EXTENDER_WEIGHT} at most"
                detail = f"total score could overflow: {limit}"
                yield invalid(child(path, "weight"), extender.weight, detail)
        for position, resource in enumerate(extender.managed_resources):
            where = child(path, "managedResources", position, "name")
            yield from _resource_name(resource.name, where)
            if resource.name in managed:
                yield invalid(where, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        shown = f"found {binders} extenders implementing bind"
        yield invalid("extenders", shown, "only one extender can implement bind")


def _resource_name(name: str, path: str) -> Iterator[Problem]:
    faults = list(qualified_name_faults(name))
    if not faults and not is_extended_resource(name):
        faults = ["is an invalid extended resource name"]
    for fault in faults:
        yield invalid(path, name, fault)
