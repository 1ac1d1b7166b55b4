"""What the tests of cloning share: agents, silent chats, many threads, and a fingerprint of live agents."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from autogen import ConversableAgent
from autogen.io.base import IOStream

from ag2_parallel.frameworks.classic.cloning import Template


class Quiet:
    """An AG2 stream that says nothing."""

    def print(self, *objects, sep=" ", end="\n", flush=False):
        pass

    def send(self, message):
        pass

    def input(self, prompt="", *, password=False):
        raise AssertionError(f"a person was asked: {prompt}")


def speaker(name, **options):
    """An agent without a model."""
    return ConversableAgent(name, **{"llm_config": False, "human_input_mode": "NEVER", **options})


def chat(sender, recipient, message, **options):
    with IOStream.set_default(Quiet()):
        return sender.initiate_chat(recipient, message=message, **{"max_turns": 1, "summary_args": {}, **options})


def clone(root):
    template = Template(root)
    assert template.refusals == []
    return template.clone().root


def at_once(count, job):
    """`job(0)`, `job(1)`, ... on as many threads, started together; their results in order."""
    barrier = Barrier(count)

    def run(i):
        barrier.wait(10)
        return job(i)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


def fingerprint(obj, depth=7):
    """What an object consists of: types, identities and values, some levels deep."""
    if depth == 0 or isinstance(obj, str | int | float | bool | bytes | type | None):
        return repr(obj)
    if isinstance(obj, dict):
        inner = [(fingerprint(k, 1), fingerprint(v, depth - 1)) for k, v in obj.items()]
    elif isinstance(obj, list | tuple):
        inner = [fingerprint(v, depth - 1) for v in obj]
    elif type(obj).__module__.startswith("autogen.") or isinstance(obj, ConversableAgent):
        held = getattr(obj, "__dict__", {})
        inner = [(name, fingerprint(value, depth - 1)) for name, value in held.items()]
    else:
        inner = []
    return (type(obj).__name__, id(obj), inner)
