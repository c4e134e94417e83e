"""Read the text of a configuration file strictly, into plain dicts, lists and scalars.

The text is one document of YAML or JSON. Duplicate keys are reported by path and line, tags construct nothing but plain
values, and size, depth and aliases are limited (`api.yaml_text`). The meaning of the fields is not known here.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator

import yaml

from moorage.api import yaml_text
from moorage.api.problems import Problem, child

MAX_BYTES = 1 << 20  # a ConfigMap holds no more
MAX_DEPTH = 64
MAX_NODES = 50_000  # after aliases are expanded

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_SCALAR_TAGS = frozenset(_TAG + name for name in ("null", "bool", "int", "float", "str"))


class _Refused(Exception):
    """The text cannot be read; carries the reason."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def parse(text: str | bytes, *, strict_json: bool = False) -> tuple[object, list[Problem]]:
    """Return the value of the only document in `text`, None if it is unreadable, and the problems found.

    With `strict_json` a text that begins with a brace must be JSON. Otherwise it may also be flow-style YAML,
    which allows trailing commas.
    """
    try:
        decoded = _as_text(text)
        if decoded.lstrip().startswith("{"):
            try:
                return _parse_json(decoded)
            except ValueError as error:
                if strict_json and isinstance(error, json.JSONDecodeError):
                    raise _Refused(_json_problem(error)) from error
        return _parse_yaml(decoded)
    except _Refused as refused:
        return None, [refused.problem]


def _as_text(text: str | bytes) -> str:
    # A lone surrogate passes here and is refused below, as the bad text that it is.
    raw = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if len(raw) > MAX_BYTES:
        raise _Refused(_problem(f"the file has {len(raw)} bytes; at most {MAX_BYTES} are read"))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Refused(_problem(f"the file is not UTF-8: {error}")) from error


def _problem(message: str, hint: str = "") -> Problem:
    return Problem(path="", message=message, hint=hint)


_TOO_DEEP = _problem(f"the file is nested deeper than {MAX_DEPTH} levels")
_TOO_MANY = _problem(f"the file expands to more than {MAX_NODES} values; are aliases nested?")


def _json_problem(error: json.JSONDecodeError) -> Problem:
    before = error.doc[: error.pos].rstrip()
    if before.endswith(",") and error.doc[error.pos : error.pos + 1] in ("]", "}"):
        error = json.JSONDecodeError("trailing comma", error.doc, len(before) - 1)
    hint = "JSON allows no comma before ] or }" if "comma" in error.msg else ""
    return _problem(f"not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}", hint)


class _Object(dict[str, object]):
    """A JSON object that remembers the keys it had twice."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs)
        self.repeated = [key for key, count in counts.items() if count > 1]


def _parse_json(text: str) -> tuple[object, list[Problem]]:
    problems: list[Problem] = []
    try:
        value = json.loads(text, object_pairs_hook=_Object)
    except RecursionError as error:
        raise _Refused(_TOO_DEEP) from error
    return _plain(value, "", 0, problems), problems


def _plain(value: object, path: str, depth: int, problems: list[Problem]) -> object:
    """Decoded JSON as ordinary values, checked like YAML."""
    if depth > MAX_DEPTH:
        raise _Refused(_TOO_DEEP)
    if isinstance(value, _Object):
        for key in value.repeated:
            problems.append(Problem(path=child(path, key), message=f'key "{key}" already set in map'))
        return {key: _plain(item, child(path, key), depth + 1, problems) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, child(path, index), depth + 1, problems) for index, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        problems.append(Problem(path=path, message=f"{value} is not a number"))
        return None
    return value


def _parse_yaml(text: str) -> tuple[object, list[Problem]]:
    try:
        if yaml_text.check(text, max_depth=MAX_DEPTH) > 1:
            hint = "keep the KubeSchedulerConfiguration in a file of its own"
            raise _Refused(_problem("the file holds more than one document", hint))
        loader = yaml_text.Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise _Refused(_problem("the file is empty"))
            builder = _Builder(loader)
            return builder.build(node, "", 0), builder.problems
        finally:
            loader.dispose()
    except yaml_text.YamlTooDeep as error:
        raise _Refused(_TOO_DEEP) from error
    except yaml_text.YamlTooLarge as error:
        raise _Refused(_TOO_MANY) from error
    except yaml.YAMLError as error:
        raise _Refused(_syntax_problem(error, text)) from error


def _syntax_problem(error: yaml.YAMLError, text: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error)
    if mark is None:
        return _problem(f"not valid YAML: {what}")
    lines = text.splitlines()
    # The scanner notices a missing colon one line late, so the line before is looked at too.
    near = lines[max(0, mark.line - 1) : mark.line + 1]
    hint = ""
    if any("\t" in line for line in near):
        hint = "YAML is indented with spaces, not tabs"
    elif any(line.lstrip().startswith("//") or " // " in line for line in near):
        hint = "a YAML comment begins with #, not //"
    return _problem(f"not valid YAML: line {mark.line + 1}, column {mark.column + 1}: {what}", hint)


class _Builder:
    """Builds plain values from YAML nodes and collects problems that do not stop it."""

    def __init__(self, loader: yaml_text.Loader) -> None:
        self.problems: list[Problem] = []
        self._loader = loader
        self._nodes = 0

    def build(self, node: yaml.Node, path: str, depth: int) -> object:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _Refused(_TOO_MANY)
        if depth > MAX_DEPTH:
            raise _Refused(_TOO_DEEP)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            items = enumerate(node.value)
            return [self.build(item, child(path, index), depth + 1) for index, item in items]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, object]:
        result: dict[str, object] = {}
        merged: dict[str, object] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                for source in self._merge_sources(value_node, path):
                    merged = {**self._mapping(source, path, depth + 1), **merged}
                continue
            key = self._key(key_node, path)
            where = child(path, key)
            if key in result:
                line = key_node.start_mark.line + 1
                self.problems.append(Problem(path=where, message=f'line {line}: key "{key}" already set in map'))
            result[key] = self.build(value_node, where, depth + 1)
        return {**merged, **result}

    def _merge_sources(self, node: yaml.Node, path: str) -> Iterator[yaml.MappingNode]:
        for source in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if isinstance(source, yaml.MappingNode):
                yield source
            else:
                self.problems.append(Problem(path=child(path, "<<"), message="expected a mapping to merge"))

    def _key(self, node: yaml.Node, path: str) -> str:
        if isinstance(node, yaml.ScalarNode):
            if node.tag != _TAG + "str":
                message = f"line {node.start_mark.line + 1}: keys must be text, got {node.value}"
                self.problems.append(Problem(path=path, message=message, hint=f'write "{node.value}"'))
            return str(node.value)
        raise _Refused(_problem(f"line {node.start_mark.line + 1}: keys must be text"))

    def _scalar(self, node: yaml.Node, path: str) -> object:
        line = node.start_mark.line + 1
        if node.tag not in _SCALAR_TAGS:
            self.problems.append(Problem(path=path, message=f"line {line}: the tag {node.tag} is not accepted"))
            return None
        try:
            value: object = self._loader.construct_object(node)
        except (ValueError, LookupError):  # such as `!!int x`, or more digits than Python converts
            value = math.nan
        if isinstance(value, float) and not math.isfinite(value):
            message = f"line {line}: {node.value[:40]} is not a number"
            self.problems.append(Problem(path=path, message=message))
            return None
        return value
