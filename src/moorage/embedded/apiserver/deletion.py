"""DELETE of one object and of many."""

from __future__ import annotations

from moorage.api import resources
from moorage.api.errors import NotFound
from moorage.api.meta import Int64, Record
from moorage.embedded.apiserver import bodies, urls
from moorage.embedded.apiserver.calls import Call, convert, stored_fields, success
from moorage.embedded.http import Answer
from moorage.store import deletion, refusals
from moorage.store.listing import Listing
from moorage.store.objects import Stored

_POLICIES = ("Orphan", "Background", "Foreground")
_GIVE_BACK = frozenset(
    {
        resources.PODS,
        resources.SERVICES,
        resources.SERVICE_ACCOUNTS,
        resources.PERSISTENT_VOLUMES,
        resources.PERSISTENT_VOLUME_CLAIMS,
        resources.POD_TEMPLATES,
        resources.RESOURCE_QUOTAS,
    }
)
"""Kinds whose deletion is answered with the object, also when it is gone at once."""


class Preconditions(Record):
    """What must hold of the object."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Record):
    """How an object goes; unset fields mean the default of its kind."""

    grace_period_seconds: Int64 | None = None
    preconditions: Preconditions = Preconditions()
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] = ()


def delete(call: Call) -> Answer:
    options = options_of(call)
    stored = remove(call, call.path.name, call.path.namespace, options)
    if call.resource in _GIVE_BACK or not deletion.is_over(stored.raw):
        return call.answer(stored)
    resource = call.served.resource
    details = {"name": stored.name, "group": resource.group, "kind": resource.plural, "uid": stored.uid}
    return success(details={field: value for field, value in details.items() if value})


def delete_collection(call: Call) -> Answer:
    """All objects of the list, each as if deleted alone."""
    options = options_of(call)
    chosen = urls.list_options(call.query, watch=False)
    listing = call.store.list(
        call.resource,
        namespace=call.path.namespace,
        label_selector=chosen.label_selector,
        field_selector=stored_fields(call.served, chosen.field_selector),
        limit=chosen.limit,
        page=chosen.page,
    )
    removed: list[Stored] = []
    for stored in listing.items:
        try:
            removed.append(remove(call, stored.name, stored.namespace, options))
        except NotFound:
            continue
    return Answer(200, call.presenter.list(Listing(removed, call.store.version, listing.next_page)))


def remove(call: Call, name: str, namespace: str, options: DeleteOptions) -> Stored:
    """Deletes one object of the call's kind."""
    return call.store.delete(
        call.resource,
        name,
        namespace=namespace,
        uid=options.preconditions.uid or "",
        resource_version=options.preconditions.resource_version or "",
        grace_period=options.grace_period_seconds,
        propagation=options.propagation_policy or "",
        dry_run=call.dry_run or bool(options.dry_run),
    )


def options_of(call: Call) -> DeleteOptions:
    """From the body if there is one, else from the query."""
    if call.body.strip():
        raw = bodies.read_object(call.body, call.content_type)
        if raw.get("kind") not in (None, "", "DeleteOptions"):
            raise refusals.bad_request(
                f"the body of a deletion must be DeleteOptions, not {raw['kind']!s:.100}"
            )
        return checked(
            convert({f: v for f, v in raw.items() if v is not None}, DeleteOptions, "DeleteOptions")
        )
    return checked(
        DeleteOptions(
            grace_period_seconds=urls.number(call.query, "gracePeriodSeconds"),
            orphan_dependents=urls.flag(call.query, "orphanDependents"),
            propagation_policy=call.query.get("propagationPolicy"),
        )
    )


def checked(options: DeleteOptions) -> DeleteOptions:
    """The options with the older `orphanDependents` read as a policy; refused if they contradict."""
    policy, orphan = options.propagation_policy, options.orphan_dependents
    if policy and orphan is not None:
        problem = "Forbidden: orphanDependents and deletionPropagation cannot be both set"
        raise refusals.failure(
            422, "Invalid", f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {problem}'
        )
    if policy and policy not in _POLICIES:
        known = ", ".join(f'"{value}"' for value in (*sorted(_POLICIES), "nil"))
        problem = f'Unsupported value: "{policy[:100]}": supported values: {known}'
        raise refusals.failure(
            422, "Invalid", f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {problem}'
        )
    if any(value != "All" for value in options.dry_run):
        raise refusals.failure(422, "Invalid", 'dryRun: Unsupported value: supported values: "All"')
    if orphan is None:
        return options
    return DeleteOptions(
        grace_period_seconds=options.grace_period_seconds,
        preconditions=options.preconditions,
        propagation_policy="Orphan" if orphan else "Background",
        dry_run=options.dry_run,
    )
