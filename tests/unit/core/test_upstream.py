"""Results kept for the tasks that depend on them, and no longer."""

from ag2_parallel import ParallelTaskResult, TaskStatus
from ag2_parallel.core.upstream import KEPT_OF_LAZY_SOURCES, Upstream


def result(index):
    return ParallelTaskResult(name=f"t{index}", index=index, status=TaskStatus.SUCCEEDED)


def test_a_result_is_kept_until_its_last_dependant_is_settled():
    upstream = Upstream({0: 2}, open_ended=False)
    upstream.settled(result(0))
    upstream.settled(result(1))
    assert list(upstream.of([0])) == ["t0"]
    upstream.release([0])
    assert list(upstream.of([0])) == ["t0"]
    upstream.release([0])
    assert upstream.of([0]) == {}
    assert upstream.of([1]) == {}


def test_of_a_lazy_source_the_last_are_kept():
    upstream = Upstream({3: 1}, open_ended=True)
    for index in range(KEPT_OF_LAZY_SOURCES + 10):
        upstream.settled(result(index))
    assert list(upstream.of([3])) == ["t3"]
    upstream.release([5])
    assert upstream.of([9]) == {}
    assert list(upstream.of([10])) == ["t10"]
    assert upstream.name_of(10) == "t10"
    assert upstream.name_of(0) == "task number 1"
