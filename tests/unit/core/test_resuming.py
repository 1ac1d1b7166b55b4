"""Which results of an earlier life stand."""

import pytest

from ag2_parallel import ConfigurationError, JournalDamagedError, ParallelTask, ParallelTaskResult, TaskStatus
from ag2_parallel.core.durations import Durations
from ag2_parallel.core.entries import Limits, NewTask
from ag2_parallel.core.resuming import ResumePolicy, Resumption
from ag2_parallel.core.scheduled import ScheduledTask
from ag2_parallel.records import EarlierTask

LIMITS = Limits(None, None, None)


class Stored:
    """The journal's half of it: a status for each name; None where the process died."""

    def __init__(self, **statuses):
        self.statuses = statuses

    def earlier(self):
        for name, status in self.statuses.items():
            yield EarlierTask(name=name, fingerprint=f"print of {name}", status=status, cut=status is None)

    def result(self, name):
        status = self.statuses[name]
        return status and ParallelTaskResult(name=name, index=99, status=TaskStatus(status), output="stored")


def new(index, name, depends_on=(), prompt="same"):
    return NewTask(ParallelTask(name, prompt, metadata=index), ScheduledTask(index, depends_on), LIMITS)


def resumption(stored, **policy):
    def fingerprint(task):
        return f"print of {task.name}" + ("" if task.prompt == "same" else "!")

    return Resumption(stored, ResumePolicy(**policy), fingerprint, lambda kind, output: output)


def kept(decided):
    return {each.task.name for each in decided if each.kept is not None}


ALL = {"s": "succeeded", "f": "failed", "t": "timed_out", "c": "cancelled", "k": "skipped", "died": None}


@pytest.mark.parametrize(
    ("rerun", "stand"),
    [
        ("not_succeeded", {"s"}),
        ("failed", {"s", "c", "k"}),
        ("interrupted", {"s", "f", "t"}),
        ("none", {"s", "f", "t", "c", "k"}),
    ],
)
def test_rerun_says_which_results_stand_and_what_has_none_runs(rerun, stand):
    """F34."""
    decided = resumption(Stored(**ALL), rerun=rerun).whole([new(i, name) for i, name in enumerate([*ALL, "added"])])
    assert kept(decided) == stand
    assert all(each.scheduled.kept == each.kept.status for each in decided if each.kept)


def test_a_kept_result_has_the_place_and_the_metadata_of_its_task_now():
    [decided] = resumption(Stored(s="succeeded")).whole([new(3, "s")])
    result = decided.kept.load()
    assert (result.index, result.metadata, result.output) == (3, 3, "stored")


def test_a_result_that_cannot_be_read_is_an_error_before_anything_starts():
    made = resumption(Stored(s="succeeded"))
    made.journal.result = lambda name: None
    with pytest.raises(JournalDamagedError, match='"s"'):
        made.whole([new(0, "s")])


def test_or_the_failure_of_its_task_where_the_run_has_begun():
    made = resumption(Stored(s="succeeded"))
    made.journal.result = lambda name: None
    result = made.one(new(0, "s")).kept.load()
    assert (result.status, result.error.type) == (TaskStatus.FAILED, "JournalDamagedError")


@pytest.mark.parametrize(("changed", "stand"), [("rerun", set()), ("keep", {"s"})])
def test_a_changed_task_runs_again_or_keeps_its_result_and_is_named(changed, stand):
    made = resumption(Stored(s="succeeded"), changed=changed)
    assert kept(made.whole([new(0, "s", prompt="other")])) == stand
    assert made.changed == ["s"]
    assert "(s)" in made.told(whole=True)


def test_a_changed_task_can_be_an_error_that_names_all_of_them():
    made = resumption(Stored(a="succeeded", b="succeeded"), changed="error")
    with pytest.raises(ConfigurationError, match="2 tasks would do something else than before: a, b"):
        made.whole([new(0, "a", prompt="other"), new(1, "b", prompt="other")])


def test_a_changed_task_of_a_source_fails_by_itself_where_that_is_an_error():
    made = resumption(Stored(a="succeeded", b="succeeded", c="succeeded"), changed="error")
    refused, dependant, other = (
        made.one(new(0, "a", prompt="other")),
        made.one(new(1, "b", (0,))),
        made.one(new(2, "c")),
    )
    assert [each.kept.load().status for each in (refused, dependant)] == ["failed", "failed"]
    assert (
        refused.kept.load().error.message
        == 'task "a" would do something else than before, and changed="error" (--changed error) refuses that'
    )
    assert "depends on one" in dependant.kept.load().error.message
    assert other.kept.status == "succeeded"


def test_a_result_does_not_stand_where_something_it_was_made_from_runs_again():
    chain = {"a": "failed", "b": "succeeded", "c": "succeeded", "d": "succeeded"}
    tasks = [new(0, "c", (1,)), new(1, "b", (2,)), new(2, "a"), new(3, "d")]
    made = resumption(Stored(**chain))
    assert kept(made.whole(tasks)) == {"d"}
    assert (made.kept, made.again) == (1, 3)


def test_the_same_where_tasks_come_one_by_one():
    made = resumption(Stored(a="failed", b="succeeded", c="succeeded", d="succeeded"))
    tasks = [new(0, "a"), new(1, "b", (0,)), new(2, "c", (1,)), new(3, "d")]
    assert kept(map(made.one, tasks)) == {"d"}


def test_removed_tasks_are_named():
    made = resumption(Stored(a="succeeded", gone="succeeded"))
    made.whole([new(0, "a")])
    assert made.to_dict() == {"kept": 1, "again": 0, "changed": [], "removed": ["gone"]}
    assert "stay in the journal and are no part of it any more (gone)" in made.told(whole=True)


@pytest.mark.parametrize("whole", [True, False], ids=["a list", "a source"])
def test_it_is_told_how_many_results_stand_and_how_many_tasks_had_not_finished(whole):
    made = resumption(Stored(a="succeeded", b="failed", c=None, d=None))
    if whole:
        made.whole([new(number, name) for number, name in enumerate("abcd")])
    told = made.told(whole=whole)
    assert told.startswith("goes on: 1 of its results stand, 3 tasks run again, 2 of which had not finished")
    assert ("those that are new or changed run too" in told) is not whole


def test_other_words_are_refused_all_at_once():
    with pytest.raises(ConfigurationError) as caught:
        ResumePolicy(rerun="all", changed="no", uncertain="maybe")
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["rerun", "changed", "uncertain"]


def test_durations_come_by_name_then_group_then_of_all():
    durations = Durations.remembered([("a", "g", 1.0), ("a", "g", 3.0), ("b", None, 5.0)])
    assert durations.expected("a", None) == 3.0
    assert durations.expected("new", "g") == 2.0
    assert durations.expected("new", None) == 3.0
    assert Durations.remembered([]).expected("a", "g") == 0.0
