"""Feature gates that a scheduler reads: their defaults by version, and a set of choices on top.

Parses `A=true,B=false` as `--feature-gates` takes it. What a gate switches is decided where it is asked.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from moorage.api.meta import Record
from moorage.api.problems import Problem, did_you_mean
from moorage.api.versions import BEHAVIOURS, DEFAULT_VERSION, Behaviour, behaviour_of
from moorage.config.types import ConfigError


class Gate(NamedTuple):
    """One gate. A locked one can be named only with its default; `needs` must be on with it. `effect` is what users
    read about a default that has changed."""

    default: bool
    stage: str = "beta"
    locked: bool = False
    needs: tuple[str, ...] = ()
    effect: str = ""


_LOCKED = Gate(True, "ga", locked=True)
_GA = Gate(True, "ga")
_ON = Gate(True)
_OFF = Gate(False)
_ALPHA = Gate(False, "alpha")


def _alpha(*needs: str) -> Gate:
    return Gate(False, "alpha", needs=needs)


_NO_SUCH: Gate | None = None
_DRA = "DynamicResourceAllocation"

# A column per minor of BEHAVIOURS. A row that ends early stays as it is in all later minors.
_TABLE: Mapping[str, tuple[Gate | None, ...]] = {
    "SchedulerQueueingHints": (_LOCKED, _NO_SUCH),
    "DynamicResourceAllocation": (_LOCKED,),
    "DRAAdminAccess": (_GA, _LOCKED),
    "DRAPrioritizedList": (_GA, _LOCKED),
    "InPlacePodVerticalScaling": (_LOCKED,),
    "NodeInclusionPolicyInPodTopologySpread": (_LOCKED,),
    "SidecarContainers": (_LOCKED, _NO_SUCH),
    "VolumeAttributesClass": (_LOCKED,),
    "SchedulerAsyncPreemption": (_ON,),
    "SchedulerPopFromBackoffQ": (_ON,),
    "OpportunisticBatching": (_ON,),
    "NominatedNodeNameForExpectation": (_ON,),
    "NodeDeclaredFeatures": (_ON, _LOCKED),
    "PodLevelResources": (_ON,),
    "InPlacePodLevelResourcesVerticalScaling": (_ON,),
    "MatchLabelKeysInPodTopologySpread": (_ON,),
    "DRAExtendedResource": (_ON, _LOCKED),
    "DRAConsumableCapacity": (_ON,),
    "DRAFractionalCapacityRange": (_NO_SUCH, Gate(True, needs=("DRAConsumableCapacity",))),
    "DRADeviceTaints": (_ON, _LOCKED),
    "DRADeviceBindingConditions": (_ON,),
    "DRAPartitionableDevices": (_ON,),
    "DRAResourceClaimDeviceStatus": (_ON, _LOCKED),
    "DRASchedulerFilterTimeout": (_ON,),
    "ComponentFlagz": (_ON,),
    "ComponentStatusz": (_ON,),
    "SchedulerAsyncAPICalls": (_OFF,),
    "CoordinatedLeaderElection": (_OFF,),
    "DRADeviceTaintRules": (_OFF, _LOCKED),
    "GenericWorkload": (_ALPHA, _OFF),
    "GangScheduling": (_alpha("GenericWorkload"), _NO_SUCH),
    "TopologyAwareWorkloadScheduling": (_alpha("GenericWorkload"),),
    "WorkloadAwarePreemption": (_alpha("GangScheduling"), _NO_SUCH),
    "CompositePodGroup": (_NO_SUCH, _alpha("GenericWorkload", "TopologyAwareWorkloadScheduling")),
    "PodGroupPreemptionPolicy": (_NO_SUCH, _alpha("GenericWorkload")),
    "DRAWorkloadResourceClaims": (_alpha(_DRA, "GenericWorkload"), Gate(False, needs=(_DRA, "GenericWorkload"))),
    "DRANodeAllocatableResources": (_ALPHA,),
    "DRAListTypeAttributes": (_ALPHA,),
    "DRADerivedAttributes": (_NO_SUCH, _ALPHA),
    "DRADeviceCompatibilityGroups": (_NO_SUCH, _ALPHA),
    "DRAOptionalNodeOperations": (_NO_SUCH, _ALPHA),
    "VolumeLimitScaling": (_ALPHA, _ON),
    "StorageCapacityScoring": (_ALPHA, Gate(True, effect="VolumeBinding prefers nodes with more free storage")),
    "TaintTolerationComparisonOperators": (_ALPHA,),
    "SchedulerPreQueueingHints": (_NO_SUCH, _ALPHA),
    "InterPodAffinityHostnameFastPath": (_NO_SUCH, _ALPHA),
    "InPlacePodVerticalScalingSchedulerPreemption": (_NO_SUCH, _ALPHA),
}


def _column(index: int) -> Mapping[str, Gate]:
    found = {name: row[min(index, len(row) - 1)] for name, row in _TABLE.items()}
    return MappingProxyType({name: gate for name, gate in found.items() if gate is not None})


GATES: Mapping[str, Mapping[str, Gate]] = {minor: _column(index) for index, minor in enumerate(BEHAVIOURS)}
"""Minor → the gates that its scheduler knows."""

_WORDS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


class FeatureGates(Record):
    """Which gates are on: the defaults of a version, changed by what was asked for."""

    chosen: dict[str, bool] = {}
    version: str = DEFAULT_VERSION
    overrides: dict[str, Any] = {}
    """Fields of the version's behaviour that are replaced: previews try changes of another version one at a time."""

    def __call__(self, name: str) -> bool:
        """Whether the gate is on. Asking for a gate that does not exist is a bug, so it raises KeyError."""
        default = self.known[name].default
        return self.chosen.get(name, default)

    @property
    def known(self) -> Mapping[str, Gate]:
        """The gates of the version."""
        return GATES[self.version]

    @property
    def behaviour(self) -> Behaviour:
        """What kube-scheduler of the version does with these gates."""
        found = replace(behaviour_of(self.version), requires_listed_csi_driver=self("VolumeLimitScaling"))
        return replace(found, **self.overrides) if self.overrides else found

    @classmethod
    def of(cls, version: str = "") -> "FeatureGates":
        """Return the defaults of a version as `--emulated-version` takes it. Raises a MoorageError for another one."""
        return cls(version=behaviour_of(version).minor)

    @classmethod
    def parse(cls, text: str, version: str = "", source: str = "--feature-gates") -> "FeatureGates":
        """The gates of `A=true,B=false`; raises ConfigError with every mistake in it."""
        chosen: dict[str, bool] = {}
        problems: list[Problem] = []
        defaults = cls.of(version)
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, word = (piece.strip() for piece in part.partition("="))
            problem = _mistake(name, word, defaults)
            if problem is None:
                chosen[name] = _WORDS[word.lower()]
            else:
                problems.append(problem)
        gates = cls(chosen=chosen, version=defaults.version)
        problems += [Problem(path=name, message=text) for name, text in gates._unmet()]
        if problems:
            raise ConfigError(problems, source)
        return gates

    def _unmet(self) -> list[tuple[str, str]]:
        asked = [name for name, on in self.chosen.items() if on]
        return [
            (name, f"needs the feature gate {need}, which is off")
            for name in asked
            for need in self.known[name].needs
            if not self(need)
        ]


DEFAULT_GATES = FeatureGates()


def _mistake(name: str, word: str, gates: FeatureGates) -> Problem | None:
    gate = gates.known.get(name)
    if gate is None:
        return _unknown(name, gates)
    if word.lower() not in _WORDS:
        message = f'invalid value of {name}="{word}": write true or false'
        return Problem(path=name, message=message, value=word)
    if gate.locked and _WORDS[word.lower()] != gate.default:
        message = f"cannot set feature gate {name} to {word.lower()}, feature is locked to {_go(gate.default)}"
        return Problem(path=name, message=message, value=word)
    return None


def _unknown(name: str, gates: FeatureGates) -> Problem:
    message = f"unrecognized feature gate: {name}"
    elsewhere = [minor for minor, known in GATES.items() if name in known]
    if elsewhere:
        message += f"; kube-scheduler {gates.version} does not have it, {' and '.join(elsewhere)} does"
    return Problem(path=name, message=message, hint=did_you_mean(name, gates.known))


def _go(value: bool) -> str:
    return "true" if value else "false"
