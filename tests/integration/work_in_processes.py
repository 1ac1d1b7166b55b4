"""What the tasks of the tests on worker processes do; imported by name in the workers."""

import ctypes
import os
import signal
import time

from ag2_parallel import once


def pid(ctx):
    return os.getpid()


def nap(ctx):
    time.sleep(float(ctx.prompt))
    return os.getpid()


def dies(ctx):
    os.kill(os.getpid(), signal.SIGKILL)


def dies_once(ctx):
    mark = ctx.directory / "died"
    if not mark.exists():
        mark.write_text("x", encoding="utf-8")
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.attempt


def swallows_every_stop(ctx):
    while True:
        try:
            time.sleep(60)
        except BaseException:
            continue


def holds_the_interpreter(ctx):
    ctypes.PyDLL(None).sleep(60)


def takes_memory(ctx):
    taken = bytearray(int(ctx.prompt))
    for place in range(0, len(taken), 4096):
        taken[place] = 1
    time.sleep(30)
    return len(taken)


def keeps_memory(ctx, kept=[]):  # noqa: B006 - a leak
    kept.append(b"x" * int(ctx.prompt))
    return os.getpid()


def asks(ctx):
    return ctx._services.ask(question(ctx))


def question(ctx):
    from ag2_parallel import HumanInputRequest

    return HumanInputRequest(ctx.name, "a", f"what about {ctx.prompt}?")


def calls(ctx):
    """As many model calls as the prompt says, one after another."""
    url, count = ctx.context["url"], int(ctx.prompt)
    client = ctx._services.gate.http_client()
    return [said(client, url, f"{ctx.name}/{number}") for number in range(count)]


def said(client, url, text):
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    answer = client.post(f"{url}/chat/completions", json=body, timeout=30)
    answer.raise_for_status()
    return answer.json()["choices"][0]["message"]["content"]


def dies_after_its_calls(ctx):
    said = calls(ctx)
    mark = ctx.directory / "died"
    if not mark.exists():
        mark.write_text("x", encoding="utf-8")
        os.kill(os.getpid(), signal.SIGKILL)
    return said


def starts_nothing(ctx):
    ctx.report(str(os.getpid()))
    while True:
        ctx.check()
        time.sleep(0.02)


@once
def pay(amount: int) -> str:
    with open(os.environ["PAID"], "a", encoding="utf-8") as file:
        file.write(f"{amount}\n")
    return f"paid {amount}"


def pays_and_dies(ctx):
    said = pay(int(ctx.prompt))
    mark = ctx.directory / "died"
    if not mark.exists():
        mark.write_text("x", encoding="utf-8")
        os.kill(os.getpid(), signal.SIGKILL)
    return said


@once
def pay_and_die(amount: int) -> str:
    os.kill(os.getpid(), signal.SIGKILL)


def dies_while_it_pays(ctx):
    return pay_and_die(int(ctx.prompt))
