"""Rules for the node affinity that NodeAffinityArgs adds to every pod of a profile.

The same that upstream applies while it compiles the terms: operators, number and form of values, label keys.
Matching is the plugin's business.
"""

import re
from collections.abc import Iterator

from mooring.api.node import NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.pod import NodeAffinity
from mooring.config.names import qualified_name_faults
from mooring.config.problems import Problem, child, invalid, unsupported

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_INTEGER = re.compile(r"[+-]?[0-9]+")


def check(affinity: NodeAffinity, path: str) -> Iterator[Problem]:
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None:
        where = child(path, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
        for index, term in enumerate(required.node_selector_terms):
            yield from _check_term(term, child(where, index))
    where = child(path, "preferredDuringSchedulingIgnoredDuringExecution")
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        # A weight of zero switches the term off, whatever it says.
        if preferred.weight != 0:
            yield from _check_term(preferred.preference, child(where, index, "preference"))


def _check_term(term: NodeSelectorTerm, path: str) -> Iterator[Problem]:
    for index, requirement in enumerate(term.match_expressions):
        yield from _check_expression(requirement, child(path, "matchExpressions", index))
    for index, requirement in enumerate(term.match_fields):
        yield from _check_field(requirement, child(path, "matchFields", index))


def _check_expression(requirement: NodeSelectorRequirement, path: str) -> Iterator[Problem]:
    for fault in qualified_name_faults(requirement.key):
        yield invalid(child(path, "key"), requirement.key, fault)
    if requirement.operator not in _OPERATORS:
        yield unsupported(child(path, "operator"), requirement.operator, _OPERATORS)
        return
    fault = _values_fault(requirement)
    if fault:
        yield invalid(child(path, "values"), requirement.values, fault)


def _values_fault(requirement: NodeSelectorRequirement) -> str:
    operator, values = requirement.operator, requirement.values
    if operator in ("In", "NotIn") and not values:
        return "for 'in', 'notin' operators, values set can't be empty"
    if operator in ("Exists", "DoesNotExist") and values:
        return "values set must be empty for exists and does not exist"
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            return "for 'Gt', 'Lt' operators, exactly one value is required"
        if not _INTEGER.fullmatch(values[0]):
            return "for 'Gt', 'Lt' operators, the value must be an integer"
    return ""


def _check_field(requirement: NodeSelectorRequirement, path: str) -> Iterator[Problem]:
    if requirement.key != "metadata.name":
        yield unsupported(child(path, "key"), requirement.key, ("metadata.name",))
    if requirement.operator not in _FIELD_OPERATORS:
        yield unsupported(child(path, "operator"), requirement.operator, _FIELD_OPERATORS)
    if len(requirement.values) != 1:
        yield invalid(child(path, "values"), requirement.values, "must have one element")
