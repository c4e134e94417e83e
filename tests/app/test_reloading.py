"""The Reloader: which changes of files it sees, what it does with them, and what it says."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from moorage.api.errors import MoorageError
from moorage.app.configuration import configure_file
from moorage.app.configuration_history import MAX_ENTRIES, redacted_yaml
from moorage.app.reloading import ConfigurationSource, Reloader
from moorage.app.scheduler import Scheduler
from moorage.telemetry.metrics import SchedulerMetrics
from moorage.testing import Cluster, make_node, make_pod

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ONE = HEAD + "profiles: [{schedulerName: one}]\n"
TWO = HEAD + "profiles: [{schedulerName: one}, {schedulerName: two}]\n"
BROKEN = HEAD + "profiles: [{schedulerName: one, plugins: {filter: {enabled: [{name: nobody}]}}}]\n"


async def at_once(load: Any) -> Any:
    return load()


class Watched:
    """A cluster whose scheduler is kept to a file."""

    def __init__(self, path: Path, plugins: bool = False, folder: Path | None = None) -> None:
        folders = [str(folder)] if folder else []
        source = ConfigurationSource(lambda: configure_file(path, discover=False, folders=folders), (path,), plugins)
        self.metrics = SchedulerMetrics(lambda: 0.0)
        self.cluster = Cluster(start=False)
        clock, client = self.cluster.clock, self.cluster.client
        scheduler = Scheduler(
            client, config=source.load(), clock=clock, random=self.cluster.random, discover=False, instance="test"
        )
        self.cluster.scheduler = scheduler
        self.cluster.start()
        self.reloader = Reloader(scheduler, source, clock, self.metrics, load_in=at_once)
        self.task = self.cluster.loop.create_task(self.reloader.run())
        self.cluster.settle()

    def profiles(self) -> list[str]:
        return list(self.cluster.scheduler.engine.profiles)

    def reloads(self) -> dict[str, float]:
        return {labels[0]: count for labels, count in self.metrics.config_reloads.samples().items()}

    def notes(self, reason: str) -> list[str]:
        return [event.note for event in self.cluster.events(reason=reason)]

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *args: object) -> None:
        self.task.cancel()
        self.cluster.run(asyncio.sleep(0))
        self.cluster.close()


def rewritten(path: Path, text: str) -> None:
    path.write_text(text)


def renamed(path: Path, text: str) -> None:
    """As editors do."""
    other = path.with_suffix(".new")
    other.write_text(text)
    os.replace(other, path)


@pytest.mark.parametrize("change", [rewritten, renamed])
def test_a_changed_file_is_taken_over_within_two_seconds(tmp_path, change):
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    with Watched(path) as watched:
        change(path, TWO)
        watched.cluster.settle(2)
        assert watched.profiles() == ["one", "two"]
        assert watched.reloader.outcome.generation == 2
        assert watched.reloads() == {"applied": 1}
        assert watched.notes("ConfigurationReloaded") == [f"generation 2: profiles one two ({path} changed)"]


def test_a_mounted_config_map_is_followed_through_its_links(tmp_path):
    """The kubelet writes another folder and exchanges the link `..data`."""
    for name, text in (("first", ONE), ("second", TWO)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("first")
    path = tmp_path / "config.yaml"
    path.symlink_to("..data/config.yaml")
    with Watched(path) as watched:
        (tmp_path / "..data_tmp").symlink_to("second")
        os.replace(tmp_path / "..data_tmp", tmp_path / "..data")
        watched.cluster.settle(2)
        assert watched.profiles() == ["one", "two"]


def test_a_file_that_is_touched_or_written_as_it_was_changes_nothing(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    with Watched(path) as watched:
        renamed(path, ONE)
        watched.cluster.settle(10)
        assert (watched.reloads(), watched.reloader.outcome.generation) == ({}, 1)
        watched.reloader.request()
        watched.cluster.settle(2)
        assert (watched.reloads(), watched.reloader.outcome.generation) == ({"applied": 1}, 2), "asked for"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        pytest.param(lambda path: path.write_text(BROKEN), "nobody", id="a plugin that is not there"),
        pytest.param(lambda path: path.write_text("{"), "not valid YAML", id="no YAML"),
        pytest.param(lambda path: path.unlink(), "cannot be read", id="no file"),
    ],
)
def test_a_bad_configuration_is_reported_once_and_the_old_one_stays(tmp_path, damage, says):
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    with Watched(path) as watched:
        damage(path)
        watched.cluster.settle(10)
        assert says in watched.reloader.outcome.to_wire()["error"]
        assert watched.reloads() == {"failed": 1}
        note = watched.notes("ReloadFailed")[0]
        assert note.startswith("generation 1 stays: ")
        assert says in note.splitlines()[0]
        watched.cluster.add(make_node("a"), make_pod("p", scheduler_name="one"))
        watched.cluster.settle(5)
        assert watched.cluster.node_of("p") == "a"
        path.write_text(TWO)
        watched.cluster.settle(2)
        assert watched.reloader.outcome.to_wire() == {"generation": 2, "error": "", "needsRestart": []}


def test_fields_that_need_a_restart_are_named_and_the_rest_is_taken_over(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    with Watched(path) as watched:
        path.write_text(TWO + "leaderElection: {leaderElect: false, retryPeriod: 3s}\nclientConnection: {qps: 7}\n")
        watched.cluster.settle(2)
        named = ("leaderElection.leaderElect", "leaderElection.retryPeriod", "clientConnection.qps")
        assert set(watched.reloader.outcome.needs_restart) == set(named)
        assert watched.profiles() == ["one", "two"]
        assert watched.cluster.scheduler.configuration.config.client_connection.qps == 50, "what is in use"
        assert "need a restart: " in watched.notes("ConfigurationReloaded")[0]
        path.write_text(TWO)
        watched.cluster.settle(2)
        assert watched.reloader.outcome.needs_restart == ()


PLUGIN = """
    from moorage.framework import FilterPlugin, Status
    from {helper} import ALLOWED

    class Allowed(FilterPlugin):
        name = "allowed"

        def filter(self, state, pod, node):
            return None if node.name in ALLOWED else Status.unschedulable("not allowed")
"""


def write(path: Path, text: str) -> None:
    path.write_text(textwrap.dedent(text))


@pytest.mark.parametrize("plugins", [True, False], ids=["with --reload-plugins", "without"])
def test_plugin_code_is_imported_anew_where_that_is_asked_for(tmp_path, plugins):
    name, helper = f"edited_{plugins}", f"helper_{plugins}"
    path = tmp_path / "config.yaml"
    enabled = f"{{multiPoint: {{enabled: [{{name: '{name}:Allowed'}}]}}}}"
    path.write_text(HEAD + f"profiles: [{{schedulerName: one, plugins: {enabled}}}]\n")
    write(tmp_path / f"{name}.py", PLUGIN.format(helper=helper))
    write(tmp_path / f"{helper}.py", "ALLOWED = {'a'}")
    with Watched(path, plugins, tmp_path) as watched:
        cluster = watched.cluster
        cluster.add(make_node("a"), make_node("b"))
        write(tmp_path / f"{helper}.py", "ALLOWED = {'b'}")
        cluster.settle(2)
        cluster.add(make_pod("p", scheduler_name="one"))
        cluster.settle(5)
        assert cluster.node_of("p") == ("b" if plugins else "a")
        if not plugins:
            return
        write(tmp_path / f"{helper}.py", "ALLOWED = {'a'")
        cluster.settle(5)
        assert "SyntaxError" in watched.reloader.outcome.error
        cluster.add(make_pod("q", scheduler_name="one"))
        cluster.settle(5)
        assert cluster.node_of("q") == "b", "the old code goes on"
        write(tmp_path / f"{helper}.py", "ALLOWED = {'a'}")
        cluster.settle(2)
        assert watched.reloader.outcome.error == ""
        cluster.add(make_pod("r", scheduler_name="one"))
        cluster.settle(5)
        assert cluster.node_of("r") == "a"


COUNTED = """
    import {imports}
    from moorage.framework import ScorePlugin

    class Counted(ScorePlugin):
        name = "{name}"
        made = []

        def __init__(self, args, handle):
            self.made.append(handle)
            {imports}.LOG.append("{name}")

        def score(self, state, pod, node):
            return 1
    """


def test_only_plugins_whose_code_changed_are_built_again_and_the_log_names_the_file(tmp_path, monkeypatch, caplog):
    """The first imports the helper through a package, the second does not import it."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "config.yaml"
    enabled = "{multiPoint: {enabled: [{name: 'one_counted:Counted'}, {name: 'two_counted:Counted'}]}}"
    path.write_text(HEAD + f"profiles: [{{schedulerName: one, plugins: {enabled}}}]\n")
    write(tmp_path / "counted_log.py", "LOG = []")
    (tmp_path / "counted_parts").mkdir()
    write(tmp_path / "counted_parts" / "__init__.py", "from .helper import LOG")
    write(tmp_path / "counted_parts" / "helper.py", "from counted_log import LOG")
    write(tmp_path / "one_counted.py", COUNTED.format(name="One", imports="counted_parts"))
    write(tmp_path / "two_counted.py", COUNTED.format(name="Two", imports="counted_log"))
    with Watched(path, True, tmp_path) as watched, caplog.at_level(logging.INFO):
        import counted_log  # type: ignore[import-not-found]

        assert counted_log.LOG == ["One", "Two"]
        write(tmp_path / "counted_parts" / "helper.py", "from counted_log import LOG  # another version")
        watched.cluster.settle(2)
        assert counted_log.LOG == ["One", "Two", "One"]
        assert "Reloaded the configuration (counted_parts/helper.py changed)." in caplog.text
        path.write_text(path.read_text().replace("schedulerName", "percentageOfNodesToScore: 0, schedulerName"))
        watched.cluster.settle(2)
        assert counted_log.LOG == ["One", "Two", "One"]
        assert "Reloaded the configuration (config.yaml changed)." in caplog.text
        write(tmp_path / "one_counted.py", "def")
        watched.cluster.settle(2)
        write(tmp_path / "counted_log.py", "LOG = ['again']")
        watched.cluster.settle(2)
        assert "SyntaxError" in watched.reloader.outcome.error, "a file that could not be loaded is tried again"
        write(tmp_path / "one_counted.py", COUNTED.format(name="One", imports="counted_parts"))
        watched.cluster.settle(2)
        assert sys.modules["counted_log"].LOG == ["again", "One", "Two"]


def test_a_bug_in_loading_is_an_error_like_others(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    with Watched(path) as watched:

        def load() -> Any:
            raise LookupError("a bug")

        object.__setattr__(watched.reloader.source, "load", load)
        watched.reloader.request()
        watched.cluster.settle(2)
        assert watched.reloader.outcome.error == "LookupError: a bug"


def test_reload_is_refused_with_the_reason_by_the_facade():
    with Cluster() as cluster, pytest.raises(MoorageError, match="nobody"):
        cluster.reload(BROKEN)


def applied(watched: Watched, text: str) -> Any:
    return watched.cluster.run(watched.reloader.apply(text))


def test_a_configuration_that_is_sent_is_used_until_the_file_changes(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    with Watched(path) as watched:
        entry = applied(watched, TWO)
        assert (entry.origin, entry.generation, entry.error) == ("request", 2, "")
        assert watched.profiles() == ["one", "two"]
        watched.cluster.settle(10)
        assert watched.profiles() == ["one", "two"], "the file is as it was"
        path.write_text(ONE + "parallelism: 3\n")
        watched.cluster.settle(2)
        assert watched.profiles() == ["one"]
        origins = [(entry.number, entry.origin, entry.generation) for entry in watched.reloader.history]
        assert origins == [(3, "file", 3), (2, "request", 2), (1, "start", 1)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BROKEN, "nobody"),
        ("{", "not valid YAML"),
        (HEAD + "profiles: [{plugins: {score: {enabled: [{name: 'os:path'}]}}}]", "imports no code"),
    ],
    ids=["a plugin that is not there", "no YAML", "code"],
)
def test_a_configuration_that_is_sent_and_refused_changes_nothing_and_is_in_the_history(tmp_path, text, says):
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    with Watched(path) as watched:
        entry = applied(watched, text)
        assert says in entry.error
        assert (entry.generation, entry.text) == (1, "")
        assert watched.profiles() == ["one"]
        watched.cluster.add(make_node("a"), make_pod("p", scheduler_name="one"))
        watched.cluster.settle(5)
        assert watched.cluster.node_of("p") == "a"
        assert [entry.origin for entry in watched.reloader.history] == ["request", "start"]


def test_the_text_of_an_applied_entry_leads_back_to_it_with_the_plugins_of_then(tmp_path):
    path = tmp_path / "config.yaml"
    enabled = "{multiPoint: {enabled: [{name: 'allowing:Allowed'}]}}"
    path.write_text(HEAD + f"profiles: [{{schedulerName: one, plugins: {enabled}}}]\n")
    write(tmp_path / "allowing.py", PLUGIN.format(helper="allowing_helper"))
    write(tmp_path / "allowing_helper.py", "ALLOWED = {'a'}")
    with Watched(path, folder=tmp_path) as watched:
        before = watched.cluster.scheduler.configuration
        for _ in range(2):
            start = watched.reloader.history.find(1)
            assert start is not None
            assert applied(watched, start.text).error == ""
        assert watched.cluster.scheduler.configuration.profiles == before.profiles


def test_before_the_cluster_is_read_a_configuration_that_is_sent_is_refused(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    with Watched(path) as watched:
        cluster = watched.cluster
        early = Reloader(cluster.scheduler, watched.reloader.source, cluster.clock, load_in=at_once)
        entry = cluster.run(early.apply(TWO))
        assert "has not read the cluster yet" in entry.error
        assert watched.profiles() == ["one"]


def test_the_history_keeps_the_newest(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    with Watched(path) as watched:
        for _ in range(MAX_ENTRIES + 5):
            applied(watched, "{")
        numbers = [entry.number for entry in watched.reloader.history]
        assert numbers == list(range(MAX_ENTRIES + 6, 6, -1))


def test_private_keys_of_extenders_are_not_in_the_history(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    tls = "{insecure: true, certData: Y2VydA==, keyData: c2VjcmV0}"
    with Watched(path) as watched:
        loaded = watched.reloader.read(ONE + f"extenders: [{{urlPrefix: 'https://x', tlsConfig: {tls}}}]\n")
        assert "Y2VydA==" in redacted_yaml(loaded.config)
        assert "c2VjcmV0" not in redacted_yaml(loaded.config)
