"""The page for authors of Go plugins: its Python runs, and it has every method of every extension point."""

import re

from moorage.framework import points
from moorage.framework.handle import Handle
from moorage.framework.nodes import NodeView
from tests.docs.snippets import ROOT, snippets

PAGE = ROOT / "docs" / "coming-from-go.md"
TEXT = PAGE.read_text()


def test_the_python_side_runs():
    namespace: dict[str, object] = {"__name__": "coming_from_go"}
    plugin, test = snippets(PAGE)
    plugin.run(namespace)
    test.run(namespace)


def test_every_method_of_every_point_is_in_the_table():
    table = TEXT.partition("## Point by point")[2].partition("## What differs")[0]
    classes = [cls for name, cls in vars(points).items() if name.endswith("Plugin") and name != "Plugin"]
    methods = {name for cls in classes for name, found in vars(cls).items() if callable(found)}
    assert len(methods) > 15
    own = {"concerns"}  # Go has no counterpart
    assert {name for name in methods - own if f"`{name}" not in table and f" `{name}`" not in table} == set()


def test_what_it_says_about_handle_and_node_view_exists():
    for name in re.findall(r"handle\.([a-z_]+)", TEXT):
        assert hasattr(Handle, name), name
    for name in re.findall(r"`node\.([a-z_]+)", TEXT.partition("**NodeInfo**")[2]):
        assert hasattr(NodeView, name) or name in NodeView.__slots__, name
