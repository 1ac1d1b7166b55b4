"""Threads that take one job after another and never hold up the interpreter's exit."""

import threading

from ag2_parallel.workers.daemon_threads import DaemonThreads

SOME = 40


def at_once(threads, jobs):
    """Run jobs that all wait for each other, so that each has a thread; the threads."""
    together, done = threading.Barrier(jobs), threading.Semaphore(0)
    seen = []

    def job():
        together.wait(10)
        seen.append(threading.current_thread())
        done.release()

    for _ in range(jobs):
        threads.run(job)
    for _ in range(jobs):
        assert done.acquire(timeout=10)
    return seen


def test_all_idle_threads_end_though_each_is_told_by_the_one_before():
    threads = DaemonThreads("test")
    idle = at_once(threads, SOME)
    threads.close()
    for thread in idle:
        thread.join(10)
    assert not any(thread.is_alive() for thread in idle)


def test_a_busy_thread_ends_with_its_job_and_the_idle_ones_do_not_wait_for_it():
    threads = DaemonThreads("test")
    begun, may_end, busy = threading.Event(), threading.Event(), []

    def job():
        busy.append(threading.current_thread())
        begun.set()
        may_end.wait(10)

    idle = at_once(threads, SOME)
    threads.run(job)
    assert begun.wait(10)
    threads.close()
    for thread in set(idle) - set(busy):
        thread.join(10)
        assert not thread.is_alive()
    assert busy[0].is_alive()
    may_end.set()
    busy[0].join(10)
    assert not busy[0].is_alive()
