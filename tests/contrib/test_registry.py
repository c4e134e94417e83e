"""The plugins of contrib are known by name, imported when they are named, and never there by default."""

import subprocess
import sys
from typing import Any

import pytest

from moorage.app import checks
from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.contrib.registry import PLUGINS
from moorage.framework import QueueSortPlugin, ScorePlugin
from moorage.manifests.rbac import packs
from moorage.runtime.registry import Registry
from tests.contrib.configs import enabling

ARGS: dict[str, dict[str, Any]] = {
    "FGD": {"typicalPods": [{"gpuMilli": 500}]},
    "NodeMetadata": {
        "metadataKey": "k", "metadataSource": "Label", "metadataType": "Number", "scoringStrategy": "Lowest"
    },
    "Peaks": {"nodePowerModel": {"a": {"k0": 200, "k1": -90, "k2": -0.07}}},
    "TenantIsolation": {"namespaceLabel": "tenant"},
}  # fmt: skip
"""For plugins that cannot do without."""


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_is_found_by_its_name_and_passes_all_checks(name):
    registry = Registry()
    assert registry.follow(PLUGINS[name]) == name
    cls = registry[name]
    without = ("PrioritySort",) if issubclass(cls, QueueSortPlugin) else tuple(cls.replaces[:1])
    configured = configure(enabling(name, ARGS.get(name), without=without), discover=False)
    assert checks.find_mistakes(configured) == []
    assert checks.find_warnings(configured) == []
    assert name in configured.profiles[0].plugin_names
    assert packs(configured)


def test_no_plugin_is_imported_before_a_configuration_names_it():
    code = (
        "import sys; from moorage.app.configuration import configure; c = configure(discover=False);"
        "print([m for m in sys.modules if m.startswith('moorage.contrib.')], set(c.registry) & {'PodState'})"
    )
    shown = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True).stdout
    assert shown.strip() == "['moorage.contrib.registry'] set()"


def test_a_plugin_from_elsewhere_takes_the_place_of_one_in_contrib():
    class PodState(ScorePlugin):
        name = "PodState"

        def score(self, state, pod, node):
            return 1

    configured = configure(enabling("PodState"), plugins=[PodState], discover=False)
    assert configured.registry["PodState"] is PodState


def test_a_name_that_is_nearly_right_is_guessed():
    with pytest.raises(ConfigError, match='did you mean "PodState"'):
        configure(enabling("PodStates"), discover=False)
