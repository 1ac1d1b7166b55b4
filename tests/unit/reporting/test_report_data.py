"""What a report page holds, and that no text of a model can be more in it than text."""

import html.parser
import json
import os
import stat

import pytest

from ag2_parallel import ParallelTaskResult, RunResults, TaskError, TaskStatus
from ag2_parallel.reporting.allowance import embedded, fitted, level
from ag2_parallel.reporting.causes import causes, masked_message
from ag2_parallel.reporting.page import report_page
from ag2_parallel.reporting.private_file import write_private
from ag2_parallel.reporting.report_data import KINDS, MOST_TASKS, STATUSES, report_data
from made_up_run import made_up_run

NASTY = [
    "</script><script>document.title = 'owned'</script>",
    "<!--<script>",
    "]]>",
    "line\u2028separator\u2029and \x00 nul",
    "lone \ud800 surrogate \udfff here",
    "$data $script $title",
    "\u202eright to left",
]


def run_of(*results):
    return RunResults(results, run_id="r").to_dict()


def result(index=0, status=TaskStatus.SUCCEEDED, **fields):
    return ParallelTaskResult(**{"name": f"task {index}", "index": index, "status": status} | fields)


class Elements(html.parser.HTMLParser):
    """The elements of a page, and what stands in its scripts."""

    def __init__(self):
        super().__init__()
        self.tags = []
        self.scripts = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script" and self.scripts:
            self.scripts[-1] += data


def parsed(page):
    elements = Elements()
    elements.feed(page.decode())
    return elements


@pytest.mark.parametrize("text", NASTY)
def test_whatever_a_text_holds_it_stays_a_text(text):
    written = embedded({"text": text})
    assert json.loads(written) == {"text": text}
    assert not set("<>&\u2028\u2029") & set(written)
    written.encode()


def test_nasty_texts_everywhere_add_no_element_to_the_page():
    text = " ".join(NASTY)
    error = TaskError(type=text, message=text, traceback=text, agent=text, tool=text)
    nasty = result(
        name=text, status=TaskStatus.FAILED, error=error, output={text: text}, group=text,
        chat_history=[{"name": text, "content": text, "tool_calls": [{"function": {"name": text, "arguments": text}}]}],
    )  # fmt: skip
    page = parsed(report_page(RunResults([nasty], run_id=text).to_dict()))
    harmless = parsed(report_page(RunResults([result()], run_id="r").to_dict()))
    assert page.tags == harmless.tags
    data = json.loads(page.scripts[0])
    assert data["tasks"][0]["n"] == text
    assert [message[2] for message in data["tasks"][0]["m"] if message[0] == "said"] == [text]
    assert page.scripts[1] == harmless.scripts[1]


def test_all_of_a_small_run_is_there():
    run = made_up_run(6)
    data = report_data(run.to_dict())
    assert data["counts"] == [5, 1, 0, 0, 0]
    assert [task["n"] for task in data["tasks"]] == list(run)
    for task, full in zip(data["tasks"], run.values(), strict=True):
        assert len(task["x"]) == 5 * len(full.trace)
        assert task["y"] == 0
        assert [m[2] for m in task["m"] if m[0] == "said"] == [message["content"] for message in full.chat_history]
        assert task["u"][:2] == [full.usage.prompt_tokens, full.usage.completion_tokens]
        first = full.trace[0]
        kind, label, _, start, length = task["x"][:5]
        assert (KINDS[kind], data["words"][label]) == (first.kind, first.label)
        assert (start, length) == (
            pytest.approx(first.start * 1000, abs=0.1),
            pytest.approx(first.duration * 1000, abs=0.1),
        )


def test_a_page_of_a_thousand_talkative_tasks_is_under_5_mb():
    run = made_up_run(1000, messages=12, words_a_message=400)
    assert len(json.dumps(run.to_dict())) > 25_000_000
    assert len(report_page(run.to_dict())) < 5_000_000


def test_a_long_text_is_cut_and_says_how_much_is_missing():
    long, short = "x" * 50_000, "y" * 100
    data = report_data(run_of(result(chat_history=[{"name": "a", "content": long}, {"name": "a", "content": short}])))
    long_cut, whole = [message[2] for message in data["tasks"][0]["m"]]
    assert long_cut.endswith("[… 30,000 more characters are in the results]")
    assert whole == short


def test_who_needs_little_room_leaves_it_to_others():
    assert level([10, 10, 100], 60) == 40
    assert level([10, 20], 100) == 20
    assert level([], 100) == 0
    assert sum(min(need, level([7, 900, 30, 500], 400)) for need in [7, 900, 30, 500]) <= 400


def test_texts_within_an_allowance_keep_the_first_ones():
    first, second, third = fitted(["a" * 50, "b" * 100, "c" * 10], 100)
    assert first == "a" * 50
    assert second.startswith("b" * 30)
    assert "more characters" in second
    assert third.startswith("\n[… 10 more")


def test_of_a_huge_run_those_that_failed_are_shown():
    many = [
        result(n, TaskStatus.FAILED if n == MOST_TASKS + 5 else TaskStatus.SUCCEEDED) for n in range(MOST_TASKS + 10)
    ]
    data = report_data(run_of(*many))
    assert data["total"] == MOST_TASKS + 10
    assert len(data["tasks"]) == MOST_TASKS
    assert data["tasks"][-1]["s"] == STATUSES.index("failed")


def test_a_run_without_tasks_or_figures_has_a_page():
    assert parsed(report_page(RunResults([], run_id="empty").to_dict())).tags
    odd = result(usage=made_up_run(1)[0].usage, duration=float("nan"), output=float("inf"))
    json.loads(parsed(report_page(run_of(odd))).scripts[0])


def test_failures_of_one_cause_stand_together():
    def failed(index, message, kind="tool"):
        return result(index, TaskStatus.FAILED, error=TaskError(type="E", message=message, kind=kind)).to_dict()

    found = causes([
        failed(0, 'task "task 0": order 17 of 3f2504e0-4f89-11d3-9a0c-0305e82c3301 is gone\nmore'),
        failed(1, 'task "task 1": order 4,711 of 00000000-4f89-11d3-9a0c-0305e82c3302 is gone'),
        failed(2, "no connection", kind="connection"),
        result(3).to_dict(),
        result(4, TaskStatus.SKIPPED, stop_reason="dependency").to_dict(),
    ])  # fmt: skip
    assert [(c.status, c.kind, c.pattern, c.tasks) for c in found] == [
        ("failed", "tool", "task “…”: order # of … is gone", [0, 1]),
        ("failed", "connection", "no connection", [2]),
        ("skipped", "dependency", "", [4]),
    ]


def test_a_message_keeps_its_words():
    assert (
        masked_message("call call_aBc123dEf456GhI failed after 3.5 s at 0x7f3a", "t") == "call … failed after # s at …"
    )


def test_secrets_are_masked():
    key = "sk-live-abcdef1234567890"
    page = report_page(run_of(result(output=f"my key is {key}", chat_history=[{"name": "a", "content": key}])))
    assert key.encode() not in page


def test_a_file_is_private_and_whole(tmp_path):
    target = tmp_path / "run.html"
    target.write_text("old")
    target.chmod(0o644)
    write_private(target, b"new")
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["run.html"]
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: .*nowhere.$"):
        write_private(tmp_path / "nowhere" / "run.html", b"new")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_private(tmp_path / "folder", b"new")
    assert sorted(os.listdir(tmp_path)) == ["folder", "run.html"]


def test_pictures(tmp_path):
    run = made_up_run(6)
    assert run.timeline(tmp_path / "gantt.png").read_bytes().startswith(b"\x89PNG")
    svg = run.timeline(tmp_path / "gantt.svg").read_text()
    assert all(name in svg for name in run)
    assert stat.S_IMODE((tmp_path / "gantt.svg").stat().st_mode) == 0o600
    made_up_run(300).timeline(tmp_path / "many.svg")
    RunResults([], run_id="empty").timeline(tmp_path / "empty.svg")


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"use \.html, \.svg or \.png"):
        made_up_run(2).timeline(tmp_path / "run.pdf")
