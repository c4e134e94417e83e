"""Feature gates: defaults of 1.36, choices, and their mistakes."""

import pytest

from moorage import config
from moorage.config.gates import DEFAULT_GATES, GATES


@pytest.mark.parametrize(
    ("gate", "on"),
    [
        ("SchedulerQueueingHints", True),
        ("DynamicResourceAllocation", True),
        ("SchedulerAsyncPreemption", True),
        ("DRASchedulerFilterTimeout", True),
        ("SchedulerAsyncAPICalls", False),
        ("GangScheduling", False),
        ("StorageCapacityScoring", False),
    ],
)
def test_defaults(gate, on):
    assert DEFAULT_GATES(gate) is on


def test_needs_name_gates():
    assert {need for gate in GATES.values() for need in gate.needs} <= set(GATES)


def test_choices_win_over_defaults():
    gates = config.FeatureGates.parse("StorageCapacityScoring=true, SchedulerAsyncPreemption=F,")
    assert gates("StorageCapacityScoring")
    assert not gates("SchedulerAsyncPreemption")
    assert gates("DRADeviceTaints")


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(config.ConfigError) as caught:
        config.FeatureGates.parse(
            "StorageCapacityScorin=true,SchedulerQueueingHints=false,DRADeviceTaints=maybe,GangScheduling=true"
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
    assert config.FeatureGates.parse("SchedulerQueueingHints=true")("SchedulerQueueingHints")


def test_a_gate_that_does_not_exist_is_a_bug():
    with pytest.raises(KeyError):
        DEFAULT_GATES("Nonsense")
