"""Joining the default plugins with those that a profile asks for (upstream's mergePluginSet).

What multiPoint means for the single points is decided later, in `resolving`, because it takes the plugins'
own word for which points they implement. Parts of a profile that are legal and do nothing get a note, because
they are often mistakes.
"""

from collections.abc import Iterator

from moorage.api.problems import child
from moorage.config import versions
from moorage.config.defaults import default_names_at
from moorage.config.types import MULTI_POINT, Note, Plugin, Plugins, PluginSet, Profile


def merge(defaults: Plugins, custom: Plugins) -> Plugins:
    """Every set of `defaults` merged with its counterpart."""
    chosen = custom.sets()
    return Plugins.of({point: merge_set(own, chosen[point]) for point, own in defaults.sets().items()})


def merge_set(defaults: PluginSet, custom: PluginSet) -> PluginSet:
    """Surviving defaults first, in place and perhaps with the custom weight; then the other custom entries.

    An entry that is both disabled and enabled is enabled, at the end. Entries enabled twice stay twice: the
    profile is refused for it when it is built, with upstream's message.
    """
    # Disabled entries are names; a weight given there never meant anything.
    disabled = tuple(Plugin(name=entry.name) for entry in (*custom.disabled, *defaults.disabled))
    off = {entry.name for entry in disabled}
    last = {entry.name: index for index, entry in enumerate(custom.enabled)}
    enabled: list[Plugin] = []
    consumed: set[int] = set()
    for default in () if "*" in off else defaults.enabled:
        if default.name in off:
            continue
        if default.name in last:
            consumed.add(last[default.name])
            enabled.append(custom.enabled[last[default.name]])
        else:
            enabled.append(default)
    enabled += [entry for index, entry in enumerate(custom.enabled) if index not in consumed]
    return PluginSet(enabled=tuple(enabled), disabled=disabled)


def user_named(defaults: Plugins, custom: Plugins) -> frozenset[str]:
    """Names that a profile enables itself.

    A multiPoint entry that only repeats a default changes nothing and does not count, so that a completed
    configuration means the same when it is read back.
    """
    repeated = set(defaults.multi_point.enabled)
    off = {entry.name for entry in custom.multi_point.disabled}
    return frozenset(
        entry.name
        for point, chosen in custom.sets().items()
        for entry in chosen.enabled
        if point != MULTI_POINT or entry not in repeated or off & {entry.name, "*"}
    )


def enabled_names(plugins: Plugins) -> frozenset[str]:
    """Every plugin enabled anywhere."""
    return frozenset(entry.name for chosen in plugins.sets().values() for entry in chosen.enabled)


def idle_disables(custom: Plugins, defaults: Plugins, version: str, path: str) -> Iterator[Note]:
    """Disabled plugins that were not going to run there anyway."""
    by_default = {entry.name for entry in defaults.multi_point.enabled}
    if version != "v1":
        by_default.update(versions.LIMITS_PLUGINS)  # conversion has its say about them
    spread = {entry.name for entry in custom.multi_point.enabled}
    for point, chosen in custom.sets().items():
        per_point = version in ("v1beta1", "v1beta2") and point != MULTI_POINT
        known = set(default_names_at(version, point)) if per_point else set(by_default)
        known |= {"*", *(spread if point != MULTI_POINT else ())}
        for index, entry in enumerate(chosen.disabled):
            if entry.name and entry.name not in known:
                message = (
                    f"{entry.name} is not enabled by default in {version}, so disabling it changes nothing"
                )
                instead = versions.successor(entry.name)
                where = child(path, "plugins", point, "disabled", index)
                yield Note(path=where, message=f"{message}; {instead}" if instead else message)


def idle_args(written: Profile, completed: Profile, path: str) -> Iterator[Note]:
    """Arguments in the file of plugins that no extension point enables."""
    used = enabled_names(completed.plugins)
    kept = {entry.name for entry in completed.plugin_config}
    for index, entry in enumerate(written.plugin_config):
        if entry.name in kept - used:
            message = f"{entry.name} is not enabled at any extension point, so its args are not used"
            yield Note(path=child(path, "pluginConfig", index), message=message)
