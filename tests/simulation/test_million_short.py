"""The simulation of `million.py` with 20,000 tasks."""

from million import World, check

TASKS = 20_000


def test_a_long_lazily_fed_run_comes_to_its_end_in_bounded_memory():
    world = World(TASKS, seed=1).run()
    check(world)
    assert world.schedule.finished
    assert world.schedule.next_wake() is None
    assert world.largest < TASKS / 20, "what is settled leaves no record and no alarm behind"
