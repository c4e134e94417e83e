"""YAML as text: read within limits on size, depth and aliases, and written in one form.

All YAML that Moorage reads passes through here. The C composer of PyYAML recurses without a limit and shares
aliased values, which multiply when they are encoded later. So the events of a text are checked before it is
composed. Timestamps stay text, as in sigs.k8s.io/yaml. JSON is read as the subset of YAML that it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from moorage.api.errors import MoorageError

MAX_BYTES = 64 << 20
MAX_DEPTH = 256
"""Levels of nesting. Definitions of custom resources have been seen with about 70."""
MAX_ALIASED = 100_000
"""Values that aliases may add to a text."""


class YamlError(MoorageError):
    """A text is not YAML, or exceeds a limit. The message begins with the source of the text."""


class YamlTooDeep(YamlError):
    """The values are nested too deeply, or contain themselves."""


class YamlTooLarge(YamlError):
    """The text is too long, or its aliases expand to too many values."""


class Loader(yaml.CSafeLoader):
    """The safe loader without timestamps: a date in a name or annotation stays text."""

    yaml_implicit_resolvers = {
        letter: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for letter, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


class Dumper(yaml.CSafeDumper):
    """Writes repeated values in full: anchors would surprise a person who edits the file."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def load(text: str | bytes, source: str = "the text", *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Return the value of the only document in a text, None if it is empty."""
    with _named_errors(source):
        check(text, source, max_bytes=max_bytes, max_depth=max_depth)
        return yaml.load(text, Loader)


def load_all(text: str | bytes, source: str = "the text", *, max_bytes: int = MAX_BYTES) -> list[Any]:
    """Return the values of all documents in a text."""
    with _named_errors(source):
        check(text, source, max_bytes=max_bytes)
        return list(yaml.load_all(text, Loader))


def dump(value: Any, *, width: int = 80) -> str:
    """Return a value as YAML, with the fields of mappings in their order."""
    text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=width)
    return text


def check(
    text: str | bytes, source: str = "the text", *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> int:
    """Raise a YamlError if a text exceeds a limit. Return the number of its documents."""
    if len(text) > max_bytes:
        raise YamlTooLarge(f"{source} has {len(text)} bytes; at most {max_bytes} are read")
    too_deep = YamlTooDeep(f"{source} is nested more than {max_depth} levels deep")
    documents = aliased = 0
    open_: list[tuple[int, int, str | None]] = []  # values, levels below, anchor
    anchors: dict[str, tuple[int, int] | None] = {}  # None while the value is not complete
    for event in yaml.parse(text, Loader=Loader):
        kind = type(event)
        if kind is yaml.ScalarEvent:
            values, levels, anchor = 1, 0, event.anchor
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            open_.append((1, 0, event.anchor))
            if event.anchor is not None:
                anchors[event.anchor] = None
            if len(open_) > max_depth:
                raise too_deep
            continue
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            values, levels, anchor = open_.pop()
            levels += 1
        elif kind is yaml.AliasEvent:
            known = anchors.get(event.anchor, (0, 0))
            if known is None:
                raise too_deep  # it contains itself
            (values, levels), anchor = known, None
            aliased += values
            if aliased > MAX_ALIASED:
                raise YamlTooLarge(f"{source} has aliases that expand to more than {MAX_ALIASED} values")
        else:
            documents += kind is yaml.DocumentStartEvent
            continue
        if anchor is not None:
            anchors[anchor] = values, levels
        if len(open_) + levels > max_depth:
            raise too_deep
        if open_:
            above, deepest, name = open_[-1]
            open_[-1] = above + values, max(deepest, levels), name
    return documents


@contextmanager
def _named_errors(source: str) -> Iterator[None]:
    try:
        yield
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(f"{source} is not YAML: {_described(error)}") from error
    except (LookupError, AttributeError) as error:  # PyYAML on `!!bool x`, `!!int ""` and `!!timestamp x`
        raise YamlError(f"{source} is not YAML: a value does not fit its tag") from error


def _described(error: yaml.YAMLError | ValueError) -> str:
    """Return the problem with its line. PyYAML names a text without a file `<unicode string>`."""
    mark = getattr(error, "problem_mark", None)
    if not isinstance(error, yaml.MarkedYAMLError) or mark is None:
        return " ".join(re.sub(r' in "<[a-z ]+>",', " at", str(error)).split())
    problem = " ".join(f"{error.context or ''} {error.problem or ''}".split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
