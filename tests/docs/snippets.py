"""The Python blocks of a Markdown file, by section, with the line where each begins."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
_FENCE = re.compile(r"^```(\w*)$")


@dataclass(frozen=True)
class Snippet:
    """One block. `first_line` counts from 1, so that tracebacks point into the document."""

    path: Path
    section: str
    first_line: int
    text: str

    def run(self, namespace: dict[str, Any]) -> None:
        padding = "\n" * (self.first_line - 1)
        exec(compile(padding + self.text, str(self.path), "exec"), namespace)


def snippets(path: Path, language: str = "python") -> list[Snippet]:
    """The blocks of one language. Sections are those of the second level."""
    found: list[Snippet] = []
    section, fence, start = "", "", 0
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        match = _FENCE.match(line)
        if start and line == "```":
            if fence == language:
                found.append(Snippet(path, section, start + 1, "\n".join(lines[start : number - 1])))
            start = 0
        elif match and not start:
            fence, start = match[1], number
        elif line.startswith("## ") and not start:
            section = line[3:]
    return found


def by_section(path: Path, language: str = "python") -> dict[str, list[Snippet]]:
    sections: dict[str, list[Snippet]] = {}
    for snippet in snippets(path, language):
        sections.setdefault(snippet.section, []).append(snippet)
    return sections
