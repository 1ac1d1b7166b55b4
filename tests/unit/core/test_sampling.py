"""M8: which tasks are tried first."""

import random
from collections import Counter

import pytest

from ag2_parallel import ConfigurationError, ParallelTask
from ag2_parallel.core.intake import Intake
from ag2_parallel.core.sampling import reservoir, sample_of
from ag2_parallel.core.task_source import TaskSource
from ag2_parallel.options import Options
from ag2_parallel.tasks import RefusedTask


def task(number, *depends_on):
    return ParallelTask(f"t{number}", run=print, depends_on=[f"t{each}" for each in depends_on])


def listed(tasks):
    return TaskSource(Intake(Options(), lambda _task: []).whole(tasks), None, {"file": ["a"]})


def numbers(sample):
    return [int(each.name[1:]) for each in sample.tasks]


def test_a_sample_is_spread_over_the_input_and_the_same_for_the_same_seed():
    source = listed([task(n) for n in range(100)])
    sample = sample_of(source, 5, seed=1)
    assert [number // 20 for number in numbers(sample)] == [0, 1, 2, 3, 4]
    assert (sample.total, sample.depth, sample.tasks.found_by) == (100, 1, {"file": ["a"]})
    assert numbers(sample_of(source, 5, seed=1)) == numbers(sample)
    assert numbers(sample_of(source, 5, seed=2)) != numbers(sample)


def test_more_than_there_is_takes_all():
    assert numbers(sample_of(listed([task(0), task(1)]), 5)) == [0, 1]
    assert numbers(sample_of(listed([]), 5)) == []


def test_tasks_come_with_what_they_depend_on_where_that_fits():
    chains = [task(n, *([n - 1] if n % 2 else [])) for n in range(20)]
    for seed in range(20):
        sample = sample_of(listed(chains), 4, seed)
        assert 3 <= len(numbers(sample)) <= 4
        assert all(n - 1 in numbers(sample) for n in numbers(sample) if n % 2)
    assert sample.depth == 2
    collected = [*(task(n) for n in range(9)), task(9, *range(9))]
    assert all(9 not in numbers(sample_of(listed(collected), 5, seed)) for seed in range(10))


def test_a_source_that_is_read_again_is_sampled_evenly():
    seen = Counter()
    for seed in range(600):
        chosen, total = reservoir((ParallelTask(f"t{n}", "x") for n in range(30)), 5, random.Random(seed))
        assert total == 30
        names = [int(each.name[1:]) for each in chosen]
        assert names == sorted(set(names))
        seen.update(names)
    assert min(seen.values()) > 60
    assert max(seen.values()) < 150


def test_what_cannot_run_alone_counts_and_is_not_chosen():
    items = [{"name": "a", "depends_on": ["b"]}, RefusedTask("r", "bad"), {"name": "c"}]
    assert reservoir(items, 5, random.Random(0)) == ([{"name": "c"}], 3)


def test_an_iterator_is_refused():
    with pytest.raises(ConfigurationError, match="an iterator is read once only; pass a list"):
        sample_of(TaskSource(None, iter([]), None), 5)
