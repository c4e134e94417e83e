"""`moorage check`: plugins that cannot be built or asked are mistakes, what has no effect is a warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moorage.cli.root import app
from moorage.framework import BindPlugin, FilterPlugin, Reads, ReusablePlugin
from tests.cli.running import runner
from tests.runtime.test_registry import broken, package  # noqa: F401 (fixtures)
from tests.scheduler.kit import config


class Good(FilterPlugin, ReusablePlugin):
    name = "good"

    def filter(self, state, pod, node):
        return None

    def sign(self, pod):
        return (pod.namespace, pod.scheduler_name)

    def reads(self, pod):
        return (Reads.NODE,)


class FailsToBuild(Good):
    name = "fails-to-build"

    def __init__(self, args, handle):
        super().__init__(args, handle)
        raise LookupError(f"{self.name} has no model")


class Spawns(Good):
    name = "spawns"

    def __init__(self, args, handle):
        super().__init__(args, handle)
        handle.spawn(self.poll(), "poll")

    async def poll(self):
        raise AssertionError("nothing runs during a check")


class SignsAList(Good):
    name = "signs-a-list"

    def sign(self, pod):
        return [pod.namespace]


class SignsWithAnError(Good):
    name = "signs-with-an-error"

    def sign(self, pod):
        return pod.labels["app"]


class MyBinder(BindPlugin):
    name = "my-binder"

    async def bind(self, state, pod, node_name):
        return None


@pytest.fixture
def check(tmp_path):
    """Checks a text, with some of the classes above known by name."""

    def checked(text: str, *plugins: type, json_output: bool = False):
        path: Path = tmp_path / "scheduler.yaml"
        path.write_text(text)
        known = [f"--plugin={cls.__module__}:{cls.__name__}" for cls in plugins]
        return runner.invoke(app, ["check", str(path), *known, *(["-o", "json"] if json_output else [])])

    return checked


MISTAKES = [
    pytest.param(
        FailsToBuild,
        'initializing plugin "fails-to-build": LookupError: fails-to-build has no model',
        id="a constructor that fails",
    ),
    pytest.param(
        SignsAList,
        'plugin "signs-a-list": sign() of a plain pod must return a hashable value: TypeError: unhashable type',
        id="a sign that is not hashable",
    ),
    pytest.param(
        SignsWithAnError,
        "plugin \"signs-with-an-error\": sign() of a plain pod must return a hashable value: KeyError: 'app'",
        id="a sign that raises",
    ),
]


@pytest.mark.parametrize(("cls", "sentence"), MISTAKES)
def test_a_plugin_that_cannot_be_built_or_asked_is_a_mistake_in_every_profile(check, cls, sentence):
    text = config(cls.name, profiles=["one", "two"])
    result = check(text, cls)
    assert result.exit_code == 1
    assert result.stdout == ""
    said = " ".join(result.stderr.split())
    for profile in ("one", "two"):
        assert f'profile "{profile}": {sentence}' in said
    result = check(text, cls, json_output=True)
    assert result.exit_code == 1
    assert sentence in " ".join(problem["message"] for problem in json.loads(result.stdout)["problems"])


def test_a_plugin_that_is_only_known_is_not_built(check):
    assert check(config(), FailsToBuild).exit_code == 0


def test_a_constructor_may_start_background_work(check):
    result = check(config("spawns"), Spawns)
    assert (result.exit_code, result.stderr) == (0, "")


IDLE = '"my-binder" is never called, because DefaultBinder before it binds every pod'
UNUSED = 'profiles[0].pluginConfig: unknown plugin "NodeResourceFit"'
ARGUMENTS = "pluginConfig: [{{name: {}, args: {{}}}}]"
ALL = 'multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]}'
FIRST = "bind: {disabled: [{name: DefaultBinder}], enabled: [{name: my-binder}, {name: DefaultBinder}]}"


def profile(plugins: str) -> str:
    return f"{config().partition('profiles:')[0]}profiles: [{{plugins: {{{plugins}}}}}]"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        pytest.param(config("good"), [], id="nothing to say"),
        pytest.param(profile(f"{ALL}, bind: {{enabled: [{{name: my-binder}}]}}"), [IDLE], id="behind"),
        pytest.param(profile(f"{ALL}, {FIRST}"), [], id="what the warning proposes"),
        pytest.param(config("my-binder"), [], id="before"),
        pytest.param(
            config("good", extra=ARGUMENTS.format("NodeResourceFit")),
            [f'{UNUSED} (did you mean "NodeResourcesFit"?)'],
            id="arguments of a plugin that is not known",
        ),
        pytest.param(config("good", extra=ARGUMENTS.format("my-binder")), [], id="of one that is known"),
        pytest.param(config("good", extra=ARGUMENTS.format("ImageLocality")), [], id="of a default one"),
    ],
)
def test_what_has_no_effect_is_a_warning_and_no_mistake(check, text, sentences):
    result = check(text, Good, MyBinder)
    assert result.exit_code == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert said.count("warning: ") == len(sentences)
    for sentence in sentences:
        assert sentence in said
    listed = json.loads(check(text, Good, MyBinder, json_output=True).stdout)["warnings"]
    assert len(listed) == len(sentences)


def test_a_broken_installed_package_is_a_warning_of_check_and_stops_no_command(check, broken):  # noqa: F811
    broken("x = outside_broken:X")
    result = check(config("outside"))
    assert result.exit_code == 0, result.stderr
    sentence = "entry point x = outside_broken:X: cannot be imported: ZeroDivisionError: division by zero"
    assert f"warning: {sentence}" in " ".join(result.stdout.split())
    assert "An installed plugin cannot be used" in result.stderr
    assert runner.invoke(app, ["manifests"]).exit_code == 0
