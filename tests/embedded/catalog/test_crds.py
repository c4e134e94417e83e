"""Custom kinds: definitions, their status, schemas, versions, and their end."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from moorage.api.errors import ApiError, Invalid
from moorage.api.resources import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from moorage.api.resources import custom
from moorage.embedded.builtin import built_in_catalog
from moorage.embedded.catalog.crds.definitions import FINALIZER, DefinitionAdmission
from moorage.embedded.catalog.crds.kinds import served_kinds
from moorage.embedded.catalog.crds.registrar import Registrar
from moorage.embedded.catalog.kinds import ScalePaths, ServedKind
from moorage.telemetry.logs import VALUES
from tests.embedded.catalog.kit import NOW, make_store
from tests.embedded.catalog.widgets import definition, widget

WIDGETS = custom("example.io", "v1", "widgets", "Widget")


class World:
    """A store, a catalog and a registrar whose deferred work is done by `run`."""

    def __init__(self) -> None:
        self.store, self.catalog = make_store(), built_in_catalog()
        self.deferred: list[Callable[[], None]] = []
        self.registrar = Registrar(self.store, self.catalog, lambda: NOW, self.deferred.append)

    def run(self) -> None:
        for _ in range(20):
            if not self.deferred:
                return
            self.deferred.pop(0)()
        pytest.fail("the registrar does not come to rest")

    def create(self, raw: dict[str, Any]) -> None:
        self.store.create(CRDS, DefinitionAdmission().admit(raw, None))
        self.run()

    def conditions(self, name: str) -> dict[str, str]:
        status = self.store.get(CRDS, name).raw["status"]
        return {condition["type"]: condition["status"] for condition in status["conditions"]}

    def find(self, version: str = "v1", plural: str = "widgets") -> ServedKind | None:
        return self.catalog.find("example.io", version, plural)

    def there(self, name: str) -> bool:
        return any(stored.name == name for stored in self.store.list(CRDS).items)


@pytest.fixture
def world() -> World:
    return World()


# Definitions


def refused(raw: dict[str, Any], old: dict[str, Any] | None = None) -> str:
    with pytest.raises(Invalid) as caught:
        DefinitionAdmission().admit(raw, old)
    return caught.value.status.message


def changed(path: str, value: Any) -> dict[str, Any]:
    """The definition with one value changed; None takes it away. Steps are fields or positions."""
    raw = copy.deepcopy(definition())
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    place: Any = raw
    for step in steps:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return raw


V = "spec/versions/0"
SPEC = f"{V}/schema/openAPIV3Schema/properties/spec"


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("metadata/name", "x.y", 'metadata.name: Invalid value: "x.y": must be spec.names.plural+"."+spec.group'),
        ("spec/scope", "Galaxy", 'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'),
        ("spec/names/kind", None, "spec.names.kind: Required value"),
        ("spec/versions", [], "spec.versions: Required value"),
        (f"{V}/name", None, "spec.versions[0].name: Required value"),
        (
            f"{V}/storage",
            False,
            'spec.versions: Invalid value: ["v1"]: must have exactly one version marked as storage version',
        ),
        (f"{V}/schema", None, "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"),
        (
            f"{V}/schema/openAPIV3Schema/type",
            "string",
            'openAPIV3Schema.type: Invalid value: "string": must be object at the root',
        ),
        (
            f"{SPEC}/properties/size/type",
            None,
            "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].type: Required value: "
            "must not be empty for specified object fields",
        ),
        (f"{SPEC}/properties/size/type", "int", 'Unsupported value: "int": supported values: "string", "integer"'),
        (f"{SPEC}/properties/tags/items", None, "properties[tags].items: Required value: must be specified"),
        (
            f"{SPEC}/properties/title/pattern",
            "[",
            'pattern: Invalid value: "[": must be a valid regular expression, but isn\'t: missing ]: [',
        ),
        (f"{SPEC}/properties/title/pattern", "(?=a)b", "but isn't: invalid perl operator: (?="),
        (f"{SPEC}/properties/title/pattern", r"(a)\1", r"but isn't: invalid escape sequence: \1"),
        (f"{SPEC}/properties/one/anyOf", [{"properties": {"a": {"pattern": "("}}}], "anyOf[0].properties[a].pattern: "),
        (f"{SPEC}/properties/one/not", {"allOf": [{"pattern": "+"}]}, "[one].not.allOf[0].pattern: Invalid value: "),
        (f"{SPEC}/properties/size/$ref", "http://elsewhere", "[size].$ref: Forbidden: $ref is not supported"),
        (
            f"{SPEC}/properties/free/patternProperties",
            {"a+": {"type": "string"}},
            "[free].patternProperties: Forbidden: patternProperties is not supported",
        ),
        (f"{SPEC}/properties/tags/uniqueItems", True, "uniqueItems cannot be set to true since the runtime complexity"),
        (f"{V}/additionalPrinterColumns/0/jsonPath", "." + "a" * 1000, "is longer than 1000 characters"),
        (f"{V}/additionalPrinterColumns/0/jsonPath", "size", "JSONPath 'size' is not understood"),
        (f"{V}/additionalPrinterColumns/0/type", "text", 'additionalPrinterColumns[0].type: Unsupported value: "text"'),
        (f"{V}/subresources/scale/specReplicasPath", ".status.x", "should be a json path under .spec"),
        ("spec/conversion", {"strategy": "Webhook"}, 'Unsupported value: "Webhook": supported values: "None"'),
    ],
)
def test_wrong_definitions_are_refused_with_the_field(path, value, problem):
    assert problem in refused(changed(path, value))


@pytest.mark.parametrize("value", ["a" * 40 + "!", "aa\n"], ids=["backtracking", "newline"])
def test_a_pattern_is_matched_in_linear_time_and_as_in_go(value):
    served = served_kinds(DefinitionAdmission().admit(changed(f"{SPEC}/properties/title/pattern", "^(a+)+$"), None))
    with pytest.raises(Invalid, match=r"spec.title in body should match '\^\(a\+\)\+\$'"):
        served[0].admission.admit(widget(title=value), None)  # type: ignore[union-attr]
    assert served[0].admission.admit(widget(title="aaa"), None)  # type: ignore[union-attr]


def test_a_path_with_much_space_is_read_in_no_more_than_quadratic_time():
    path = "[?(@.a==" + " " * 900 + ")x]"
    assert "is not understood" in refused(changed(f"{V}/additionalPrinterColumns/0/jsonPath", path))


def test_a_stored_definition_that_is_wrong_is_not_served_and_named(world, caplog):
    world.store.create(CRDS, changed(f"{SPEC}/properties/title/pattern", "(?=a)b"))
    world.run()
    assert world.find() is None
    (values,) = [getattr(record, VALUES) for record in caplog.records if "is not served" in record.msg]
    assert values["name"] == "widgets.example.io"
    assert "invalid perl operator" in values["err"]


def test_names_and_conversion_are_filled_in_and_the_cleaner_is_called():
    admitted = DefinitionAdmission().admit(definition(), None)
    names = admitted["spec"]["names"]
    assert (names["singular"], names["listKind"]) == ("widget", "WidgetList")
    assert admitted["spec"]["conversion"] == {"strategy": "None"}
    assert admitted["metadata"]["finalizers"] == [FINALIZER]


def test_scope_and_names_cannot_be_changed():
    old = DefinitionAdmission().admit(definition(), None)
    new = copy.deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    assert 'spec.scope: Invalid value: "Cluster": field is immutable' in refused(new, old)


# Life


def test_a_definition_is_served_and_says_so(world):
    world.create(definition())
    assert world.conditions("widgets.example.io") == {"NamesAccepted": "True", "Established": "True"}
    served = world.find()
    assert served is not None
    assert (served.singular, served.short_names, served.list_name) == ("widget", ("wi",), "WidgetList")
    assert [sub.name for sub in served.subresources] == ["status", "scale"]
    assert served.scale == ScalePaths(("spec", "size"), ("status", "replicas"))
    status = world.store.get(CRDS, "widgets.example.io").raw["status"]
    assert status["storedVersions"] == ["v1"]
    assert status["acceptedNames"]["kind"] == "Widget"


def test_definitions_that_are_there_already_are_served_from_the_start(world):
    world.create(definition())
    catalog = built_in_catalog()
    version = world.store.version
    Registrar(world.store, catalog, lambda: NOW, world.deferred.append)
    assert catalog.find("example.io", "v1", "widgets") is not None
    assert world.store.version == version


def test_taken_names_are_not_served_until_they_are_free(world):
    world.create(definition())
    world.create(definition(kind="Widget", plural="widgetz"))
    assert world.conditions("widgetz.example.io") == {"NamesAccepted": "False", "Established": "False"}
    assert world.find(plural="widgetz") is None
    world.store.delete(CRDS, "widgets.example.io")
    world.run()
    assert world.find(plural="widgets") is None
    assert world.conditions("widgetz.example.io") == {"NamesAccepted": "True", "Established": "True"}
    assert world.find(plural="widgetz") is not None


def test_the_end_of_a_definition_is_the_end_of_its_objects(world):
    world.create(definition())
    world.store.create(WIDGETS, widget("a"))
    world.store.create(WIDGETS, widget("b"))
    world.store.delete(CRDS, "widgets.example.io")
    world.run()
    assert not world.there("widgets.example.io")
    assert not world.store.list(WIDGETS).items
    assert world.find() is None


def test_a_definition_waits_for_the_finalizers_of_its_objects(world):
    world.create(definition())
    raw = widget("a")
    raw["metadata"]["finalizers"] = ["example.io/wait"]
    world.store.create(WIDGETS, raw)
    world.store.delete(CRDS, "widgets.example.io")
    world.run()
    assert world.conditions("widgets.example.io")["Terminating"] == "True"
    served = world.find()
    assert served is not None
    assert served.admission is not None
    with pytest.raises(ApiError, match="create not allowed while custom resource definition is terminating"):
        served.admission.admit(widget("c"), None)
    world.store.patch(
        WIDGETS, "a", {"metadata": {"finalizers": None}}, namespace="default", patch_type="application/merge-patch+json"
    )
    world.run()
    assert not world.there("widgets.example.io")
    assert world.find() is None


def test_a_version_that_is_no_longer_served_is_taken_away(world):
    raw = definition()
    old = {**raw["spec"]["versions"][0], "name": "v1beta1", "storage": False}
    raw["spec"]["versions"].append(old)
    world.create(raw)
    assert world.find("v1beta1") is not None
    current = copy.deepcopy(world.store.get(CRDS, "widgets.example.io").raw)
    current["spec"]["versions"][1]["served"] = False
    world.store.replace(CRDS, current)
    world.run()
    assert world.find("v1beta1") is None
    assert world.find("v1") is not None


def test_versions_share_their_objects():
    raw = definition()
    raw["spec"]["versions"].append({**raw["spec"]["versions"][0], "name": "v2", "storage": False})
    first, second = served_kinds(raw)
    assert first.stored == second.stored == WIDGETS
    assert second.view is not None
    stored = second.view.inward({**widget(), "apiVersion": "example.io/v2"})
    assert stored["apiVersion"] == "example.io/v1"
    assert second.view.outward(stored)["apiVersion"] == "example.io/v2"
    assert second.view.field("metadata.name") == "metadata.name"


def test_a_deprecated_version_warns():
    raw = changed(f"{V}/deprecated", True)
    assert served_kinds(raw)[0].warning == "example.io/v1 Widget is deprecated"
    raw["spec"]["versions"][0]["deprecationWarning"] = "use v2"
    assert served_kinds(raw)[0].warning == "use v2"


def test_a_broken_definition_that_was_loaded_is_not_served(world):
    world.store.load(CRDS, {"metadata": {"name": "b"}, "spec": {"names": {}}})
    world.run()
    assert world.find() is None


def test_a_registrar_that_fell_behind_catches_up(world):
    world.create(definition())
    world.store.delete(CRDS, "widgets.example.io")
    world.store.create(CRDS, DefinitionAdmission().admit(definition(kind="Gadget", plural="gadgets"), None))
    world.store.compact()
    world.run()
    assert world.find(plural="gadgets") is not None


def test_after_close_nothing_is_planned(world):
    world.registrar.close()
    world.store.create(CRDS, DefinitionAdmission().admit(definition(), None))
    assert not world.deferred


# Objects


def admit(raw: dict[str, Any], old: dict[str, Any] | None = None, subresource: str = "") -> dict[str, Any]:
    rules = served_kinds(definition())[0].admission
    assert rules is not None
    return rules.admit(raw, old, subresource)


def test_defaults_are_filled_in_and_unknown_fields_cut_off():
    raw = widget(sise=2, parts=[{"name": "a", "x": 1}], free={"any": {"thing": 1}}, labels={"a": "b"}, note=None)
    assert admit({**raw, "extra": 1}) == widget(
        mode="fast", parts=[{"name": "a", "count": 1}], free={"any": {"thing": 1}}, labels={"a": "b"}, note=None
    )


def test_a_null_takes_the_default():
    assert admit(widget(mode=None))["spec"]["mode"] == "fast"


@pytest.mark.parametrize("port", [80, "http"])
def test_int_or_string(port):
    assert admit(widget(port=port))["spec"]["port"] == port


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"size": "big"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
        ({"size": 1.5}, 'spec.size: Invalid value: "number": spec.size in body must be of type integer: "number"'),
        ({"size": True}, 'spec.size: Invalid value: "boolean": spec.size in body must be of type integer: "boolean"'),
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ({"size": 11}, "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"),
        ({"size": None}, "spec.size: Required value"),
        ({"mode": "odd"}, 'spec.mode: Unsupported value: "odd": supported values: "fast", "slow"'),
        ({"title": "AB"}, "spec.title: Invalid value: \"AB\": spec.title in body should match '^[a-z]+$'"),
        ({"title": "a"}, 'spec.title: Invalid value: "a": spec.title in body should be at least 2 chars long'),
        ({"title": "abcdef"}, "spec.title: Too long: may not be more than 5 bytes"),
        (
            {"port": 1.5},
            'spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"',
        ),
        ({"ratio": 0}, "spec.ratio: Invalid value: 0: spec.ratio in body should be greater than 0"),
        ({"ratio": 0.7}, "spec.ratio: Invalid value: 0.7: spec.ratio in body should be a multiple of 0.5"),
        ({"at": "soon"}, 'spec.at: Invalid value: "soon": spec.at in body must be of type date-time: "soon"'),
        ({"labels": {"a": 1}}, 'spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string'),
        ({"labels": {"a": "", "b": "", "c": ""}}, "spec.labels: Too many: 3: must have at most 2 items"),
        ({"tags": ["a", "b", "c", "d"]}, "spec.tags: Too many: 4: must have at most 3 items"),
        ({"tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
        ({"parts": []}, "spec.parts: Invalid value: []: spec.parts in body should have at least 1 items"),
        ({"parts": [{}]}, "spec.parts[0].name: Required value"),
        ({"parts": [{"name": "a"}, {"name": "a"}]}, 'spec.parts[1]: Duplicate value: {"name":"a"}'),
        ({"one": {}}, '"spec.one" must validate one and only one schema (oneOf). Found none valid'),
        ({"one": {}}, "spec.one.a: Required value"),
    ],
)
def test_objects_outside_their_schema_are_refused_with_the_field(spec, problem):
    with pytest.raises(Invalid) as caught:
        admit(widget(**spec))
    assert problem in caught.value.status.message
    assert caught.value.status.message.startswith('Widget.example.io "w" is invalid: ')


def test_all_problems_are_reported():
    with pytest.raises(Invalid) as caught:
        admit(widget(size=0, mode="odd"))
    details = caught.value.status.details
    assert details is not None
    assert [cause.field for cause in details.causes] == ["spec.size", "spec.mode"]


def test_a_missing_spec_is_reported():
    with pytest.raises(Invalid, match="spec: Required value"):
        admit({"metadata": {"name": "w"}})


def test_the_status_door_changes_the_status_only():
    old = admit(widget(size=3))
    new = admit({**widget(size=99), "status": {"replicas": 2, "x": 1}}, old, "status")
    assert new["spec"]["size"] == 3
    assert new["status"] == {"replicas": 2}
