"""Calls are handed out again after a cut, whatever is cut how often; effects happen once."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_cases import Opened, call, result

from ag2_parallel import Usage
from ag2_parallel.errors import JournalError, UncertainEffectError
from ag2_parallel.journal.memory import MemoryRun
from ag2_parallel.records import Receipt

pytestmark = pytest.mark.usefixtures("no_threads_left")


def made(run, tape, *texts, digest="d"):
    for text in texts:
        run.keep(tape, call(digest, text))


def replayed(tape, *digests):
    found = [tape.find(digest) for digest in digests]
    return [None if record is None else record.body.decode() for record in found]


def test_a_call_comes_back_as_it_was(tmp_path):
    whole = call(
        "dig\ud83dest", "b\0dy" * 20_000, status=201, headers=(("a", "b"),), streamed=True, model="m",
        endpoint="https://x", usage=Usage(prompt_tokens=3, calls=1, cost=0.5).for_model("m"), duration=1.25,
    )  # fmt: skip
    with Opened(tmp_path / "j.db") as run:
        run.keep(run.attempt("t"), whole)
        run.die()
    with Opened(tmp_path / "j.db") as run:
        assert run.attempt("t").find("dig\ud83dest") == whole


def test_the_kth_use_gets_the_kth_call_in_any_order_of_digests(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        tape = run.attempt("t")
        for digest, text in [("a", "a1"), ("b", "b1"), ("a", "a2"), ("c", "c1")]:
            run.keep(tape, call(digest, text))
        run.die()
    with Opened(tmp_path / "j.db") as run:
        assert replayed(run.attempt("t"), "c", "a", "b", "a") == ["c1", "a1", "b1", "a2"]


def test_after_the_first_miss_everything_goes_live(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        made(run, run.attempt("t"), "1", "2", "3")
        run.die()
    with Opened(tmp_path / "j.db") as run:
        tape = run.attempt("t")
        assert replayed(tape, "d", "other", "d") == ["1", None, None]
        run.keep(tape, call("other", "live"))
        run.die()
    with Opened(tmp_path / "j.db") as run:
        assert replayed(run.attempt("t"), "d", "other", "d") == ["1", "live", None]


def test_a_second_kill_replays_all_of_it(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        made(run, run.attempt("t"), "1", "2", "3")
        run.die()
    for used in (1, 3):  # killed in the middle of the replay, then after a further live call
        with Opened(tmp_path / "j.db") as run:
            tape = run.attempt("t")
            assert replayed(tape, *["d"] * used) == ["1", "2", "3"][:used]
            if used == 3:
                assert tape.find("d") is None
                made(run, tape, "4")
            run.die()
    with Opened(tmp_path / "j.db") as run:
        assert replayed(run.attempt("t"), *["d"] * 5) == ["1", "2", "3", "4", None]


@pytest.mark.parametrize("how", ["retry", "resume"])
def test_an_attempt_that_failed_by_itself_is_not_replayed(tmp_path, how):
    with Opened(tmp_path / "j.db") as run:
        made(run, run.attempt("t"), "1")
        if how == "retry":
            run.attempt_ended(0, 1, cut=False)
            assert replayed(run.attempt("t", number=2), "d") == [None]
        else:
            run.settle(result("t", attempts=1))
    with Opened(tmp_path / "j.db") as run:
        assert replayed(run.attempt("t"), "d") == [None]


@pytest.mark.parametrize("how", ["retry", "resume"])
def test_an_attempt_that_was_cut_is_replayed(tmp_path, how):
    with Opened(tmp_path / "j.db") as run:
        made(run, run.attempt("t"), "1")
        if how == "retry":
            run.attempt_ended(0, 1, cut=True)
            assert replayed(run.attempt("t", number=2), "d") == ["1"]
        else:
            run.settle(result("t", attempts=1), cut=True)
    with Opened(tmp_path / "j.db") as run:
        assert replayed(run.attempt("t"), "d") == ["1"]


def test_a_call_that_is_not_committed_yet_is_handed_out_too(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        tape = run.attempt("t")
        kept = threading.Event()
        tape.keep(call("d", "1"), kept.set)
        run.attempt_ended(0, 1, cut=True)
        assert replayed(run.attempt("t", number=2), "d") == ["1"]
        assert kept.wait(20)


def test_a_late_call_of_an_attempt_that_is_over_belongs_to_nobody(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        first = run.attempt("t")
        run.attempt_ended(0, 1, cut=True)
        second = run.attempt("t", number=2)
        kept = threading.Event()
        first.keep(call("d", "late"), kept.set)
        assert kept.is_set()
        made(run, second, "mine")
        run.die()
    with Opened(tmp_path / "j.db") as run:
        assert replayed(run.attempt("t"), "d", "d") == ["mine", None]


def test_a_task_that_would_do_something_else_starts_with_live_calls(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        made(run, run.attempt("t"), "1")
        run.die()
    with Opened(tmp_path / "j.db") as run:
        assert replayed(run.attempt("t", fingerprint="new"), "d") == [None]


def test_a_task_that_is_skipped_in_between_keeps_its_calls(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        made(run, run.attempt("t"), "1")
        run.die()
    with Opened(tmp_path / "j.db") as run:
        run.settle(result("t"))
    with Opened(tmp_path / "j.db") as run:
        assert [task.cut for task in run.earlier()] == [True]
        assert replayed(run.attempt("t"), "d") == ["1"]


@pytest.mark.parametrize(
    ("options", "left"), [({}, 1), ({"keep": "summary"}, 0), ({"keep": "none"}, 0), ({"calls": False}, 0)]
)
def test_calls_of_a_task_that_settled_stay_with_keep_all_alone(tmp_path, options, left):
    with Opened(tmp_path / "j.db", **options) as run:
        made(run, run.attempt("t"), "1")
        run.settle(result("t", attempts=1))
        found = run.run._reader.execute("SELECT count(*), count(nullif(current, 0)) FROM calls").fetchone()
        assert tuple(found) == (left, 0)


def test_without_calls_nothing_is_recorded(tmp_path):
    with Opened(tmp_path / "j.db", calls=False) as run:
        made(run, run.attempt("t"), "1")
        run.die()
    with Opened(tmp_path / "j.db") as run:
        assert replayed(run.attempt("t"), "d") == [None]


@settings(max_examples=25, deadline=None)
@given(lives=st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=1, max_size=4))
def test_whatever_is_asked_in_lives_that_are_all_cut_the_last_one_is_answered_in_full(tmp_path_factory, lives):
    """What one life was answered, from the tape or live, the next one is answered again, as far as it asks the same."""
    path = tmp_path_factory.mktemp("lives") / "j.db"
    before: list[tuple[str, str]] = []
    for number, asked in enumerate(lives):
        with Opened(path) as run:
            tape = run.attempt("t")
            seen = []
            for position, digest in enumerate(asked):
                record = tape.find(digest)
                if record is None:
                    record = call(digest, f"{number}.{position}")
                    run.keep(tape, record)
                seen.append((digest, record.body.decode()))
            same = [pair for pair, earlier in zip(seen, before, strict=False) if pair[0] == earlier[0]]
            if [digest for digest, _ in before[: len(asked)]] == asked[: len(before)]:
                assert same == before[: len(seen)]
            before = seen if len(seen) >= len(before) or [d for d, _ in before[: len(seen)]] != asked else before
            run.die()


# ---- effects


def opened(kind, tmp_path, uncertain="fail"):
    return MemoryRun(uncertain) if kind == "memory" else Opened(tmp_path / "j.db", uncertain=uncertain).run


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_an_effect_happens_once(tmp_path, kind):
    run = opened(kind, tmp_path)
    run.attempt_started(0, "t", "f", 1)
    receipts = run.receipts("t")
    assert receipts.begin("k") is None
    receipts.finish("k", '"\ud83d\0"')
    assert receipts.begin("k") == Receipt('"\ud83d\0"')
    assert run.receipts("other").begin("k") is None
    run.receipts("t").withdraw("k")
    assert run.receipts("t").begin("k") == Receipt('"\ud83d\0"')
    run.close(None)


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_an_effect_that_failed_may_be_tried_again(tmp_path, kind):
    run = opened(kind, tmp_path)
    for _ in range(2):
        assert run.receipts("t").begin("k") is None
        run.receipts("t").withdraw("k")
    run.close(None)


@pytest.mark.parametrize("kind", ["memory", "file"])
@pytest.mark.parametrize(("uncertain", "answers"), [("repeat", [None, None]), ("skip", [Receipt("null")] * 2)])
def test_an_intent_without_a_receipt_is_uncertain(tmp_path, kind, uncertain, answers):
    run = opened(kind, tmp_path, uncertain)
    assert run.receipts("t").begin("k") is None
    assert [run.receipts("t").begin("k") for _ in range(2)] == answers
    run.close(None)


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_the_error_of_an_uncertain_effect_says_what_to_do(tmp_path, kind):
    run = opened(kind, tmp_path)
    assert run.receipts("t").begin("send(1)") is None
    with pytest.raises(UncertainEffectError, match=r"task \"t\": the effect 'send\(1\)'.*uncertain=\"skip\""):
        run.receipts("t").begin("send(1)")
    run.close(None)


def test_receipts_last_over_lives(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        run.attempt("t")
        run.receipts("t").begin("done")
        run.receipts("t").finish("done", "7")
        run.receipts("t").begin("cut")
        run.die()
    with Opened(tmp_path / "j.db") as run:
        run.attempt("t")
        assert run.receipts("t").begin("done") == Receipt("7")
        with pytest.raises(UncertainEffectError):
            run.receipts("t").begin("cut")
        run.die()
    with Opened(tmp_path / "j.db", uncertain="skip") as run:
        assert run.receipts("t").begin("cut") == Receipt("null")


def test_an_effect_of_a_run_that_is_closed_does_not_begin(tmp_path):
    run = Opened(tmp_path / "j.db")
    run.run.close(None)
    with pytest.raises(JournalError, match="the run is closed"):
        run.receipts("t").begin("k")


def test_a_run_without_a_journal_publishes_at_once_and_knows_nothing():
    run = MemoryRun()
    published = []
    run.settle(result("t"), "f", cut=False, published=lambda: published.append(1))
    kept = []
    tape = run.tape(0, "t", 1)
    tape.keep(call("d"), lambda: kept.append(1))
    assert (published, kept, tape.find("d"), list(run.earlier()), run.result("t")) == ([1], [1], None, [], None)
