"""What the workload kinds share: selectors, pod templates, numbers that may be percentages."""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.api.errors import SelectorError
from mooring.api.meta import LabelSelector
from mooring.api.selectors import compile_label_selector
from mooring.embedded.admission import names
from mooring.embedded.admission.metadata import check_labels
from mooring.embedded.admission.pods.defaults import fill_in_template_spec
from mooring.embedded.admission.pods.spec import check_spec
from mooring.embedded.admission.problems import NOT_NEGATIVE, Problems
from mooring.embedded.admission.selectors import check_label_selector, is_empty
from mooring.embedded.objects import Raw


def fill_in_template(given: Raw | None) -> Raw:
    template = given or {}
    metadata = {"creationTimestamp": None, **(template.get("metadata") or {})}
    return {
        **template,
        "metadata": {field: value for field, value in metadata.items() if value is not None},
        "spec": fill_in_template_spec(template.get("spec")),
    }


def check_template(template: Raw, path: str, problems: Problems) -> None:
    labels = (template.get("metadata") or {}).get("labels")
    if labels:
        check_labels(labels, f"{path}.metadata.labels", problems)
    check_spec(template["spec"], f"{path}.spec", problems)


def check_always(template: Raw, path: str, kind: str, problems: Problems) -> None:
    """Pods that are replaced for ever run for ever."""
    policy = template["spec"].get("restartPolicy")
    if policy in ("OnFailure", "Never"):
        problems.not_supported(f"{path}.spec.restartPolicy", policy, ("Always",))
    if template["spec"].get("activeDeadlineSeconds") is not None:
        problems.forbidden(
            f"{path}.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported"
        )


def check_selector(spec: Raw, kind: str, problems: Problems) -> None:
    """There is one, it selects something, and the template's own pods are among it."""
    selector = spec.get("selector")
    if selector is None:
        problems.required("spec.selector")
        return
    check_label_selector(selector, "spec.selector", problems)
    if is_empty(selector):
        problems.invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
        return
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    try:
        compiled = compile_label_selector(msgspec.convert(selector, LabelSelector))
    except SelectorError:
        return  # said already
    if not compiled.matches(labels):
        problems.invalid(
            "spec.template.metadata.labels", labels, "`selector` does not match template `labels`"
        )


def check_share(value: Any, path: str, problems: Problems) -> None:
    """A number of pods, or a percentage of them."""
    if isinstance(value, str):
        if not names.is_percent(value):
            problems.invalid(path, value, "must be an integer or percentage (e.g '5%%')")
    elif value < 0:
        problems.invalid(path, value, NOT_NEGATIVE)


def share(value: Any) -> int:
    """The number in it, with or without percent sign; -1 for a text that has none."""
    if isinstance(value, str):
        return int(value[:-1]) if names.is_percent(value) else -1
    return int(value)


def limit_share(value: Any, path: str, problems: Problems) -> None:
    if isinstance(value, str) and names.is_percent(value) and int(value[:-1]) > 100:
        problems.invalid(path, value, "must not be greater than 100%")
