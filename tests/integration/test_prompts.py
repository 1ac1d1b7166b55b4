"""Prompts: text, templates, messages and functions, rendered when the task starts."""

import pytest

from ag2_parallel import ConfigurationError, ParallelAgentRunner, ParallelTask, Template

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


def upstream_of(text, *depends_on, source=list):
    """What becomes of a prompt over other tasks, which are called draft and 2nd draft."""
    echo = {"run": lambda ctx: ctx.prompt}
    tasks = [ParallelTask("draft", "A", **echo), ParallelTask("2nd draft", "B", **echo)]
    report = ParallelTask("report", Template(text), depends_on=depends_on, **echo)
    return ParallelAgentRunner(progress=False).run(source([*tasks, report]))["report"]


@pytest.mark.parametrize(
    ("text", "depends_on", "told"),
    [
        ("{{ upstream.drft.output }}", ["draft"], "needs upstream.drft, and it depends on draft; did you mean upstream.draft?"),
        ("{{ upstream.draft.output }}", [], 'needs upstream.draft, and depends_on does not name "draft"; add it there'),
        ("{{ upstream.x }}", [], "needs upstream.x, and it depends on no task; name them in depends_on"),
        ("{% if upstream['2nd drft'].ok %}x{% endif %}", ["2nd draft"], 'did you mean upstream["2nd draft"]?'),
        ("{% for turn in upstream.drft.chat_history %}{{ turn }}{% endfor %}", ["draft"], "needs upstream.drft"),
    ],
)  # fmt: skip
def test_a_name_that_is_no_dependency_is_found_before_anything_starts(text, depends_on, told):
    with pytest.raises(ConfigurationError) as caught:
        upstream_of(text, *depends_on)
    assert str(caught.value).startswith('task "report": its prompt needs upstream')
    assert told in str(caught.value)
    failed = upstream_of(text, *depends_on, source=iter)
    assert (failed.error.kind, told in failed.error.message, failed.attempts) == ("configuration", True, 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ upstream.draft.output }}{{ upstream['2nd draft'].output }}", "AB"),
        ("{% for name, result in upstream.items() %}{{ name }} {{ result.output }} {% endfor %}", "draft A 2nd draft B "),
        ("{{ upstream.get('first') or 'none' }}", "none"),
        ("{% if 'first' in upstream %}{{ upstream.first.output }}{% else %}none{% endif %}", "none"),
        ("{% if upstream.first is defined and upstream.first.ok %}yes{% else %}no{% endif %}", "no"),
        ("{{ upstream.first | default('none') }}", "none"),
        ("{% set first = upstream.first %}{{ first | default('none') }}", "none"),
        ("{% for upstream in [{'first': 'a'}] %}{{ upstream.first }}{% endfor %}", "a"),
        ("{# upstream.first #}{{ 'see upstream.first' }}", "see upstream.first"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("source", [list, iter])
def test_a_template_may_ask_first_what_there_is(text, said, source):
    assert upstream_of(text, "draft", "2nd draft", source=source).output == said


def test_a_name_that_turns_out_to_be_missing_is_told_with_those_there_are():
    failed = upstream_of("{% if metadata is none %}{{ upstream.first.output }}{% endif %}", "draft")
    assert "does not render: 'first' is not there; there are 'draft'" in failed.error.message
