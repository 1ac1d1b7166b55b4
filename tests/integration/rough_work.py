"""Tasks that treat their process, or what they give back, roughly; imported by name in worker processes."""

import ctypes
import logging
import os
import signal
import threading
import time
from collections.abc import Mapping
from enum import IntEnum, StrEnum


class Group(StrEnum):
    FIRST = "first"


class Urgency(IntEnum):
    HIGH = 3


class EndsWhenPacked:
    def __reduce__(self):
        raise SystemExit(4)


class WordlessError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class HasNoWordsForIt:
    def __reduce__(self):
        raise WordlessError


class ShowsNothing(Mapping):
    def __getitem__(self, key):
        raise KeyError(key)

    def __iter__(self):
        raise ValueError("nothing to see")

    def __len__(self):
        return 1

    def __reduce__(self):
        raise TypeError("stays here")


def function_with_an_empty_cell():
    def function():
        return late

    function.lock = threading.Lock()
    if function.lock.locked():
        late = 1
    return function


class EndsWhenRead:
    def __reduce__(self):
        return _end, ()


def _end():
    raise SystemExit(5)


def gives(ctx):
    made = {
        "ends": EndsWhenPacked,
        "wordless": HasNoWordsForIt,
        "shows nothing": ShowsNothing,
        "empty cell": function_with_an_empty_cell,
        "ends when read": EndsWhenRead,
    }
    return made[ctx.prompt]()


class ShownNowhere:
    def __reduce__(self):
        raise TypeError("stays here")

    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


def keeps_what_cannot_be_shown(ctx):
    ctx.context["it"] = ShownNowhere()
    return "done"


def closes_all_files(ctx):
    os.closerange(0, 4096)
    return "closed"


def becomes_another_program(ctx):
    os.execv("/bin/sleep", ["sleep", "60"])


def signals_its_group(ctx):
    os.killpg(0, signal.SIGTERM)


def touches_nothing(ctx):
    ctypes.string_at(0)


def naps(ctx):
    time.sleep(float(ctx.prompt))
    return ctx.name


def logs_nonsense(ctx):
    logging.getLogger("ag2_parallel.of_a_task").warning("%d apples", "some")
    return "logged"
