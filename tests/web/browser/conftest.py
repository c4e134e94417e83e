"""`moorage ui` in a process of its own, and Chromium to look at it. Screenshots go to build/ui."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.web.browser.live_cluster import Cluster

ROOT = Path(__file__).parents[3]
SHOTS = ROOT / "build" / "ui"
SIZE = {"width": 1280, "height": 800}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_ADDRESS = re.compile(r"Open (http://\S+)")


def missing() -> str:
    """What the tests of the UI need and this machine does not have."""
    for package in ("nicegui", "playwright"):
        if importlib.util.find_spec(package) is None:
            return f"the Python package {package} is not installed (extras ui and dev)"
    return "" if any(map(shutil.which, BROWSERS)) else "there is no Chromium: apt-get install chromium"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing()
    for item in items if reason else ():
        if item.get_closest_marker("ui"):
            item.add_marker(pytest.mark.skip(reason=reason))


def start(*options: str) -> subprocess.Popen[str]:
    """A command of Moorage in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "moorage", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"},
    )


class Served:
    """A `moorage ui` that runs."""

    def __init__(self, *options: str) -> None:
        self._process = start("ui", *options, "--port", "0", "--no-browser")
        assert self._process.stdout is not None
        found = _ADDRESS.search(self._process.stdout.readline())
        if found is None:
            self._process.kill()
            raise AssertionError(f"moorage ui did not start: {self._process.communicate()[1]}")
        self.address = found[1]
        """With the token."""
        self.root = f"http://{urlsplit(self.address).netloc}"
        self.port = urlsplit(self.address).port
        self.pid = self._process.pid

    def stop(self) -> str:
        """What it wrote to standard error."""
        self._process.terminate()
        return self._process.communicate(timeout=20)[1]


@contextmanager
def browsing() -> Iterator[Any]:
    """Chromium. While it runs, its loop is the thread's."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, BROWSERS)))
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=sandbox)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """Ends before tests of other packages."""
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., Served]]:
    """Starts one for each set of options."""
    running: dict[tuple[str, ...], Served] = {}

    def served(*options: str) -> Served:
        if options not in running:
            running[options] = Served(*options)
        return running[options]

    yield served
    said = [served.stop() for served in running.values()]
    assert not (broken := [text for text in said if "Traceback" in text]), "\n".join(broken)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A `moorage up` of one's own."""
    made = Cluster(tmp_path_factory.mktemp("up"), start)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def live(serve: Callable[..., Served], cluster: Cluster) -> Served:
    """The pages on its scheduler."""
    return serve("--server", cluster.scheduler, "--kubeconfig", cluster.kubeconfig)


class Looking:
    """A page of the browser that has the token, and what went wrong in it."""

    def __init__(self, chromium: Any, served: Served, scheme: str = "light") -> None:
        self.context = chromium.new_context(viewport=SIZE, color_scheme=scheme)
        self.page = self.context.new_page()
        self.served = served
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append(f"a dialog: {dialog.message}"))
        self.page.on("console", self._note)
        self.page.on("request", self._check)
        self.page.goto(served.address)

    def _note(self, message: Any) -> None:
        if message.type == "error":
            self.problems.append(message.text)

    def _check(self, request: Any) -> None:
        url = urlsplit(request.url)
        if url.scheme not in ("data", "blob") and url.hostname not in ("localhost", "127.0.0.1"):
            self.problems.append(f"asked {request.url}")

    def open(self, path: str) -> Any:
        self.page.goto(f"{self.served.root}{path}")
        return self.page

    def close(self) -> None:
        self.context.close()
        assert self.problems == []

    def shot(self, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


@pytest.fixture
def look(chromium) -> Iterator[Callable[..., Looking]]:
    made: list[Looking] = []

    def looking(served: Served, scheme: str = "light") -> Looking:
        made.append(Looking(chromium, served, scheme))
        return made[-1]

    yield looking
    for each in made:
        each.close()
