"""A process that writes runs down, for tests that kill it: each name is told on standard output once it is published.

python journal_writer.py JOURNAL RUN FIRST COUNT SIZE [MEGABYTES]
"""

import os
import random
import resource
import sys
import threading

from journal_cases import Opened, call, result


def said(index, size):
    """What the result of a task says: nothing that can be compressed, and known to whoever checks it."""
    return random.Random(index).randbytes(size // 2).hex()


def told(line):
    os.write(1, f"{line}\n".encode())


def write(path, run_id, first, count, size):
    run = Opened(path, run_id)
    told("open")
    finished = threading.Semaphore(0)
    for index in range(first, first + count):
        if run.failures:
            break
        name = f"t{index}"
        tape = run.attempt(name, index)
        tape.keep(call(f"d{index}", said(index, size)), lambda: None)

        def published(name=name):
            told(name)
            finished.release()

        run.settle_later(result(name, index, output=said(index, size), attempts=1), published)
        if index % 7 == 0:
            finished.acquire(timeout=1)
    run.run.close(None)
    told(f"failures {len(run.failures)} {run.failures[:1]}")


if __name__ == "__main__":
    path, run_id, first, count, size, *limit = sys.argv[1:]
    if limit:
        most = int(float(limit[0]) * 2**20)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    write(path, run_id, int(first), int(count), int(size))
