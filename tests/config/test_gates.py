"""Feature gates: defaults by version, choices, and their mistakes."""

import pytest

from moorage import config
from moorage.api.versions import BEHAVIOURS
from moorage.config.gates import DEFAULT_GATES, GATES


@pytest.mark.parametrize(
    ("gate", "in_1_36", "in_1_37"),
    [
        ("SchedulerQueueingHints", True, None),
        ("DynamicResourceAllocation", True, True),
        ("SchedulerAsyncPreemption", True, True),
        ("DRASchedulerFilterTimeout", True, True),
        ("DRADeviceTaintRules", False, True),
        ("SchedulerAsyncAPICalls", False, False),
        ("GenericWorkload", False, False),
        ("GangScheduling", False, None),
        ("StorageCapacityScoring", False, True),
        ("VolumeLimitScaling", False, True),
        ("SchedulerPreQueueingHints", None, False),
    ],
)
def test_defaults_depend_on_the_version(gate, in_1_36, in_1_37):
    for version, on in (("1.36", in_1_36), ("1.37", in_1_37)):
        gates = config.FeatureGates.of(version)
        assert (gates(gate) if gate in gates.known else None) is on


@pytest.mark.parametrize("gates", GATES.values(), ids=list(GATES))
def test_needs_name_gates(gates):
    assert {need for gate in gates.values() for need in gate.needs} <= set(gates)


@pytest.mark.parametrize("version", BEHAVIOURS)
def test_the_behaviour_of_a_version_has_the_defaults_of_its_gates(version):
    assert config.FeatureGates.of(version).behaviour == BEHAVIOURS[version]


def test_a_gate_switches_the_behaviour_that_it_stands_for():
    off = config.FeatureGates.parse("VolumeLimitScaling=false", "1.37")
    assert not off.behaviour.requires_listed_csi_driver
    assert config.FeatureGates.parse("VolumeLimitScaling=true", "1.36").behaviour.requires_listed_csi_driver


@pytest.mark.parametrize("gate", ["SchedulerQueueingHints", "SidecarContainers", "GangScheduling"])
def test_a_removed_gate_is_refused_with_the_version_that_has_it(gate):
    with pytest.raises(config.ConfigError, match=f"unrecognized feature gate: {gate}; .* 1.37 .* 1.36 does"):
        config.FeatureGates.parse(f"{gate}=true", "1.37")


def test_choices_win_over_defaults():
    gates = config.FeatureGates.parse("StorageCapacityScoring=true, SchedulerAsyncPreemption=F,", "1.36")
    assert gates("StorageCapacityScoring")
    assert not gates("SchedulerAsyncPreemption")
    assert gates("DRADeviceTaints")


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(config.ConfigError) as caught:
        config.FeatureGates.parse(
            "StorageCapacityScorin=true,SchedulerQueueingHints=false,DRADeviceTaints=maybe,GangScheduling=true", "1.36"
        )
    assert str(caught.value).splitlines() == [
        "--feature-gates: 4 problems",
        "  StorageCapacityScorin: unrecognized feature gate: StorageCapacityScorin "
        '(did you mean "StorageCapacityScoring"?)',
        "  SchedulerQueueingHints: cannot set feature gate SchedulerQueueingHints to false, feature is locked to true",
        '  DRADeviceTaints: invalid value of DRADeviceTaints="maybe": write true or false',
        "  GangScheduling: needs the feature gate GenericWorkload, which is off",
    ]


def test_a_locked_gate_may_be_named_with_its_value():
    assert config.FeatureGates.parse("InPlacePodVerticalScaling=true")("InPlacePodVerticalScaling")


def test_a_gate_that_does_not_exist_is_a_bug():
    with pytest.raises(KeyError):
        DEFAULT_GATES("Nonsense")
