"""What kube-scheduler decided, read from its log at -v=10."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

_SCORE = re.compile(
    r'"(?P<what>Plugin scored node for pod|Calculated node\'s final score for pod)" '
    r'pod="(?P<pod>[^"]+)"(?: plugin="(?P<plugin>[^"]+)")? node="(?P<node>[^"]+)" score=(?P<score>-?\d+)'
)
_NO_FIT = re.compile(r'"Unable to schedule pod; no fit; waiting" pod="(?P<pod>[^"]+)" err=(?P<err>"(?:[^"\\]|\\.)*")')
_ERROR = re.compile(r'"Error scheduling pod; retrying" err=(?P<err>"(?:[^"\\]|\\.)*") pod="(?P<pod>[^"]+)"')
_ATTEMPT = re.compile(r'"Attempting to schedule pod" pod="(?P<pod>[^"]+)"')


@dataclass(slots=True)
class LoggedPod:
    """The first attempt of one pod."""

    attempts: int = 0
    scores: dict[str, int] = field(default_factory=dict)
    plugins: dict[str, dict[str, int]] = field(default_factory=dict)
    """Node → plugin → weighted score."""
    message: str = ""


class KubeLog:
    """Reads on from where it stopped."""

    def __init__(self, path: Path) -> None:
        self._file = path.open(errors="replace")
        self.pods: dict[str, LoggedPod] = {}

    def close(self) -> None:
        self._file.close()

    def read(self) -> None:
        while line := self._file.readline():
            if not line.endswith("\n"):
                self._file.seek(self._file.tell() - len(line.encode()))
                return
            self._take(line)

    def of(self, key: str) -> LoggedPod:
        return self.pods.setdefault(key, LoggedPod())

    def _take(self, line: str) -> None:
        if '"Attempting to schedule pod"' in line and (found := _ATTEMPT.search(line)):
            self.of(found["pod"]).attempts += 1
        elif " score=" in line and (found := _SCORE.search(line)):
            self._take_score(found)
        elif ("no fit; waiting" in line and (found := _NO_FIT.search(line))) or (
            "Error scheduling pod" in line and (found := _ERROR.search(line))
        ):
            self._take_message(found)

    def _take_score(self, found: re.Match[str]) -> None:
        logged = self.of(found["pod"])
        if logged.attempts > 1:
            return
        if found["plugin"]:
            logged.plugins.setdefault(found["node"], {})[found["plugin"]] = int(found["score"])
        else:
            logged.scores[found["node"]] = int(found["score"])

    def _take_message(self, found: re.Match[str]) -> None:
        logged = self.of(found["pod"])
        if not logged.message:
            logged.message = json.loads(found["err"])
