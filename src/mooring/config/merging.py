"""Joining the default plugins with those that a profile asks for (upstream's mergePluginSet).

What multiPoint means for the single points is decided later, in `resolving`, because it takes the plugins'
own word for which points they implement.
"""

from mooring.config.extension_points import MULTI_POINT
from mooring.config.types import Plugin, Plugins, PluginSet


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
