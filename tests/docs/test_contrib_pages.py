"""The pages under docs/contrib: every configuration builds, and every plugin has one."""

import re

import pytest

from moorage.app import checks
from moorage.app.configuration import configure
from moorage.contrib.registry import PLUGINS
from tests.docs.snippets import ROOT, snippets

PAGES = sorted((ROOT / "docs" / "contrib").glob("*.md"))
CONFIGURATIONS = [snippet for page in PAGES for snippet in snippets(page, "yaml")]


@pytest.mark.parametrize("snippet", CONFIGURATIONS, ids=lambda snippet: f"{snippet.path.stem}/{snippet.section}")
def test_the_configurations_build_without_mistake_or_warning(snippet):
    configured = configure(snippet.text, discover=False)
    assert checks.find_mistakes(configured) == []
    assert checks.find_warnings(configured) == []


EXAMPLES = [snippet for page in PAGES for snippet in snippets(page)]


@pytest.mark.parametrize("snippet", EXAMPLES, ids=lambda snippet: f"{snippet.path.stem}/{snippet.section}")
def test_the_examples_run(snippet):
    snippet.run({"__name__": "docs_contrib"})


def test_every_plugin_has_a_configuration():
    named = {name for snippet in CONFIGURATIONS for name in re.findall(r"- name: (\w+)", snippet.text)}
    assert PLUGINS.keys() - named == set()


def test_the_contents_have_every_plugin_and_its_page():
    rows = re.findall(r"^\| (\w+) \|.*\]\(([\w.#-]+)\) \|$", (PAGES[0].parent / "README.md").read_text(), re.M)
    assert [name for name, _ in rows] == list(PLUGINS)
