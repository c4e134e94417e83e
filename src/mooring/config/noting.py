"""Parts of a profile that are legal and do nothing: told, because they are often mistakes."""

from collections.abc import Iterator

from mooring.config import history
from mooring.config.defaults import default_names_at
from mooring.config.extension_points import MULTI_POINT
from mooring.config.merging import enabled_names
from mooring.config.problems import Note, child
from mooring.config.types import Plugins, Profile


def idle_disables(custom: Plugins, defaults: Plugins, version: str, path: str) -> Iterator[Note]:
    """Disabled plugins that were not going to run there anyway."""
    by_default = {entry.name for entry in defaults.multi_point.enabled}
    if version != "v1":
        by_default.update(history.LIMITS_PLUGINS)  # conversion has its say about them
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
                instead = history.successor(entry.name)
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
