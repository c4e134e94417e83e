"""docs/plugins/reference.md is what tools/api_reference.py makes of the docstrings."""

import re
import subprocess
import sys

import moorage.framework
from tests.docs.snippets import ROOT

TOOL = ROOT / "tools" / "api_reference.py"
PAGE = (ROOT / "docs" / "plugins" / "reference.md").read_text(encoding="utf-8")
ON_OTHER_PAGES = re.compile(r"\w+Plugin|M\w+_NODE_SCORE|StateKeyError|Dependency")


def test_the_page_is_up_to_date():
    command = [sys.executable, str(TOOL), "--check"]
    result = subprocess.run(command, text=True, capture_output=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


def test_the_page_has_all_that_the_framework_exports():
    entries = set(re.findall(r"^### (\w+)$", PAGE, re.MULTILINE))
    exported = {name for name in moorage.framework.__all__ if not ON_OTHER_PAGES.fullmatch(name)}
    assert exported - entries == set()


def test_every_entry_says_more_than_its_name():
    entries = PAGE.split("\n### ")[1:]
    silent = [entry.split("\n")[0] for entry in entries if len(entry.strip().split("\n\n")) < 3]
    assert silent == []
