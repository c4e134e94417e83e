"""NodeMetadata: numbers and times in labels and annotations."""

import pytest

from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.contrib.node_metadata import UNKNOWN
from moorage.testing import Cluster, make_node, make_pod
from tests.contrib.configs import enabling
from tests.plugins.one_plugin import ask

NUMBER = {"metadataKey": "k", "metadataSource": "Label", "metadataType": "Number", "scoringStrategy": "Highest"}
TIME = {**NUMBER, "metadataSource": "Annotation", "metadataType": "Timestamp", "scoringStrategy": "Newest"}


def scores(args, *values):
    def node(index, value):
        given = {"k": value} if value is not None else {}
        if args["metadataSource"] == "Label":
            return make_node(f"n{index}", labels=given)
        return make_node(f"n{index}", annotations=given)

    nodes = [node(index, value) for index, value in enumerate(values)]
    return list(ask("NodeMetadata", make_pod("p"), nodes, args=args).raw_scores().values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", 7), ("-2.9", -2), ("1e3", 1000), (".5", 0),
        ("", UNKNOWN), ("seven", UNKNOWN), ("inf", UNKNOWN), ("nan", UNKNOWN),
        ("1_0", UNKNOWN), ("1e30", UNKNOWN),
    ],
)  # fmt: skip
def test_numbers_are_cut_and_anything_else_is_unknown(text, expected):
    assert scores(NUMBER, text) == [expected]


def test_a_node_without_the_key_is_unknown():
    assert scores(NUMBER, None, "0") == [UNKNOWN, 0]


def test_the_lowest_number_and_the_oldest_time_are_turned_round():
    assert scores({**NUMBER, "scoringStrategy": "Lowest"}, "7", "-7") == [-7, 7]
    old, new = scores({**TIME, "scoringStrategy": "Oldest"}, "2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z")
    assert old > new


def test_times_are_read_in_the_layout_of_go():
    args = {**TIME, "timestampFormat": "2006-01-02 15:04"}
    assert scores(args, "1970-01-02 00:01", "1970-01-02T00:01:00Z") == [86460, UNKNOWN]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("0", "50", "100", None), {"n0": 1, "n1": 50, "n2": 100, "n3": 0}),
        (("5", "5", "x"), {"n0": 1, "n1": 1, "n2": 0}),
        ((None, None), {"n0": 0, "n1": 0}),
    ],
    ids=["spread", "all equal", "none known"],
)
def test_known_nodes_score_1_to_100_and_unknown_ones_0(values, expected):
    config = enabling("NodeMetadata", NUMBER)
    with Cluster(config=config, verify_reuse=True) as cluster:
        for index, value in enumerate(values):
            cluster.add(make_node(f"n{index}", labels={"k": value} if value else {}))
        cluster.add(make_pod("p"))
        cluster.settle()
        tops = cluster.record("p").scores
    found = {top.node: part.normalized for top in tops for part in top.plugins if part.plugin == "NodeMetadata"}
    assert found == expected


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"metadataKey": ""}, ["metadataKey"]),
        ({"metadataSource": "Spec", "metadataType": "Text"}, ["metadataSource", "metadataType"]),
        ({"scoringStrategy": "Newest"}, ["scoringStrategy"]),
        ({**TIME, "timestampFormat": "2006 CEST"}, ["timestampFormat"]),
        ({**TIME, "timestampFormat": "15:04"}, ["timestampFormat"]),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused_with_their_place(change, fields):
    with pytest.raises(ConfigError) as caught:
        configure(enabling("NodeMetadata", {**NUMBER, **change}))
    paths = [problem.path.rpartition(".")[2] for problem in caught.value.problems]
    assert paths == fields
