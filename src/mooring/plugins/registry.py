"""The default plugins that are built. An explicit table: what is not listed here does not exist."""

from __future__ import annotations

from mooring.framework.points import Plugin
from mooring.plugins.default_binder import DefaultBinder
from mooring.plugins.node_name import NodeName
from mooring.plugins.node_unschedulable import NodeUnschedulable
from mooring.plugins.priority_sort import PrioritySort
from mooring.plugins.scheduling_gates import SchedulingGates
from mooring.plugins.taint_toleration import TaintToleration

DEFAULT: tuple[type[Plugin], ...] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    DefaultBinder,
)
