"""Write docs/plugins/reference.md from signatures and docstrings, without importing the code.

`python tools/api_reference.py --check` fails if the page is out of date.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "plugins" / "reference.md"
HEAD = """# API reference

Generated from the docstrings by `tools/api_reference.py`. Below each name is the module to import it from.
Extension points are in [extension-points.md](extension-points.md), vectorized and reusable plugins in [speed.md](speed.md).
"""
CONTENTS = """
# Pods and other objects
api.meta Object ObjectMeta OwnerReference
api.pod Pod PodSpec PodStatus Container controller_of
api.requests pod_requests pod_nonzero_requests resource_value node_allocatable container_host_ports
api.node Node NodeSpec NodeStatus NodeCondition
api.resources Resource custom Unstructured
api.selectors selector_from_labels compile_label_selector Selector:matches
# Nodes in an attempt
framework.nodes NodeView Nodes Refusals:add
framework.statuses NodeStatuses:get,names_with,rows_with,count_by_verdict,histogram,rejectors
framework.cycle_state CycleState:read,write,delete,own,to_activate
# Answers
framework.status Status Code PreFilterResult PostFilterResult PreBindPreFlight Normalization default_normalize
framework.optional Detail Figure ExplainingPlugin Proposal ObjectChange a_few
# What a plugin declares
framework.points Plugin
framework.args PluginArgs ArgsContext
api.problems Problem child invalid required
framework.access Access Reads Kind Version:bump
framework.optional ReusablePlugin
# Events and hints
framework.events Registration ClusterEvent EventResource ActionType QueueingHint HintFn QueuedPod
# The handle
framework.handle Handle Lister AssumeCache OnChange WaitingPod Nominator DryRun Trial
framework.indexes PodIndex NodeIndex ObjectIndex PodCounters PodSelector PodCounter
framework.indexes Topology:values,nodes,domain,rows_of,gather,sums
framework.preemption Preemption PreemptionPolicy Candidate Budgets
# Time, the API server, events for users
framework.ports Clock ApiClient ListOptions PatchOptions PatchType DeleteOptions ObjectList EventRecorder
api.errors ApiError NotFound Conflict TransportError NotSent OutcomeUnknown
# The test kit
testing.cluster Cluster
testing.builders make_pod make_pods make_container make_node make_nodes make_namespace make_affinity
testing.builders spread_over toleration taint make_pdb make_priority_class make_service
testing.volumes make_pvc make_pv make_storage_class
store.faults Fault Faults
"""
LINES = CONTENTS.strip().splitlines()
NAMES = {word.partition(":")[0] for line in LINES if line[0] != "#" for word in line.split()[1:]}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def statements(path: str) -> list[ast.stmt]:
    return ast.parse((ROOT / "src" / "moorage" / path).read_text(encoding="utf-8")).body


EXPORTED = {
    alias.name: f"moorage.{package}"
    for package in ("framework", "testing")
    for node in statements(f"{package}/__init__.py") if isinstance(node, ast.ImportFrom)
    for alias in node.names
}  # fmt: skip


def filled(text: str, indent: str = "") -> str:
    """Wrap the text and link names that are on the page. Short code is not broken."""
    text = re.sub(r"`(\w+)`", lambda m: f"[`{m[1]}`](#{m[1].lower()})" if m[1] in NAMES else m[0], text)
    text = re.sub(r"`[^`]{,70}`", lambda m: m[0].replace(" ", "\0"), " ".join(text.split()))
    lines = textwrap.wrap(text, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


def signature(function: Function) -> str:
    """Return `name(arguments) -> answer`, or `name: type` for a property."""
    answer = ast.unparse(function.returns) if function.returns else "None"
    if any(ast.unparse(each) == "property" for each in function.decorator_list):
        return f"{function.name}: {answer}"
    arguments = re.sub(r"^(self|cls)(, |$)", "", ast.unparse(function.args))
    start = "await " if isinstance(function, ast.AsyncFunctionDef) else ""
    return f"{start}{function.name}({arguments}) -> {answer}"


def members(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield code and docstring of each method, property and attribute of a class."""
    for node, after in pairwise([*body, ast.Pass()]):
        following = ast.get_docstring(ast.Module([after], [])) or ""
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            yield from (pair for pair in members(node.body) if pair[1])
        elif isinstance(node, Function):
            yield signature(node), ast.get_docstring(node) or ""
        elif isinstance(node, ast.AnnAssign):
            yield (f"{ast.unparse(node.target).removeprefix('self.')}: {ast.unparse(node.annotation)}", following)
        elif isinstance(node, ast.Assign):
            yield ast.unparse(node.targets[0]).removeprefix("self."), following


def items(cls: ast.ClassDef, chosen: str) -> Iterator[str]:
    """Yield a line for each public member. Members without a docstring share one."""
    bare: list[str] = []
    for code, doc in members(cls.body):
        name = code.removeprefix("await ").partition("(")[0].partition(":")[0]
        is_shown = name in chosen.split(",") if chosen else not name.startswith("_")
        if is_shown and doc:
            yield filled(f"- `{code}`: " + doc.partition("\n\n")[0], "  ")
        elif is_shown:
            bare.append(f"`{code}`")
    yield filled("- " + ", ".join(bare), "  ") if bare else ""


def entries(module: str, *words: str) -> Iterator[str]:
    body = statements(module.replace(".", "/") + ".py")
    for name, _, chosen in (word.partition(":") for word in words):
        yield f"### {name}\n\n`{EXPORTED.get(name, f'moorage.{module}')}`"
        for node in body:
            if isinstance(node, Function | ast.ClassDef) and node.name == name:
                call = node.body[1] if name == "Cluster" else node
                if isinstance(call, Function):
                    yield filled(f"`{signature(call).replace('__init__', name)}`")
                yield from map(filled, (ast.get_docstring(node) or "").split("\n\n"))
                if isinstance(node, ast.ClassDef):
                    yield "\n".join(items(node, chosen)).rstrip()
        yield from (filled(doc) for code, doc in members(body) if code == name)


def page() -> str:
    parts = [HEAD.strip()]
    for line in LINES:
        parts += [f"#{line}"] if line[0] == "#" else entries(*line.split())
    return "\n\n".join(part for part in parts if part) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(page(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        raise SystemExit(f"{PAGE.relative_to(ROOT)} is out of date: run python tools/api_reference.py")
