"""Every example in docs/plugins.md runs, and every extension point has one."""

import pytest

from mooring.framework import points
from tests.docs.snippets import ROOT, by_section

PAGE = ROOT / "docs" / "plugins.md"
SECTIONS = by_section(PAGE)
SHARED = "Before you start"


@pytest.mark.parametrize("section", SECTIONS)
def test_the_examples_of_a_section_run(section):
    namespace: dict[str, object] = {"__name__": "docs_plugins"}
    shared = SECTIONS[SHARED] if section != SHARED else []
    for snippet in [*shared, *SECTIONS[section]]:
        snippet.run(namespace)


def test_every_extension_point_has_an_example():
    text = "".join(snippet.text for blocks in SECTIONS.values() for snippet in blocks)
    bases = {name for name in vars(points) if name.endswith("Plugin") and name != "Plugin"}
    assert {name for name in bases if name not in text} == set()
