"""What the tasks of the backends' suite do; imported by name in worker processes."""

import asyncio
import os
import time
from dataclasses import dataclass
from enum import StrEnum

from ag2_parallel import TaskStopped


@dataclass
class Verdict:
    score: int


class Colour(StrEnum):
    RED = "red"


def echo(ctx):
    return f"echo {ctx.prompt}"


async def echo_later(ctx):
    await asyncio.sleep(0.01)
    return f"echo {ctx.prompt}"


def verdict(ctx):
    return Verdict(len(ctx.prompt))


def nothing(ctx):
    return None


def fails(ctx):
    raise LookupError(f"no {ctx.prompt}")


def fails_once(ctx):
    if ctx.attempt == 1:
        raise LookupError("not yet")
    return f"attempt {ctx.attempt}"


def ends_the_interpreter(ctx):
    raise SystemExit(3)


def waits(ctx):
    while True:
        ctx.check()
        time.sleep(0.01)


def cleans_up(ctx):
    mark = ctx.directory / "cleaned"
    try:
        waits(ctx)
    except TaskStopped:
        mark.write_text("yes", encoding="utf-8")
        raise


def reports(ctx):
    ctx.report(f"hello from {ctx.name}")
    return ctx.name


def writes(ctx):
    (ctx.directory / "file").write_text(ctx.prompt, encoding="utf-8")
    return str(ctx.directory)


def adds_up(ctx):
    return sum(result.output for result in ctx.upstream.values())


def number(ctx):
    return int(ctx.prompt)


def changes_context(ctx):
    ctx.context["seen"].append(ctx.name)
    return ctx.context["seen"]


def uses_resource(ctx):
    return ctx.resources["db"].ask(ctx.prompt)


class Database:
    def ask(self, what):
        return f"{what} from the database"


def open_database():
    return Database()


def broken_resource():
    raise ConnectionError("the database is down")


def prints(ctx):
    print(f"printed by {ctx.name}")
    return "done"


def where(ctx):
    return os.getpid()


def colour(ctx):
    return Colour.RED
