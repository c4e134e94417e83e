"""`moorage demo` tells the story of the label to its end."""

import re

from moorage.cli.root import app
from tests.cli.running import run_in, runner

REFUSAL = (
    "0/4 nodes are available: 1 Node: k8s, 1 Node: node1, 1 node(s) had untolerated taint(s), "
    "1 node(s) were unschedulable. preemption: 0/4 nodes are available: "
    "2 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
)


def test_tells_the_whole_story():
    result = runner.invoke(app, ["demo", "--speed", "0"])
    assert result.exit_code == 0, result.output
    output = result.output
    assert output.count(REFUSAL) == 2  # when it happens, and in the end
    assert re.search(r"node2 +TaintToleration +node\(s\) had untolerated taint\(s\)", output)
    assert re.search(r"node3 +NodeUnschedulable +node\(s\) were unschedulable", output)
    assert re.search(r"node1 +sample +Node: node1 +Unschedulable", output)
    assert "Event NodeUpdateNodeLabel: the queueing hint of plugin sample" in output
    assert "Successfully bound to node1: evaluatedNodes=4 feasibleNodes=1" in output
    assert re.findall(r"^(\d)\. ", output, re.MULTILINE) == ["1", "2", "3", "4", "5", "6"]
    assert re.search(r"Normal +Scheduled +\d\d:\d\d:\d\d\.\d{3} +\ds +sample-scheduler +Successfully assigned", output)


def test_pipes_and_no_color_get_plain_text(tmp_path):
    piped = run_in(tmp_path, "demo", "--speed", "0", PYTHONIOENCODING="ascii")
    plain = run_in(tmp_path, "demo", "--speed", "0", "--no-color", FORCE_COLOR="1")
    assert "\x1b" not in piped.stdout
    assert "\\u" not in piped.stdout  # nothing that a terminal without Unicode cannot show
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", plain.stdout)
    assert (piped.returncode, plain.returncode) == (0, 0)
    # On a busy machine the watchdog may have a line.
    assert not piped.stderr or "The scheduling loop is held up" in piped.stderr
