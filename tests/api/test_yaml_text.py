"""YAML within limits, in the module itself and at every place where users hand in a text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.api import yaml_text
from moorage.api.errors import MoorageError
from moorage.api.yaml_text import MAX_ALIASED, MAX_DEPTH, YamlError, YamlTooDeep, YamlTooLarge, dump, load, load_all
from moorage.client.kubeconfig import load as load_kubeconfig
from moorage.config import yaml_source
from moorage.embedded.apiserver import bodies
from moorage.sim.fields import parse_yaml
from moorage.snapshots.files import load as load_snapshot
from moorage.snapshots.manifests import read_manifest
from moorage.up import kubeconfig as kubeconfig_of_up

BOMB = "\n".join(
    ["a0: &a0 [1,1,1,1,1,1,1,1,1,1]"] + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
)
DEEP_FLOW = "a: " + "[" * 10_000 + "]" * 10_000
DEEP_BLOCK = "a:\n  " + "- " * 10_000 + "1"
DEEP_ALIASES = "\n".join(["a0: &a0 [1]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 1000)])
ITSELF = "a: &a [*a]"
HOSTILE = {
    "alias bomb": BOMB,
    "deep flow": DEEP_FLOW,
    "deep block": DEEP_BLOCK,
    "deep aliases": DEEP_ALIASES,
    "in itself": ITSELF,
}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        pytest.param(BOMB, YamlTooLarge, f"aliases that expand to more than {MAX_ALIASED} values", id="bomb"),
        pytest.param(DEEP_FLOW, YamlTooDeep, f"nested more than {MAX_DEPTH} levels deep", id="flow"),
        pytest.param(DEEP_BLOCK, YamlTooDeep, f"nested more than {MAX_DEPTH} levels deep", id="block"),
        pytest.param(DEEP_ALIASES, YamlTooDeep, f"nested more than {MAX_DEPTH} levels deep", id="aliases"),
        pytest.param(ITSELF, YamlTooDeep, f"nested more than {MAX_DEPTH} levels deep", id="in itself"),
        pytest.param("a: [", YamlError, "it is not YAML: ", id="cut off"),
        pytest.param(b"\xff\xfe\xff", YamlError, "it is not YAML: ", id="not text"),
        pytest.param("a: !!int x", YamlError, "it is not YAML: ", id="not a number"),
        pytest.param("a: *b", YamlError, "it is not YAML: line 1, column 4: found undefined alias", id="unknown alias"),
        pytest.param("a: \x01", YamlError, "control characters are not allowed at position 3", id="control character"),
        pytest.param("!!python/object/apply:os.getcwd []", YamlError, "it is not YAML: ", id="code"),
    ],
)
def test_texts_that_are_refused(text: str | bytes, error: type[YamlError], message: str):
    for read in (load, load_all):
        with pytest.raises(error, match=r"^it ") as caught:
            read(text, "it")
        assert message in str(caught.value)
        assert "string>" not in str(caught.value), "PyYAML's name for a text without a file"


def test_a_long_text_is_not_parsed():
    with pytest.raises(YamlTooLarge, match=r"^it has 11 bytes; at most 10 are read$"):
        load("[" * 11, "it", max_bytes=10)


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_depth_counts_levels_of_lists_and_mappings():
    assert load(nested(MAX_DEPTH)) is not None
    with pytest.raises(YamlTooDeep):
        load(nested(MAX_DEPTH + 1))
    assert load("&a [1]", max_depth=1) == [1]
    assert load("[&a [1], *a]", max_depth=2) == [[1], [1]]
    with pytest.raises(YamlTooDeep):
        load("[&a [1], [*a]]", max_depth=2)


def test_aliases_within_the_limits_and_merge_keys_are_expanded():
    expanded = {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}
    assert load("a: &a {x: 1}\nb: *a\nc:\n  <<: *a\n  y: 2") == expanded
    assert load_all("- &a 1\n- *a\n---\n- &a 2\n- *a") == [[1, 1], [2, 2]]


def test_times_and_dates_stay_text():
    assert load("a: 2026-01-01\nb: 2026-01-01T00:00:00Z") == {"a": "2026-01-01", "b": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("text", ["!!bool x", "!!int ''", "!!float ''", "!!timestamp x", "!!int x", "!!binary ä"])
def test_a_value_that_does_not_fit_its_tag_is_an_error(text):
    with pytest.raises(YamlError, match=r"^it is not YAML: "):
        load(f"a: {text}", "it")
    value, problems = yaml_source.parse(f"a: {text}")
    assert value in (None, {"a": None})
    assert len(problems) == 1


def test_a_single_document_is_expected_by_load_only():
    with pytest.raises(YamlError, match="expected a single document"):
        load("a: 1\n---\nb: 2")
    assert load_all("a: 1\n---\nb: 2") == [{"a": 1}, {"b": 2}]
    assert load("") is None
    assert yaml_text.check("a: 1\n---\nb: 2") == 2


def test_what_is_dumped_has_no_anchors_and_keeps_the_order():
    shared = {"x": 1}
    assert dump({"b": shared, "a": shared, "ä": "2026-01-01"}) == "b:\n  x: 1\na:\n  x: 1\nä: '2026-01-01'\n"


# Entry points


def a_file(read: Callable[[Path], Any]) -> Callable[[str, Path], Any]:
    def reading(text: str, folder: Path) -> Any:
        path = folder / "file.yaml"
        path.write_text(text)
        return read(path)

    return reading


def configuration(text: str, folder: Path) -> None:
    value, (problem,) = yaml_source.parse(text)
    assert value is None
    raise MoorageError(str(problem))


ENTRIES: dict[str, Callable[[str, Path], Any]] = {
    "manifest": a_file(read_manifest),
    "snapshot": a_file(load_snapshot),
    "kubeconfig": a_file(lambda path: asyncio.run(load_kubeconfig(str(path)))),
    "scenario": lambda text, folder: parse_yaml(text, "the scenario"),
    "configuration": configuration,
    "request": lambda text, folder: bodies.read_yaml(text.encode()),
}
LIMITS = r"nested (more|deeper) than \d+ levels|expand(s)? to more than \d+ values|too large"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_hostile_texts_end_in_one_clear_error(entry: Callable[[str, Path], Any], text: str, tmp_path: Path):
    with pytest.raises(MoorageError, match=LIMITS) as caught:
        entry(text, tmp_path)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_kubeconfig_is_not_overwritten(text: str, tmp_path: Path):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(MoorageError, match="did not write"):
        kubeconfig_of_up.write(path, "new")
    assert path.read_text() == text
