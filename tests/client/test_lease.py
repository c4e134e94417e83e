"""The decisions about a lease, without I/O: whose it is, when it may be taken, how long a leader may act."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api.core import Lease, LeaseSpec
from moorage.api.errors import MoorageError
from moorage.api.meta import ObjectMeta
from moorage.client.lease import Fence, LeaseCandidate, Terms, Verdict

TERMS = Terms()


def lease(holder: str | None = "other", seconds: int | None = 15, renewed: str = "1") -> Lease:
    spec = LeaseSpec(
        holder_identity=holder,
        lease_duration_seconds=seconds,
        acquire_time="1",
        renew_time=renewed,
        lease_transitions=3,
    )
    return Lease(spec=spec)


def candidate() -> LeaseCandidate:
    return LeaseCandidate("me", "kube-scheduler", "kube-system", TERMS)


def leader() -> LeaseCandidate:
    me = candidate()
    me.see(None, 0.0)
    me.wrote(me.claim(0.0))
    return me


def test_a_lease_that_does_not_exist_is_free_and_created_with_all_its_fields():
    me = candidate()
    me.see(None, 0.0)
    assert me.judge(0.0) is Verdict.FREE
    made = me.claim(1_700_000_000.25)
    assert (made.name, made.namespace, made.kind) == ("kube-scheduler", "kube-system", "Lease")
    assert made.spec == LeaseSpec(
        holder_identity="me",
        lease_duration_seconds=15,
        acquire_time="2023-11-14T22:13:20.250000Z",
        renew_time="2023-11-14T22:13:20.250000Z",
        lease_transitions=0,
    )


def test_the_lease_of_another_is_taken_only_after_it_was_seen_unchanged_for_its_duration():
    me = candidate()
    me.see(lease(), 100.0)
    assert me.judge(114.9) is Verdict.HELD
    me.see(lease(), 114.9)
    assert me.judge(115.0) is Verdict.FREE


def test_a_renewal_that_is_seen_starts_the_wait_again():
    me = candidate()
    me.see(lease(renewed="1"), 100.0)
    me.see(lease(renewed="2"), 110.0)
    assert me.judge(120.0) is Verdict.HELD
    assert me.judge(125.0) is Verdict.FREE


@pytest.mark.parametrize(
    ("after", "free_at"),
    [
        pytest.param(None, 120.0, id="deleted"),
        pytest.param(lease(""), 120.0, id="holder cleared by hand"),
        pytest.param(lease(None), 120.0, id="holder removed by hand"),
        pytest.param(lease("", 1), 105.0, id="released"),
        pytest.param(lease("", 1, renewed="2"), 120.0, id="cleared by hand, with a duration of 1"),
        pytest.param(lease("other", 1), 120.0, id="duration shortened by hand"),
        pytest.param(lease("other", 40), 145.0, id="a holder with a longer duration"),
        pytest.param(lease("other", None), 120.0, id="duration removed"),
        pytest.param(lease("me"), 120.0, id="edited to name us"),
    ],
)
def test_every_change_but_a_release_starts_the_wait_anew(after, free_at):
    me = candidate()
    me.see(lease(), 100.0)
    me.see(after, 105.0)
    assert me.judge(free_at - 0.01) is Verdict.HELD or free_at == 105.0
    assert me.judge(free_at) is Verdict.FREE


def test_a_claim_of_ours_whose_answer_was_lost_is_recognised():
    me = candidate()
    me.see(lease(), 0.0)
    sent = me.claim(1_700_000_000.0)
    me.see(sent, 16.0)
    assert me.judge(16.0) is Verdict.FREE


def test_taking_over_counts_a_transition_and_renewing_does_not():
    me = candidate()
    me.see(lease(), 0.0)
    taken = me.claim(1_700_000_000.0)
    assert taken.spec.lease_transitions == 4
    me.wrote(taken)
    renewed = me.claim(1_700_000_002.0)
    assert renewed.spec.lease_transitions == 4
    assert renewed.spec.acquire_time == taken.spec.acquire_time
    assert renewed.spec.renew_time != taken.spec.renew_time


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        pytest.param(None, Verdict.FREE, id="deleted: taken again"),
        pytest.param(lease(""), Verdict.FREE, id="holder cleared: taken again"),
        pytest.param(lease("me", 99), Verdict.FREE, id="edited but still ours"),
        pytest.param(lease("other"), Verdict.HELD, id="another holder: lost"),
    ],
)
def test_what_a_leader_makes_of_an_edited_lease(found, verdict):
    me = leader()
    me.see(found, 5.0)
    assert me.judge(5.0) is verdict


def test_a_release_is_written_by_the_holder_only():
    assert candidate().release(0.0) is None
    me = leader()
    released = me.release(1_700_000_000.0)
    assert released is not None
    assert (released.spec.holder_identity, released.spec.lease_duration_seconds) == ("", 1)
    me.see(lease("other"), 1.0)
    assert me.release(0.0) is None


def test_unknown_parts_of_the_lease_survive_a_renewal():
    me = candidate()
    strategy = msgspec.structs.replace(lease("").spec, strategy="OldestEmulationVersion", preferred_holder="x")
    me.see(Lease(spec=strategy), 0.0)
    assert me.claim(0.0).spec.strategy == "OldestEmulationVersion"


class TestFence:
    def make(self):
        self.time = 0.0
        return Fence(lambda: self.time, TERMS)

    def test_a_fence_that_was_not_renewed_is_closed(self):
        assert not self.make().allows()

    def test_it_counts_from_the_sending_of_the_renewal(self):
        fence = self.make()
        fence.renewed(5.0)
        self.time = 14.9
        assert fence.allows()
        self.time = 15.0
        assert not fence.allows()

    def test_a_late_answer_to_an_older_renewal_changes_nothing(self):
        fence = self.make()
        fence.renewed(5.0)
        fence.renewed(3.0)
        self.time = 14.9
        assert fence.allows()

    def test_closing_is_final(self):
        fence = self.make()
        fence.renewed(5.0)
        fence.close()
        fence.renewed(6.0)
        assert not fence.allows()

    def test_a_write_must_be_over_before_others_may_lead(self):
        fence = self.make()
        fence.renewed(0.0)
        self.time = 9.9
        assert fence.allows()
        assert 0 < fence.seconds_remaining() < TERMS.lease_duration - self.time

    def test_overdue_tells_a_holder_that_hangs(self):
        fence = self.make()
        assert not fence.overdue(20.0), "never held"
        fence.renewed(0.0)
        self.time = 35.0
        assert not fence.overdue(20.0)
        self.time = 35.1
        assert fence.overdue(20.0)
        fence.close()
        assert not fence.overdue(20.0), "stepped down"

    def test_without_election_it_is_always_open(self):
        fence = Fence.open(lambda: 1e12)
        assert fence.allows()
        assert not fence.overdue(0.0)


@pytest.mark.parametrize(
    ("durations", "text"), [((10, 10, 2), "leaseDuration"), ((15, 2, 2), "retryPeriod"), ((15, 10, 0), "retryPeriod")]
)
def test_durations_that_do_not_fit_together_are_refused(durations, text):
    with pytest.raises(MoorageError, match=text):
        Terms(*durations)


@pytest.mark.parametrize(
    ("seen", "taken_from"),
    [
        pytest.param([None], "", id="there never was one"),
        pytest.param(["7"], "7", id="one that was held or released"),
        pytest.param(["7", None], None, id="one that is gone: its holder may have led"),
    ],
)
def test_what_a_lease_was_taken_from(seen, taken_from):
    me = candidate()
    assert me.taken_from is None
    for at, version in enumerate(seen):
        known = lease()
        me.see(version and msgspec.structs.replace(known, metadata=ObjectMeta(resource_version=version)), at)
    me.wrote(me.claim(0.0))
    assert me.taken_from == taken_from
    me.wrote(me.claim(1.0))
    assert me.taken_from == taken_from, "renewals change nothing"
