"""Names of dependencies become indexes, or an error that says what to correct."""

import pytest

from ag2_parallel.core.ordering import resolve
from ag2_parallel.errors import DependencyCycleError, UnknownDependencyError


def test_names_become_indexes_in_any_order():
    assert resolve(["b", "a", "c"], [["a"], [], ["b", "a"]]) == [(1,), (), (0, 1)]


def test_nothing_is_nothing():
    assert resolve([], []) == []


def test_a_name_given_twice_counts_once():
    assert resolve(["a", "b"], [[], ["a", "a"]]) == [(), (0,)]


def test_all_unknown_names_are_reported_with_the_nearest_one():
    names = ["symptoms", "literature", "Imaging", "assessment"]
    with pytest.raises(UnknownDependencyError) as caught:
        resolve(names, [[], ["symptom"], [], ["literature", " imaging", "billing-records", "billing-records"]])
    assert caught.value.problems == (
        'task "literature": depends_on names "symptom", which no task has; did you mean "symptoms"?',
        'task "assessment": depends_on names " imaging", which no task has; did you mean "Imaging"?',
        'task "assessment": depends_on names "billing-records", which no task has; add that task or correct the name',
    )


def test_the_search_for_near_names_has_an_end():
    names = [f"task-{n}" for n in range(40_000)]
    with pytest.raises(UnknownDependencyError) as caught:
        resolve(names, [[f"tusk-{n}"] for n in range(40_000)])
    assert len(caught.value.problems) == 40_000
    assert 0 < sum("did you mean" in problem for problem in caught.value.problems) <= 2


def test_a_circle_is_named():
    with pytest.raises(DependencyCycleError) as caught:
        resolve(["start", "b", "c", "a", "behind"], [[], ["c"], ["a", "start"], ["b"], ["a"]])
    (problem,) = caught.value.problems
    assert problem.startswith('tasks wait for each other: "b" -> "c" -> "a" -> "b" (each depends on the next);')


def test_a_task_that_depends_on_itself_is_named():
    with pytest.raises(DependencyCycleError, match='task "a" depends on itself'):
        resolve(["a"], [["a"]])


def test_separate_circles_are_all_named():
    with pytest.raises(DependencyCycleError) as caught:
        resolve(["a", "b", "c", "d"], [["b"], ["a"], ["d", "a"], ["c"]])
    assert [problem.count("->") for problem in caught.value.problems] == [2, 2]


def test_a_long_chain_is_resolved():
    count = 100_000
    names = [str(n) for n in range(count)]
    resolved = resolve(names, [[], *([name] for name in names[:-1])])
    assert resolved[-1] == (count - 2,)


def test_a_long_circle_is_shown_in_part():
    count = 100_000
    names = [str(n) for n in range(count)]
    with pytest.raises(DependencyCycleError, match=r'"0" -> "1" -> .* -> 99990 more -> "99999" -> "0"') as caught:
        resolve(names, [[names[(n + 1) % count]] for n in range(count)])
    assert len(str(caught.value)) < 300
