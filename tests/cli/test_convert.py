"""`moorage convert`: a configuration on standard output, notes and mistakes on standard error."""

import pytest

from moorage.app.configuration import configure
from moorage.cli.root import app
from tests.cli.running import runner
from tests.config.builders import POLICY, PUBLISHED_POLICY


@pytest.fixture
def convert(tmp_path):
    file = tmp_path / "policy.json"

    def run(text, *args):
        file.write_text(text)
        return runner.invoke(app, ["convert", str(file), *args])

    return run


def test_what_is_printed_is_a_configuration_and_what_is_noted_is_not_in_it(convert):
    done = convert(POLICY, "--scheduler-name=my-scheduler")
    assert done.exit_code == 0
    (profile,) = configure(done.stdout, discover=False).profiles
    assert profile.scheduler_name == "my-scheduler"
    assert "note: priorities[4]: NodePreferAvoidPodsPriority is dropped" in done.stderr


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (PUBLISHED_POLICY, "policy.json: not valid JSON: line 13, column 38: trailing comma"),
        ('{"predicates": [{"name": "CheckServiceAffinity"}]}', "predicates[0]: ServiceAffinity is gone"),
        ('{"extenders": [{"filterVerb": "f"}]}', "extenders[0].urlPrefix: Required value"),
    ],
)
def test_a_policy_that_cannot_be_converted_prints_nothing_but_the_reason(convert, text, mistake):
    done = convert(text)
    assert (done.exit_code, done.stdout) == (1, "")
    assert mistake in done.stderr
