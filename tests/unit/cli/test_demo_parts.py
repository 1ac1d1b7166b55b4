"""The parts of the demonstration: options, case, scripted answers, figures, reports."""

import asyncio
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from agents import INSTALLED

from ag2_parallel.cli.demo.figures import figures, span
from ag2_parallel.cli.demo.lines import agents_of, chosen
from ag2_parallel.cli.demo.models import DemoModel, open_model
from ag2_parallel.cli.demo.options import DemoOptions
from ag2_parallel.cli.demo.reports import make_folder, report, write_reports
from ag2_parallel.cli.demo.scripted import LABEL, SECONDS_A_MINUTE, ScriptedAnswers
from ag2_parallel.cli.demo.shortfall import shortfall
from ag2_parallel.cli.demo.table import figure_lines, usage_line
from ag2_parallel.cli.demo.teams import ASSESSMENT, DISCLAIMER, ROLES, read_case
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.results import ParallelTaskResult, TaskError, TaskStatus
from ag2_parallel.run_results import RunResults
from ag2_parallel.testing import ChatRequest
from ag2_parallel.usage import Usage

START = datetime(2026, 1, 1, tzinfo=UTC)
TEAMS = ["symptoms", "literature", "drug_interactions", "imaging", "treatment"]


def results(times):
    """Results of tasks that ran from one second to another."""
    return RunResults(
        [
            ParallelTaskResult(
                name=name,
                index=index,
                status=TaskStatus.SUCCEEDED,
                started_at=START + timedelta(seconds=begin),
                finished_at=START + timedelta(seconds=end),
                duration=end - begin,
            )
            for index, (name, (begin, end)) in enumerate(times.items())
        ],
        run_id="r",
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"base_url": "http://host"}, "go together"),
        ({"model": "m"}, "go together"),
        ({"api_key_env": "KEY"}, "--api-key-env goes with --base-url"),
        ({"base_url": "http://host", "model": "m", "real": True}, "--real starts a model of its own"),
        ({"gguf": Path("model.gguf")}, "--gguf goes with --real"),
        ({"base_url": "file:///etc", "model": "m"}, "--base-url must begin with http"),
        ({"base_url": "http://[", "model": "m"}, "--base-url must begin with http"),
        ({"speed": 0}, "--speed must be a number above 0"),
        ({"speed": float("nan")}, "--speed must be a number above 0"),
        ({"speed": 2, "real": True}, "--speed is for the scripted answers alone"),
        ({"out": Path(__file__)}, "is not a folder"),
        ({"out": Path(__file__).parent}, "is not empty; name a new or an empty one"),
        ({"out": Path("x" * 300)}, "cannot be read: File name too long"),
        ({"timeout": 0}, "--timeout must be above 0 and at most 31536000 seconds"),
        ({"timeout": float("nan")}, "--timeout must be above 0"),
    ],
)
def test_options_that_do_not_go_together_are_refused(given, problem):
    with pytest.raises(ConfigurationError, match=problem.replace("[", r"\[")):
        DemoOptions(**given)


def test_it_compares_by_default_where_the_answers_are_scripted():
    assert DemoOptions().compares
    assert not DemoOptions(compare=False).compares
    assert not DemoOptions(real=True).compares
    assert DemoOptions(real=True, compare=True).compares


def test_a_key_that_is_not_in_the_environment_is_a_configuration_error():
    options = DemoOptions(base_url="http://host/v1", model="m", api_key_env="AG2_PARALLEL_NO_SUCH_KEY")
    with pytest.raises(ConfigurationError, match="AG2_PARALLEL_NO_SUCH_KEY is not set"), open_model(options, None):
        pass


@pytest.mark.parametrize("framework", INSTALLED)
def test_the_case_has_the_five_teams_with_four_roles_each_and_says_that_it_is_invented(framework):
    case = read_case(brief=False)
    assert [team.name for team in case.teams] == TEAMS
    assert all(list(team.answers) == list(ROLES) for team in case.teams)
    assert "The patient is invented. Nothing here is medical advice." in case.text
    tasks = case.tasks(agents_of(framework, DemoModel({"config_list": [{"model": "m"}]}, "told")))
    assert [task.name for task in tasks] == [*TEAMS, ASSESSMENT]
    assert tasks[-1].depends_on == TEAMS


def test_a_line_that_is_not_there_is_refused():
    assert chosen(None) == INSTALLED[0]
    assert chosen(INSTALLED[-1]) == INSTALLED[-1]
    with pytest.raises(ConfigurationError, match="--framework: ag1 is none of classic, ag2"):
        chosen("ag1")


def test_small_models_are_told_the_first_section_alone():
    brief, whole = read_case(brief=True), read_case(brief=False)
    assert brief.told in " ".join(whole.text.split("\n\n")) or brief.told in whole.text
    assert len(brief.told) < 600 < len(whole.told)
    assert "clarithromycin" in brief.told


def answer(script, system_message):
    request = ChatRequest({"messages": [{"role": "system", "content": system_message}]})
    return asyncio.run(script.answer(request))


def test_every_agent_has_a_labelled_answer_and_a_team_takes_its_minutes():
    case = read_case(brief=False)
    script = ScriptedAnswers(case, speed=2)
    for team in case.teams:
        answers = [answer(script, case.system_message(team, role)) for role in ROLES]
        assert all(each.text.startswith(f"{LABEL} ") and len(each.text) > 150 for each in answers)
        assert sum(each.latency for each in answers) == pytest.approx(team.minutes * SECONDS_A_MINUTE / 2)
    assert answer(script, case.assessor_message).text.startswith(f"{LABEL} Diagnosis")
    assert answer(script, "someone else").text == f"{LABEL} No answer is written for this agent."


def test_figures_are_measured_the_same_way_for_both_runs():
    side = results({"a": (1, 4), "b": (1, 5), ASSESSMENT: (5, 5.5)})
    alone = results({"a": (10, 13), "b": (13, 17), ASSESSMENT: (17, 17.5)})
    found = figures(side, alone)
    assert (found.parallel, found.one_by_one) == (4.5, 7.5)
    assert (found.longest_name, found.longest, found.bound, found.over_bound) == ("b", 4, 4.5, 1.0)
    assert found.reduction == pytest.approx(40)


def test_without_a_second_run_the_time_one_after_another_is_an_estimate_or_unknown():
    found = figures(results({"a": (0, 3), "b": (0, 4), ASSESSMENT: (4, 5)}), None)
    lines = figure_lines(found, longest_title="B", shares_processor=False)
    assert lines[0].startswith("one after another:  about 8.00 s (sum of the tasks' times")
    assert lines[2] == "reduction:          about 37.5 %"
    lines = figure_lines(found, longest_title="B", shares_processor=True)
    assert lines[0] == "one after another:  not measured; --compare measures it"
    assert lines[2] == "reduction:          not measured"


def test_the_cost_is_a_figure_or_unknown_or_said_to_be_none():
    assert usage_line(Usage(cost=None), scripted=False).endswith("in 0 model calls; cost: unknown")
    assert usage_line(Usage(cost=0.25), scripted=False).endswith("; cost: 0.2500 US dollars")
    assert usage_line(Usage(cost=0.0), scripted=True).endswith("; no cost: scripted answers")


def ended(**kinds):
    """Results of tasks that failed with an error of a kind; None: that succeeded."""
    return RunResults(
        [
            ParallelTaskResult(
                name=name,
                index=index,
                status=TaskStatus.FAILED if kind else TaskStatus.SUCCEEDED,
                error=TaskError(type="Error", message="no", kind=kind) if kind else None,
            )
            for index, (name, kind) in enumerate(kinds.items())
        ],
        run_id="r",
    )


GOOD = ended(a=None, b=None, assessment=None)
UNREACHED = ended(a="connection", b="connection", assessment="stopped")


@pytest.mark.parametrize(
    ("side_by_side", "one_by_one", "address", "told"),
    [
        (GOOD, None, None, None),
        (GOOD, GOOD, "http://host", None),
        (UNREACHED, None, "http://host", "no team reached the server at http://host; is it running?"),
        (UNREACHED, None, None, "3 of 3 tasks did not succeed: no comparison"),
        (
            ended(a="connection", b=None, assessment="stopped"),
            None,
            "http://host",
            "2 of 3 tasks did not succeed: no comparison",
        ),
        (
            GOOD,
            ended(a=None, b=None, assessment="timeout"),
            None,
            "1 of 3 tasks did not succeed one after another: no comparison",
        ),
    ],
)
def test_what_went_wrong_is_said_in_a_line(side_by_side, one_by_one, address, told):
    assert shortfall(side_by_side, one_by_one, address) == told


def test_a_run_in_which_nothing_started_took_no_time():
    skipped = RunResults(
        [ParallelTaskResult(name=n, index=i, status=TaskStatus.SKIPPED) for i, n in enumerate(("a", ASSESSMENT))],
        run_id="r",
    )
    found = figures(skipped, None)
    assert (span(skipped), found.reduction, found.over_bound) == (0.0, 0.0, 1.0)


def test_a_report_of_a_task_that_failed_keeps_what_was_said():
    failed = ParallelTaskResult(
        name="imaging",
        index=0,
        status=TaskStatus.FAILED,
        stop_reason="error",
        error=TaskError(type="RateLimitError", message="slow down"),
        chat_history=[{"role": "user", "content": "What is on the images?"}, {"name": "coordinator", "content": "CT"}],
    )
    text = report("Imaging", failed, "Nobody was asked.")
    assert f"{DISCLAIMER} Nobody was asked." in text
    assert "- status: failed (error)" in text
    assert "- error: RateLimitError: slow down" in text
    assert "None: the task did not get that far." in text
    assert "### user\n\nWhat is on the images?\n\n### coordinator\n\nCT\n" in text


def test_reports_are_for_their_owner_alone(tmp_path):
    folder = tmp_path / "new" / "reports"
    make_folder(folder)
    write_reports(folder, read_case(brief=False), results({"symptoms": (0, 1)}), "Nobody was asked.")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {
        "case.md": 0o600,
        "symptoms.md": 0o600,
    }


def test_a_place_that_cannot_be_written_is_a_configuration_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot be made"):
        make_folder(tmp_path / "file" / "reports")
    (tmp_path / "case.md").mkdir()
    with pytest.raises(ConfigurationError, match=r"case\.md cannot be written"):
        write_reports(tmp_path, read_case(brief=False), results({}), "Nobody was asked.")
