"""GET of one object and of lists."""

from __future__ import annotations

from mooring.api.errors import SelectorError
from mooring.api.selectors import parse_field_selector
from mooring.embedded.apiserver import queries
from mooring.embedded.apiserver.calls import Call
from mooring.embedded.catalog.kinds import Served
from mooring.embedded.http import Answer
from mooring.store import refusals


def get(call: Call) -> Answer:
    return call.answer(call.current())


def list_(call: Call) -> Answer:
    options = queries.list_options(call.query, watch=False)
    listing = call.store.list(
        call.resource,
        namespace=call.path.namespace,
        label_selector=options.label_selector,
        field_selector=stored_fields(call.served, options.field_selector),
        resource_version=options.resource_version,
        exact=options.exact,
        limit=options.limit,
        page=options.page,
    )
    return Answer(200, call.presenter.list(listing), headers=call.warning_headers())


def stored_fields(served: Served, field_selector: str) -> str:
    """A field selector in the names of the stored form."""
    if served.view is None or not field_selector:
        return field_selector
    try:
        terms = parse_field_selector(field_selector).requirements
    except SelectorError as error:
        raise refusals.bad_request(str(error)) from error
    return ",".join(
        f"{served.view.field(term.path)}{'!=' if term.negated else '='}{_escaped(term.value)}"
        for term in terms
    )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
