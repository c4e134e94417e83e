"""The list and watch loop under each fault; the numbers are those of the fault catalogue."""

import logging

import pytest

from moorage.api.errors import NotSent, OutcomeUnknown
from moorage.api.resources import custom
from moorage.client import reflector
from moorage.framework.ports import Change, WatchEvent
from tests.client.scripted import (
    GONE,
    HOLD,
    TOO_LARGE,
    Answer,
    Page,
    Stream,
    added,
    bookmark,
    deleted,
    error,
    follow,
    modified,
    pod,
)

LISTED = Page([pod("a")], "10")


def test_first_list_takes_what_the_server_has_cached_and_watches_from_there():
    seen = follow(LISTED, Stream(added("b", "11"), HOLD))
    assert seen.asked == [("list", "0"), ("watch", "10")]
    assert seen.deliveries == ["+a", "+b"]
    assert [change.initial for change in seen.changes] == [True, False]
    assert seen.informer.synced.is_set()


def test_pages_are_joined_and_only_the_first_names_a_version():
    seen = follow(Page([pod("a")], "10", next_page="p2"), Page([pod("b")], "10"), Stream(HOLD), page_size=1)
    assert [(call.version, call.limit, call.page) for call in seen.script.calls[:2]] == [("0", 1, ""), ("", 1, "p2")]
    assert seen.deliveries == ["+a", "+b"]


def test_a1_refused_connections_at_start_are_retried_with_growing_jittered_pauses():
    seen = follow(*[NotSent("connection refused")] * 12, seconds=150.0)
    assert not seen.informer.synced.is_set()
    assert len(seen.pauses()) >= 6
    steps = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    for pause, step in zip(seen.pauses(), steps, strict=False):
        assert step <= pause <= 2 * step


def test_a2_server_away_for_ten_minutes_is_watched_again_without_a_list():
    away = [NotSent("connection refused")] * 20
    seen = follow(LISTED, Stream(added("b", "11"), OutcomeUnknown("cut")), *away, seconds=600.0)
    assert set(seen.asked[1:]) == {("watch", "10"), ("watch", "11")}
    assert seen.deliveries == ["+a", "+b"]
    assert len(seen.script.calls) < 30
    assert "connection refused" in seen.informer.status().last_error


def test_a3_a_watch_that_ends_cleanly_is_resumed_at_once_without_a_list():
    seen = follow(LISTED, Stream(added("b", "11"), 5), Stream(5, added("c", "12")), Stream(HOLD))
    assert seen.asked == [("list", "0"), ("watch", "10"), ("watch", "11"), ("watch", "12")]
    assert seen.script.calls[2].at == 5.0
    assert seen.deliveries == ["+a", "+b", "+c"]


def test_a4_a_cut_watch_resumes_after_the_last_complete_event():
    seen = follow(LISTED, Stream(added("b", "11"), OutcomeUnknown("cut inside a line")), Stream(HOLD))
    assert seen.asked[-1] == ("watch", "11")


def test_a6_gone_on_watch_relists_at_last_version():
    seen = follow(LISTED, GONE, Page([pod("b", "12")], "12"), Stream(HOLD))
    assert seen.asked == [("list", "0"), ("watch", "10"), ("list", "10"), ("watch", "12")]
    assert seen.deliveries == ["+a", "+b", "-a"]


def test_a6_gone_on_that_list_too_reads_the_current_state_at_once():
    seen = follow(LISTED, GONE, GONE, Page([pod("a")], "12"), Stream(HOLD))
    assert seen.asked[2:] == [("list", "10"), ("list", ""), ("watch", "12")]
    assert seen.script.calls[2].at == seen.script.calls[3].at
    assert seen.deliveries == ["+a"]


def test_a7_gone_inside_an_open_watch_relists_at_the_last_event():
    seen = follow(LISTED, Stream(added("b", "11"), GONE), Page([pod("b", "11")], "12"), Stream(HOLD))
    assert seen.asked[2] == ("list", "11")
    assert seen.deliveries == ["+a", "+b", "-a"]


def test_a8_gone_on_a_further_page_starts_over_in_one_piece():
    first = Page([pod("old")], "10", next_page="p2")
    seen = follow(first, GONE, Page([pod("new")], "20"), Stream(HOLD), page_size=1)
    assert [(call.limit, call.page) for call in seen.script.calls[:3]] == [(1, ""), (1, "p2"), (0, "")]
    assert seen.deliveries == ["+new"]
    assert seen.asked[-1] == ("watch", "20")


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        pytest.param([TOO_LARGE], [("list", "0"), ("list", "")], id="first list"),
        pytest.param(
            [LISTED, TOO_LARGE], [("list", "0"), ("watch", "10"), ("list", "")], id="watch on a replica that lags"
        ),
        pytest.param(
            [LISTED, GONE, TOO_LARGE],
            [("list", "0"), ("watch", "10"), ("list", "10"), ("list", "")],
            id="relist on a replica that lags",
        ),
    ],
)
def test_a9_too_large_version_falls_back_to_the_current_state(answers, asked):
    assert follow(*answers).asked[: len(asked)] == asked


def test_a10_a_server_that_went_back_in_time_wins():
    seen = follow(
        Page([pod("a", "5"), pod("b", "9")], "10"), TOO_LARGE, Page([pod("a", "5")], "7"), Stream(added("c", "8"), HOLD)
    )
    assert seen.deliveries == ["+a", "+b", "-a", "+a", "-b", "+c"], "a pending pod begins anew"
    assert seen.asked[-1] == ("watch", "7")


REFUSED = NotSent("connection refused")


@pytest.mark.parametrize(
    "works",
    [
        pytest.param([Stream(added("b", "11"), REFUSED)], id="an event"),
        pytest.param([Stream(2), REFUSED], id="a watch that lasts"),
        pytest.param([GONE, LISTED, REFUSED], id="a list"),
    ],
)
def test_the_pauses_of_an_outage_do_not_go_on_after_it(works):
    """The next failure is the first of another outage."""
    seen = follow(LISTED, *[REFUSED] * 6, *works, Stream(HOLD), seconds=300.0)
    assert max(seen.pauses()) > 20.0
    assert seen.asked[-1][0] == "watch"
    assert seen.pauses()[-1] <= 1.6 + 2.0


def test_a_version_that_is_gone_after_an_outage_is_followed_by_a_list_at_once():
    seen = follow(LISTED, *[REFUSED] * 3, GONE, LISTED, Stream(HOLD))
    assert seen.asked[-3:] == [("watch", "10"), ("list", "10"), ("watch", "10")]
    assert seen.pauses()[-2] <= 0.3


def test_a_pause_for_a_server_that_is_away_ends_when_it_has_answered_another_request():
    seen = follow(
        LISTED, *[REFUSED] * 6, Stream(HOLD), meanwhile=(40.0, lambda informer: informer.wake()), seconds=50.0
    )
    assert 40.0 <= seen.script.calls[-1].at - seen.script.calls[0].at <= 40.3


def test_a_pause_that_the_server_asked_for_is_kept():
    busy = error(429, "TooManyRequests", retry_after=30.0)
    seen = follow(LISTED, busy, Stream(HOLD), meanwhile=(5.0, lambda informer: informer.wake()))
    assert seen.pauses()[-1] >= 30.0


def test_a10_a_bookmark_with_a_lower_version_leads_to_a_list_of_the_current_state():
    found: list[tuple[str, str]] = []

    async def note(before: str, now: str) -> None:
        found.append((before, now))

    seen = follow(
        Page([pod("a", "5"), pod("b", "9")], "10"),
        Stream(2, bookmark("7"), HOLD),
        Page([pod("b", "6")], "7"),
        Stream(added("c", "8"), HOLD),
        on_rewind=note,
    )
    assert seen.asked == [("list", "0"), ("watch", "10"), ("list", ""), ("watch", "7")]
    assert seen.deliveries == ["+a", "+b", "-b", "+b", "-a", "+c"]
    assert found == [("10", "7")]


def test_a10_a_relist_ends_the_open_watch_and_takes_any_version():
    seen = follow(
        Page([pod("a", "5")], "10"),
        Stream(2, bookmark("11"), HOLD),
        Page([pod("b", "3")], "4", seconds=3.0),
        Stream(added("c", "5"), HOLD),
        meanwhile=(5.0, lambda informer: informer.relist()),
    )
    assert seen.asked == [("list", "0"), ("watch", "10"), ("list", ""), ("watch", "4")]
    assert seen.deliveries == ["+a", "+b", "-a", "+c"]


def test_a10_a_list_that_began_before_a_relist_is_not_used():
    """The answer may be from the history that is lost."""
    seen = follow(
        Page([pod("a", "5")], "10", seconds=6.0),
        Page([pod("b", "3")], "4"),
        Stream(HOLD),
        meanwhile=(5.0, lambda informer: informer.relist()),
    )
    assert seen.asked == [("list", "0"), ("list", ""), ("watch", "4")]
    assert seen.deliveries == ["+b"]


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [
        pytest.param(7.0, 7.0, 7.8, id="a11 seven seconds"),
        pytest.param(None, 0.8, 1.6, id="a12 not given"),
        pytest.param(1e9, 60.0, 61.0, id="a12 absurd"),
        pytest.param(-5.0, 0.8, 1.6, id="a12 negative"),
    ],
)
def test_too_many_requests_are_answered_with_patience(retry_after, least, most):
    busy = error(429, "TooManyRequests", retry_after=retry_after)
    seen = follow(LISTED, busy, Stream(HOLD), seconds=100.0)
    assert seen.asked == [("list", "0"), ("watch", "10"), ("watch", "10")]
    assert least <= seen.pauses()[1] <= most


def test_a13_repeated_500_on_the_watch_leads_to_a_list():
    seen = follow(LISTED, *[error(500)] * 3, LISTED, Stream(HOLD))
    assert seen.asked == [
        ("list", "0"),
        ("watch", "10"),
        ("watch", "10"),
        ("watch", "10"),
        ("list", "10"),
        ("watch", "10"),
    ]


@pytest.mark.parametrize("code", [401, 403])
def test_a14_refused_credentials_keep_the_cache_and_recover(code):
    seen = follow(LISTED, *[error(code, message="no")] * 5, Stream(added("b", "11"), HOLD), seconds=120.0)
    assert {verb for verb, _ in seen.asked[1:]} == {"watch"}
    assert seen.deliveries == ["+a", "+b"]
    assert seen.informer.status().last_error == ""


def test_a16_a_watch_that_outlives_its_time_is_given_up():
    seen = follow(LISTED, Stream(HOLD), Stream(HOLD), seconds=650.0)
    assert seen.asked[:3] == [("list", "0"), ("watch", "10"), ("watch", "10")]
    shortest, longest = reflector.WATCH_SECONDS
    assert shortest < seen.pauses()[1] < longest + reflector.GRACE + 2


def test_a17_works_without_any_bookmark():
    seen = follow(LISTED, Stream(400.0), Stream(HOLD), seconds=500.0)
    assert seen.asked == [("list", "0"), ("watch", "10"), ("watch", "10")]
    assert seen.script.calls[2].at == 400.0


def test_a18_bookmarks_advance_the_version_and_are_never_delivered():
    seen = follow(LISTED, Stream(bookmark("50"), 2), Stream(HOLD))
    assert seen.asked[-1] == ("watch", "50")
    assert seen.deliveries == ["+a"]


def test_streaming_list_replaces_at_the_closing_bookmark_and_keeps_the_stream():
    stream = Stream(added("a", "3"), added("b", "1"), bookmark("10", end=True), added("c", "11"), HOLD)
    seen = follow(stream, use_streaming_list=True)
    assert seen.asked == [("watch", "")]
    assert seen.script.calls[0].initial
    assert seen.deliveries == ["+a", "+b", "+c"]
    assert [change.initial for change in seen.changes] == [True, True, False]


def test_a19_streaming_list_cut_early_changes_nothing():
    seen = follow(
        Stream(added("a", "3"), bookmark("10", end=True), GONE),
        Stream(added("b", "12"), OutcomeUnknown("cut")),
        Stream(added("b", "12"), 3),
        seconds=2.5,
        use_streaming_list=True,
    )
    assert seen.deliveries == ["+a"]
    assert [call.initial for call in seen.script.calls] == [True, True, True]
    assert seen.informer.status().version == "10"


def test_a_first_streaming_list_is_delivered_as_it_comes_and_is_complete_with_its_bookmark():
    seen = follow(
        Stream(added("a", "3"), added("b", "4"), OutcomeUnknown("cut")),
        Stream(added("b", "4"), bookmark("10", end=True), HOLD),
        use_streaming_list=True,
    )
    assert seen.deliveries == ["+a", "+b", "-a"]
    assert [change.initial for change in seen.changes][:2] == [True, True]
    assert seen.informer.synced.is_set()


@pytest.mark.parametrize("code", [400, 422])
def test_a20_refused_streaming_list_becomes_a_plain_one(code):
    seen = follow(error(code), LISTED, Stream(HOLD), use_streaming_list=True)
    assert seen.asked == [("watch", ""), ("list", "0"), ("watch", "10")]
    assert seen.script.calls[1].at == 0.0


def test_a21_a_cut_among_the_initial_events_never_resumes_from_one_of_them():
    seen = follow(
        Stream(added("a", "900"), added("b", "3"), OutcomeUnknown("cut")),
        Stream(added("a", "900"), added("b", "3"), bookmark("901", end=True), HOLD),
        use_streaming_list=True,
    )
    assert seen.asked == [("watch", ""), ("watch", "")]
    assert seen.deliveries == ["+a", "+b"]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(WatchEvent("RENAMED", pod("x", "11"), "11"), id="unknown type"),
        pytest.param(WatchEvent("ADDED", None, "11"), id="null"),
        pytest.param(WatchEvent("ADDED", {"kind": "Table"}, "11"), id="table"),
    ],
)
def test_a26_events_that_make_no_sense_are_skipped_and_the_stream_goes_on(event):
    seen = follow(LISTED, Stream(event, added("b", "12"), HOLD))
    assert seen.deliveries == ["+a", "+b"]
    assert len(seen.script.calls) == 2


def test_a26_the_same_holds_inside_a_streaming_list():
    nonsense = WatchEvent("ADDED", {"kind": "Table"}, "3")
    initial = [added("a", "3"), nonsense, added("b", "4"), deleted("b", "5"), bookmark("10", end=True)]
    seen = follow(Stream(*initial, HOLD), use_streaming_list=True)
    assert seen.asked == [("watch", "")]
    assert seen.deliveries == ["+a", "+b", "-b"]


def test_a29_a_list_that_trickles_is_given_up():
    seen = follow(Page([pod("a")], seconds=3600.0), LISTED, Stream(HOLD), seconds=100.0)
    assert seen.asked == [("list", "0"), ("list", "0"), ("watch", "10")]
    assert 90.0 < seen.script.calls[1].at < 92.0


def test_a_healthy_watch_clears_the_last_error_even_without_events():
    seen = follow(LISTED, error(503), Stream(40.0), Stream(HOLD))
    assert seen.informer.status().last_error == ""


def test_a30_watches_that_end_at_once_are_paced_and_lead_to_lists():
    round_: list[Answer] = [Stream(), Stream(), Stream(), LISTED]
    seen = follow(LISTED, *round_ * 20, seconds=600.0)
    late = [call for call in seen.script.calls if call.at > 120.0]
    assert len(late) / 480.0 <= 0.22
    assert ("list", "10") in seen.asked


def test_a30_a_bookmark_that_brings_nothing_new_does_not_excuse_a_short_watch():
    seen = follow(LISTED, *[Stream(bookmark("10"))] * 50, seconds=30.0)
    assert len(seen.script.calls) < 12


def test_a32_deletes_missed_during_a_pause_are_reported_after_the_list():
    seen = follow(LISTED, Stream(400.0, GONE), Page([], "90"), Stream(HOLD), seconds=500.0)
    assert seen.deliveries == ["+a", "-a"]


def test_a33_a_flood_of_events_leaves_the_loop_turns():
    flood = [modified("a", str(version)) for version in range(11, 5011)]
    seen = follow(LISTED, Stream(*flood, deleted("a", "6000"), HOLD))
    assert len(seen.changes) == 5002
    assert seen.deliveries[-1] == "-a"


def test_backoff_starts_anew_after_two_minutes_of_health():
    away = [NotSent("refused")] * 4
    seen = follow(*away, LISTED, Stream(200.0, OutcomeUnknown("cut")), Stream(HOLD), seconds=400.0)
    assert 0.8 <= seen.pauses()[-1] - 200.0 <= 1.6


def test_an_unexpected_error_is_logged_with_its_place_and_answered_by_a_list(caplog):
    seen = follow(LISTED, Stream(added("b", "11"), ValueError("bug")), Page([pod("a")], "12"), Stream(HOLD))
    assert seen.asked[2] == ("list", "11")
    assert seen.deliveries == ["+a", "+b", "-b"]
    assert any(record.exc_info for record in caplog.records)


def test_a_kind_the_server_lacks_counts_as_synced_and_empty_and_is_asked_for_slowly():
    missing = [error(404, "NotFound")] * 3
    seen = follow(*missing, LISTED, Stream(HOLD), seconds=400.0)
    assert seen.informer.synced.is_set()
    assert seen.asked[:4] == [("list", "0")] * 4
    assert all(60.0 <= pause <= 120.0 for pause in seen.pauses()[:3])
    assert seen.deliveries == ["+a"]


def test_item_3_a_custom_kind_that_the_server_lacks_is_asked_for_every_two_seconds(caplog):
    caplog.set_level(logging.INFO)
    served: list[tuple[bool, int]] = []
    delivered: list[Change] = []
    seen = follow(
        *[error(404, "NotFound")] * 4,
        Page([], "10"),
        Stream(HOLD),
        resource=custom("example.com", "v1", "widgets", "Widget"),
        on_served=lambda item: served.append((item.known, len(delivered))),
        receive=delivered.append,
    )
    assert all(1.0 <= pause <= 1.8 for pause in seen.pauses()[:4])
    assert served == [(False, 0), (True, 0)]
    said = [record.msg for record in caplog.records if "this kind" in record.msg]
    assert said == [
        "The API server does not serve this kind; treating it as empty",
        "The API server now serves this kind",
    ]


def test_item_3_a_kind_that_goes_is_reported_when_its_objects_are_given_up():
    served: list[bool] = []
    seen = follow(
        LISTED, error(404), error(404), error(404), seconds=20.0, on_served=lambda item: served.append(item.known)
    )
    assert seen.deliveries == ["+a", "-a"]
    assert served == [False]


def test_one_404_does_not_empty_a_kind_that_was_there():
    seen = follow(LISTED, error(404), error(404), Page([pod("a")], "11"), Stream(HOLD))
    assert seen.deliveries == ["+a"]


def test_a_kind_that_is_removed_is_emptied_at_the_second_404():
    seen = follow(LISTED, error(404), error(404), error(404), seconds=20.0)
    assert seen.deliveries == ["+a", "-a"]
    assert seen.informer.status().last_error == reflector.ABSENT


def test_a_change_that_the_receiver_refused_is_repeated_after_the_next_list():
    refused: list[Change] = []

    def refuse_once(change):
        if change.new.name == "b" and not refused:
            refused.append(change)
            raise RuntimeError("not now")

    b = pod("b", "11")
    seen = follow(LISTED, Stream(added("b", "11")), Page([pod("a"), b], "11"), receive=refuse_once)
    assert seen.asked[2] == ("list", "10")
    assert seen.deliveries == ["+a", "+b"]
