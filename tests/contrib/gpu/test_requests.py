"""What pods ask of GPUs is read as written, and what makes no sense is refused with its place."""

import pytest

from moorage.contrib.gpu.requests import (
    GPU_COUNT,
    GPU_INDEX,
    GPU_MILLI,
    GPU_MODEL,
    NOTHING,
    GpuRequest,
    card_text,
    cards_of,
    read_request,
)
from moorage.testing import make_pod


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, NOTHING),
        ({GPU_MILLI: "470", GPU_COUNT: "1"}, GpuRequest(1, 470)),
        ({GPU_MILLI: "470"}, GpuRequest(1, 470)),
        ({GPU_COUNT: "4"}, GpuRequest(4, 1000)),
        ({GPU_MILLI: "1000", GPU_COUNT: "8"}, GpuRequest(8, 1000)),
        ({GPU_MILLI: "0", GPU_COUNT: "0"}, NOTHING),
        ({GPU_MILLI: "500", GPU_MODEL: "V100|T4||V100"}, GpuRequest(1, 500, ("T4", "V100"))),
    ],
)
def test_annotations_are_milli_of_each_card(annotations, expected):
    assert read_request(make_pod(annotations=annotations)) == (expected, "")


@pytest.mark.parametrize(
    ("milli", "expected"),
    [(470, GpuRequest(1, 470)), (1000, GpuRequest(1, 1000)), (4000, GpuRequest(4, 1000)), (0, NOTHING)],
)
def test_the_resource_is_milli_of_all_cards_together(milli, expected):
    assert read_request(make_pod(requests={GPU_MILLI: milli})) == (expected, "")


def test_the_models_of_a_pod_with_the_resource_are_in_its_annotation():
    pod = make_pod(requests={GPU_MILLI: 500}, annotations={GPU_MODEL: "T4"})
    assert read_request(pod) == (GpuRequest(1, 500, ("T4",)), "")


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        ({GPU_MILLI: "half"}, f"annotation {GPU_MILLI} must be a number from 0 to 1000, not 'half'"),
        ({GPU_MILLI: "1001"}, f"annotation {GPU_MILLI} must be a number from 0 to 1000, not '1001'"),
        ({GPU_MILLI: "-1"}, f"annotation {GPU_MILLI} must be a number from 0 to 1000, not '-1'"),
        ({GPU_MILLI: "٣"}, f"annotation {GPU_MILLI} must be a number from 0 to 1000, not '٣'"),
        ({GPU_COUNT: "9"}, f"annotation {GPU_COUNT} must be a number from 0 to 8, not '9'"),
        (
            {GPU_COUNT: "2", GPU_MILLI: "500"},
            f"annotation {GPU_MILLI} must be 1000 where {GPU_COUNT} is above 1, not 500: parts are of one card",
        ),
    ],
)
def test_annotations_that_make_no_sense_are_named(annotations, problem):
    assert read_request(make_pod(annotations=annotations)) == (NOTHING, problem)


@pytest.mark.parametrize("milli", [1500, 9000])
def test_amounts_of_the_resource_that_make_no_sense_are_named(milli):
    expected = f"request of {GPU_MILLI} must be at most 1000, or thousands up to 8000, not {milli}"
    assert read_request(make_pod(requests={GPU_MILLI: milli})) == (NOTHING, expected)


@pytest.mark.parametrize("cards", [(0,), (7,), (0, 1, 5)])
def test_cards_are_read_as_they_are_written(cards):
    assert cards_of(make_pod(annotations={GPU_INDEX: card_text(cards)})) == cards


@pytest.mark.parametrize("text", ["", "8", "1-", "a", "-1", "0--1", "12"])
def test_cards_that_cannot_be_read_are_none(text):
    assert cards_of(make_pod(annotations={GPU_INDEX: text})) == ()
