"""Counters and histograms: what they expose is what prometheus-client would, at a fraction of the price."""

import random

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from moorage.telemetry.instruments import OTHER, Exposed, Gauge, Histogram, LabelCounter, exponential


def exposed(*families):
    registry = CollectorRegistry()
    registry.register(Exposed(families))
    return generate_latest(registry).decode()


def test_a_histogram_exposes_exactly_what_prometheus_client_would():
    bounds = exponential(0.001, 2, 15)
    ours = Histogram("h_seconds", "Help.", ("result",), bounds=bounds)
    registry = CollectorRegistry()
    theirs = prometheus_client.Histogram("h_seconds", "Help.", ["result"], buckets=bounds, registry=registry)
    rng = random.Random(7)
    for _ in range(500):
        value = rng.choice([rng.expovariate(10), *bounds, 0.0, 1e9])
        ours.observe(value, "ok")
        theirs.labels("ok").observe(value)
    expected = [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]
    found = exposed(ours).splitlines()
    assert [line for line in found if "_sum" not in line] == [line for line in expected if "_sum" not in line]


def test_buckets_are_those_of_go():
    assert exponential(0.0001, 2, 3) == (0.0001, 0.0002, 0.0004)
    text = exposed(Histogram("h", "Help.", bounds=exponential(0.00001, 1.5, 3)))
    assert 'le="1e-05"' in text
    assert 'le="+Inf"' in text


def test_labels_are_escaped_and_counters_end_in_total():
    counter = LabelCounter("c_total", "Help.", ("name",))
    counter.inc('a"b\\c\nd', by=2)
    (family,) = text_string_to_metric_families(exposed(counter))
    assert (family.type, family.samples[0].name) == ("counter", "c_total")
    assert family.samples[0].labels == {"name": 'a"b\\c\nd'}


def test_what_has_no_labels_is_there_from_the_start():
    assert "c_total 0.0" in exposed(LabelCounter("c_total", "Help."))
    assert "h_count 0.0" in exposed(Histogram("h", "Help.", bounds=(1.0,)))


def test_the_wrong_number_of_labels_is_refused():
    with pytest.raises(ValueError, match="c_total"):
        LabelCounter("c_total", "Help.", ("a", "b")).inc("x")


def test_gauges_that_are_replaced_forget_what_is_gone():
    gauge = Gauge("g", "Help.", ("a",))
    gauge.set("x", to=1)
    gauge.replace([(("y",), 2.0)])
    assert gauge.samples() == {("y",): 2.0}


def test_label_values_beyond_the_limit_count_as_other():
    counter = LabelCounter("things_total", "Things.", ("name",), max_children=2)
    for name in ("a", "b", "c", "d", "a"):
        counter.inc(name)
    assert counter.samples() == {("a",): 2, ("b",): 1, (OTHER,): 2}
