"""Threads that take one job after another and never hold up the interpreter's exit."""

import threading
import time

from ag2_parallel.workers.daemon_threads import MOST_IDLE, DaemonThreads

SOME = 40


def wait_until(true):
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.002)


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


def test_idle_threads_are_gone_when_it_is_closed():
    threads = DaemonThreads("test")
    idle = at_once(threads, SOME)
    threads.close()
    assert sum(thread.is_alive() for thread in idle) <= 1  # the last one may not have got as far as to be idle


def test_of_many_idle_threads_a_few_are_kept_and_take_the_next_jobs():
    threads = DaemonThreads("test")
    many = at_once(threads, 5 * MOST_IDLE)
    wait_until(lambda: sum(thread.is_alive() for thread in many) <= MOST_IDLE)
    again = at_once(threads, MOST_IDLE // 2)
    assert set(again) <= set(many)
    threads.close()


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
    wait_until(lambda: not any(thread.is_alive() for thread in set(idle) - set(busy)))
    assert busy[0].is_alive()
    may_end.set()
    busy[0].join(10)
    assert not busy[0].is_alive()


def test_a_thread_of_its_own_may_close_it():
    threads, closed = DaemonThreads("test"), threading.Event()

    def job():
        threads.close()
        closed.set()

    at_once(threads, SOME)
    threads.run(job)
    assert closed.wait(10)
