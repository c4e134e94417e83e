"""All that is wrong with an object, collected field by field in the API server's words.

The sentences are part of the behaviour: kubectl prints them, and people search for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from moorage.api.errors import ApiError
from moorage.api.meta import StatusCause
from moorage.api.resources import Resource
from moorage.store import refusals

IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"
POSITIVE = "must be greater than zero"


class Problems:
    """The problems of one object, in the order of finding."""

    __slots__ = ("causes",)

    def __init__(self) -> None:
        self.causes: list[StatusCause] = []

    def __bool__(self) -> bool:
        return bool(self.causes)

    def required(self, path: str, detail: str = "") -> None:
        self._add("FieldValueRequired", path, "Required value", detail)

    def forbidden(self, path: str, detail: str) -> None:
        self._add("FieldValueForbidden", path, "Forbidden", detail)

    def invalid(self, path: str, value: Any, detail: str) -> None:
        self._add("FieldValueInvalid", path, f"Invalid value: {_shown(value)}", detail)

    def all_invalid(self, path: str, value: Any, details: Iterable[str]) -> None:
        """One problem for each sentence that a check of names has to say."""
        for detail in details:
            self.invalid(path, value, detail)

    def duplicate(self, path: str, value: Any, detail: str = "") -> None:
        self._add("FieldValueDuplicate", path, f"Duplicate value: {_shown(value)}", detail)

    def not_supported(self, path: str, value: Any, supported: Iterable[str]) -> None:
        known = ", ".join(f'"{one}"' for one in supported)
        self._add("FieldValueNotSupported", path, f"Unsupported value: {_shown(value)}", f"supported values: {known}")

    def not_found(self, path: str, value: Any) -> None:
        self._add("FieldValueNotFound", path, f"Not found: {_shown(value)}", "")

    def too_long(self, path: str, limit: int) -> None:
        self._add("FieldValueTooLong", path, "Too long", f"may not be more than {limit} bytes")

    def too_many(self, path: str, count: int, limit: int) -> None:
        self._add("FieldValueTooMany", path, f"Too many: {count}", f"must have at most {limit} items")

    # KindStrategy that many fields share

    def one_of(self, path: str, value: Any, supported: Iterable[str]) -> None:
        """A required word out of a few."""
        if not value:
            self.required(path)
        elif value not in supported:
            self.not_supported(path, value, supported)

    def not_negative(self, path: str, value: int | None) -> None:
        if value is not None and value < 0:
            self.invalid(path, value, NOT_NEGATIVE)

    def positive(self, path: str, value: int | None) -> None:
        if value is not None and value <= 0:
            self.invalid(path, value, POSITIVE)

    def unchanged(self, path: str, new: Any, old: Any, detail: str = IMMUTABLE) -> None:
        if new != old and (new or old):
            self.invalid(path, new, detail)

    def refusal(self, resource: Resource, name: str) -> ApiError:
        """The 422 that names all of them."""
        parts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in self.causes))
        text = parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"
        kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
        return refusals.failure(
            422,
            "Invalid",
            f'{kind} "{name}" is invalid: {text}',
            resource=resource,
            name=name,
            causes=tuple(self.causes),
            kind=resource.kind,
        )

    def _add(self, reason: str, path: str, message: str, detail: str) -> None:
        self.causes.append(
            StatusCause(reason=reason, message=f"{message}: {detail}" if detail else message, field=path)
        )


def _shown(value: Any) -> str:
    """As Go prints it: texts quoted, numbers plain, everything else as JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= 2000 else f"{text[:2000]}..."
