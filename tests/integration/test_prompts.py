"""Prompts: text, templates, messages and functions, rendered when the task starts."""

import pytest

from ag2_parallel import ParallelAgentRunner, ParallelTask, Template

pytestmark = pytest.mark.usefixtures("no_threads_left")


def prompt_of(prompt, **fields):
    task = ParallelTask("t", prompt, run=lambda ctx: ctx.prompt, **fields)
    return ParallelAgentRunner(progress=False, retry=3).run([task])["t"]


def test_text_is_literal():
    assert prompt_of("{{ not a template }}").output == "{{ not a template }}"


def test_a_template_is_filled():
    result = prompt_of(
        Template("{{ context.patient }}, {{ metadata['ward'] }}\n"), context={"patient": "Ann"}, metadata={"ward": 3}
    )
    assert result.output == "Ann, 3\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{ context.missing }}", "missing"),
        ("{{ nobody }}", "nobody"),
        ("{% for %}", "template"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
    ],
)
def test_a_template_that_does_not_render_fails_at_once(text, words):
    result = prompt_of(Template(text))
    assert (result.status, result.error.kind, result.attempts) == ("failed", "configuration", 1)
    assert words in result.error.message


def test_functions_and_messages_are_copied():
    messages = [{"role": "user", "content": "hi"}]
    result = prompt_of(messages)
    assert result.output == messages
    assert result.output[0] is not messages[0]
    assert prompt_of({"content": "x"}).output == {"content": "x"}
    assert prompt_of(lambda ctx: f"for {ctx.name}").output == "for t"
    assert prompt_of(lambda ctx: Template("{{ context }}")).output == "{}"


def test_a_function_that_returns_no_prompt():
    result = prompt_of(lambda ctx: 3)
    assert result.error.kind == "configuration"
    assert "returned a int" in result.error.message


@pytest.mark.parametrize("prompt", ["\ud83d", {"content": "a\udc97b"}, [{"content": "\udc97"}], Template("\ud83d")])
def test_half_a_surrogate_pair_fails_at_once(prompt):
    """F26."""
    result = prompt_of(prompt)
    assert (result.status, result.error.kind, result.attempts) == ("failed", "configuration", 1)
    assert "surrogate" in result.error.message


def test_what_cannot_be_copied_in_the_context_is_named():
    import threading

    task = ParallelTask("t", run=lambda ctx: 1, context={"lock": threading.Lock()})
    result = ParallelAgentRunner(progress=False).run([task])["t"]
    assert result.error.kind == "configuration"
    assert "resources=" in result.error.message
