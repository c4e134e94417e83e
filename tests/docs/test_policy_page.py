"""docs/policy.md: the Policy there is converted, and the tables have every name and every flag."""

import re

from moorage import config
from moorage.app.configuration import configure
from moorage.config.policy import DROPPED, PREDICATES, PRIORITIES
from moorage.run.flag_table import FLAGS
from tests.docs.snippets import ROOT, snippets

PAGE = ROOT / "docs" / "policy.md"


def names_in(section: str) -> dict[str, str]:
    """The names in the first column of a section's table, with the second."""
    text = PAGE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \| (.*) \|$", text, re.MULTILINE)
    return {name: plugins for first, plugins in rows for name in _words(first)}


def _words(cell: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", cell))


def test_the_policy_on_the_page_is_converted():
    (snippet,) = snippets(PAGE, "json")
    assert configure(config.convert_policy(snippet.text).text, discover=False).profiles


def test_every_predicate_is_there_with_its_plugins():
    rows = names_in("Predicates")
    assert set(rows) - {"labelsPresence", "serviceAffinity"} == set(PREDICATES)
    assert {name for name, plugins in PREDICATES.items() if not set(plugins[:1]) <= _words(rows[name])} == set()


def test_every_priority_is_there_with_its_plugin():
    rows = names_in("Priorities")
    assert {name for name, plugin in PRIORITIES.items() if plugin not in _words(rows[name])} == set()
    assert {name for name in DROPPED if not rows[name].startswith("dropped")} == set()


def test_the_flags_on_the_page_exist():
    named = set(re.findall(r"`--([a-z-]+)`", PAGE.read_text()))
    assert {"policy-config-file", "policy-configmap", "policy-configmap-namespace", "port"} <= named <= set(FLAGS)
