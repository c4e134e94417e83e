"""The rules of label selectors and node selectors."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.embedded.admission import names
from mooring.embedded.admission.metadata import check_labels
from mooring.embedded.admission.problems import Problems
from mooring.store.objects import Raw

_NEEDED = "must be specified when `operator` is 'In' or 'NotIn'"
_UNWANTED = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_SINGLE = "must be specified single value when `operator` is 'Lt' or 'Gt'"
_UNKNOWN = "not a valid selector operator"


def check_label_selector(selector: Raw | None, path: str, problems: Problems) -> None:
    if not selector:
        return
    if selector.get("matchLabels"):
        check_labels(selector["matchLabels"], f"{path}.matchLabels", problems)
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        _check_requirement(expression, f"{path}.matchExpressions[{index}]", problems, numbers=False)


def is_empty(selector: Raw | None) -> bool:
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def check_node_selector(selector: Raw, path: str, problems: Problems) -> None:
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        problems.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        return
    for index, term in enumerate(terms):
        check_node_term(term, f"{path}.nodeSelectorTerms[{index}]", problems)


def check_node_term(term: Raw, path: str, problems: Problems, *, values: bool = True) -> None:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        _check_requirement(
            expression, f"{path}.matchExpressions[{index}]", problems, numbers=True, check_values=values
        )
    for index, field in enumerate(term.get("matchFields") or ()):
        _check_node_field(field, f"{path}.matchFields[{index}]", problems)


def _check_requirement(
    expression: Raw, path: str, problems: Problems, *, numbers: bool, check_values: bool = True
) -> None:
    operator, values = expression.get("operator"), expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            problems.required(f"{path}.values", _NEEDED)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            problems.forbidden(f"{path}.values", _UNWANTED)
    elif numbers and operator in ("Gt", "Lt"):
        if len(values) != 1:
            problems.required(f"{path}.values", _SINGLE)
    else:
        problems.invalid(f"{path}.operator", operator or "", _UNKNOWN)
    key = expression.get("key") or ""
    problems.all_invalid(f"{path}.key", key, names.qualified(key))
    if check_values:
        _check_values(values, path, problems)


def _check_values(values: Sequence[str], path: str, problems: Problems) -> None:
    for index, value in enumerate(values):
        if sentences := names.label_value(value):
            problems.all_invalid(f"{path}.values[{index}]", value, sentences)


def _check_node_field(field: Raw, path: str, problems: Problems) -> None:
    operator, values = field.get("operator"), field.get("values") or ()
    if operator not in ("In", "NotIn"):
        problems.invalid(f"{path}.operator", operator or "", _UNKNOWN)
    elif len(values) != 1:
        problems.required(
            f"{path}.values",
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )
    if field.get("key") != "metadata.name":
        problems.invalid(f"{path}.key", field.get("key") or "", "not a valid field selector key")
        return
    for index, value in enumerate(values):
        problems.all_invalid(f"{path}.values[{index}]", value, names.subdomain(value))
