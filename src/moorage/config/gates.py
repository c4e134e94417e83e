"""Feature gates of 1.36 that a scheduler reads: their defaults, and a set of choices on top.

Parses `A=true,B=false` as `--feature-gates` takes it. What a gate switches is decided where it is asked.
"""

from collections.abc import Mapping
from typing import NamedTuple

from moorage.api.meta import Record
from moorage.api.problems import Problem, did_you_mean
from moorage.config.types import ConfigError


class Gate(NamedTuple):
    """One gate. A locked one can be named only with its default; `needs` must be on with it."""

    default: bool
    stage: str = "beta"
    locked: bool = False
    needs: tuple[str, ...] = ()


_GA_LOCKED = Gate(True, "ga", locked=True)
_GA = Gate(True, "ga")
_ON = Gate(True)
_OFF = Gate(False)
_ALPHA = Gate(False, "alpha")

GATES: Mapping[str, Gate] = {
    "SchedulerQueueingHints": _GA_LOCKED,
    "DynamicResourceAllocation": _GA_LOCKED,
    "DRAAdminAccess": _GA,
    "DRAPrioritizedList": _GA,
    "InPlacePodVerticalScaling": _GA_LOCKED,
    "NodeInclusionPolicyInPodTopologySpread": _GA_LOCKED,
    "SidecarContainers": _GA_LOCKED,
    "VolumeAttributesClass": _GA_LOCKED,
    "SchedulerAsyncPreemption": _ON,
    "SchedulerPopFromBackoffQ": _ON,
    "OpportunisticBatching": _ON,
    "NominatedNodeNameForExpectation": _ON,
    "NodeDeclaredFeatures": _ON,
    "PodLevelResources": _ON,
    "InPlacePodLevelResourcesVerticalScaling": _ON,
    "MatchLabelKeysInPodTopologySpread": _ON,
    "DRAExtendedResource": _ON,
    "DRAConsumableCapacity": _ON,
    "DRADeviceTaints": _ON,
    "DRADeviceBindingConditions": _ON,
    "DRAPartitionableDevices": _ON,
    "DRAResourceClaimDeviceStatus": _ON,
    "DRASchedulerFilterTimeout": _ON,
    "ComponentFlagz": _ON,
    "ComponentStatusz": _ON,
    "SchedulerAsyncAPICalls": _OFF,
    "CoordinatedLeaderElection": _OFF,
    "DRADeviceTaintRules": _OFF,
    "GenericWorkload": _ALPHA,
    "GangScheduling": Gate(False, "alpha", needs=("GenericWorkload",)),
    "TopologyAwareWorkloadScheduling": Gate(False, "alpha", needs=("GenericWorkload",)),
    "WorkloadAwarePreemption": Gate(False, "alpha", needs=("GangScheduling",)),
    "DRAWorkloadResourceClaims": Gate(False, "alpha", needs=("DynamicResourceAllocation", "GenericWorkload")),
    "DRANodeAllocatableResources": _ALPHA,
    "DRAListTypeAttributes": _ALPHA,
    "VolumeLimitScaling": _ALPHA,
    "StorageCapacityScoring": _ALPHA,
    "TaintTolerationComparisonOperators": _ALPHA,
}

_WORDS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


class FeatureGates(Record):
    """Which gates are on: the defaults, changed by what was asked for."""

    chosen: dict[str, bool] = {}

    def __call__(self, name: str) -> bool:
        """Whether the gate is on. Asking for a gate that does not exist is a bug, so it raises KeyError."""
        return self.chosen.get(name, GATES[name].default)

    @classmethod
    def parse(cls, text: str, source: str = "--feature-gates") -> "FeatureGates":
        """The gates of `A=true,B=false`; raises ConfigError with every mistake in it."""
        chosen: dict[str, bool] = {}
        problems: list[Problem] = []
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, word = (piece.strip() for piece in part.partition("="))
            problem = _mistake(name, word)
            if problem is None:
                chosen[name] = _WORDS[word.lower()]
            else:
                problems.append(problem)
        gates = cls(chosen=chosen)
        problems += [Problem(path=name, message=text) for name, text in gates._unmet()]
        if problems:
            raise ConfigError(problems, source)
        return gates

    def _unmet(self) -> list[tuple[str, str]]:
        asked = [name for name, on in self.chosen.items() if on]
        return [
            (name, f"needs the feature gate {need}, which is off")
            for name in asked
            for need in GATES[name].needs
            if not self(need)
        ]


DEFAULT_GATES = FeatureGates()


def _mistake(name: str, word: str) -> Problem | None:
    gate = GATES.get(name)
    if gate is None:
        message = f"unrecognized feature gate: {name}"
        return Problem(path=name, message=message, hint=did_you_mean(name, GATES))
    if word.lower() not in _WORDS:
        message = f'invalid value of {name}="{word}": write true or false'
        return Problem(path=name, message=message, value=word)
    if gate.locked and _WORDS[word.lower()] != gate.default:
        message = f"cannot set feature gate {name} to {word.lower()}, feature is locked to {_go(gate.default)}"
        return Problem(path=name, message=message, value=word)
    return None


def _go(value: bool) -> str:
    return "true" if value else "false"
