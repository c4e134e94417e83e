"""Text that is made fit for the API."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.api.plain_text import fit

ANY = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=300)


@given(ANY | st.text(alphabet="é漢🚢a\ud800", min_size=20, max_size=300), st.integers(min_value=16, max_value=400))
def test_the_result_can_be_sent_and_is_within_the_limit(text, limit):
    found = fit(text, limit)
    assert len(found.encode()) <= limit
    assert fit(found, limit) == found
    if found != text and found.endswith(" ..."):
        assert len(found.encode()) > limit - 8


def test_a_good_text_is_returned_unchanged():
    for text in (
        "",
        "0/4 nodes are available: 1 node(s) had untolerated taint(s).",
        "two\nlines\tand a tab",
        "漢🚢" * 4,
    ):
        assert fit(text, 1024) == text


def test_what_cannot_be_sent_is_replaced():
    assert fit("a\ud800b\x00c\x7fd\x85e", 100) == "a\N{REPLACEMENT CHARACTER}b" + "".join(
        f"\N{REPLACEMENT CHARACTER}{letter}" for letter in "cde"
    )


def test_a_long_text_is_cut_between_two_characters():
    assert fit("漢" * 10, 16) == "漢漢漢漢 ..."
    assert fit("a" * 17, 16) == "a" * 12 + " ..."
    assert fit("a" * 16, 16) == "a" * 16
