"""Random objects of every kind, in the right and in the wrong shape: refused or stored, never a crash."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moorage.api import resources
from moorage.api.errors import BadRequest, Conflict, Forbidden, Invalid
from moorage.api.resources import Resource
from moorage.embedded.builtin import strict_rules
from moorage.store.objects import Raw, copy_json
from moorage.store.schemas import Definition, ListOf, MapOf, Plain, Type, library
from tests.store.kit import new_store

WORDS = ["", "a", "web", "A_b", "x/y", "25%", "1", "-1", "100m", "Always", "RollingUpdate", "In", "None", "ü", "a" * 70]
PLAIN: dict[str, list[Any]] = {
    "string": WORDS,
    "bytes": ["", "YQ==", "no base64!"],
    "time": ["2026-01-01T00:00:00Z", "yesterday", ""],
    "microTime": ["2026-01-01T00:00:00.000000Z", ""],
    "int32": [0, 1, -1, 80, 2**31 - 1],
    "int64": [0, 1, -1, 30, 2**63 - 1],
    "float": [0, 0.5],
    "bool": [True, False],
    "quantity": ["1", "100m", "1Gi", "-1", "x", 2, 0.5],
    "intOrString": [0, 1, "25%", "x", -5],
    "any": [None, {}, "x"],
}
WRONG: list[Any] = [None, 5, "x", [], {}, [None], [[]], {"": None}, True, 2**70, 1.5]


class Generator:
    """Values of the API's types, from one seed; `wrong` is the chance of a value of any other type."""

    def __init__(self, seed: int, wrong: float) -> None:
        self.rng = random.Random(seed)
        self.wrong = wrong

    def definition(self, definition: Definition, depth: int) -> Any:
        if definition.fields is None:
            return {}
        chosen = {
            name: field
            for name, field in definition.fields.items()
            if self.rng.random() < (0.9 if name in ("spec", "metadata", "template") or field.required else 0.25)
        }
        return {name: self.value(field.type, depth - 1) for name, field in chosen.items()}

    def value(self, described: Type, depth: int) -> Any:
        if self.rng.random() < self.wrong:
            return self.rng.choice(WRONG)
        if isinstance(described, Plain):
            return self.rng.choice(PLAIN[described.name])
        if isinstance(described, ListOf):
            return [self.value(described.item, depth) for _ in range(self.rng.choice((0, 1, 2)) if depth > 0 else 0)]
        if isinstance(described, MapOf):
            keys = self.rng.sample(WORDS, self.rng.choice((0, 1, 2)))
            return {key: self.value(described.item, depth) for key in keys}
        return self.definition(library().resolve(described), depth) if depth > 0 else {}


def random_object(resource: Resource, generator: Generator) -> Raw:
    definition = library().kind(resource.api_version, resource.kind)
    assert definition is not None
    raw: Raw = generator.definition(definition, 9)
    if not isinstance(raw.get("metadata"), dict):
        raw["metadata"] = {}
    raw["metadata"].pop("resourceVersion", None)
    raw["metadata"].update(name="a" if generator.rng.random() < 0.9 else generator.rng.choice(WORDS))
    raw["metadata"].pop("namespace", None)
    if resource.namespaced:
        raw["metadata"]["namespace"] = "default"
    return raw


@pytest.mark.parametrize("wrong", [0.0, 0.02], ids=["right types", "some wrong types"])
@pytest.mark.parametrize("resource", resources.ALL, ids=lambda resource: resource.plural)
def test_a_refusal_or_an_object(resource, wrong):
    for seed in range(40):
        print(f"seed {seed}")
        generator = Generator(seed, wrong)
        store = new_store(rules=strict_rules())
        for _ in range(2):
            for subresource in ("", "status"):
                raw = random_object(resource, generator)
                before = copy_json(raw)
                try:
                    if store.list(resource).items:
                        current = store.list(resource).items[0]
                        raw["metadata"]["name"] = before["metadata"]["name"] = current.name
                        store.replace(resource, raw, subresource=subresource)
                    else:
                        store.create(resource, raw)
                except (BadRequest, Forbidden, Conflict, Invalid):
                    pass
                assert raw == before, "the rules changed what they were given"
