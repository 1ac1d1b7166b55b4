"""The program's frame: help, version, usage errors, and what it loads for them."""

import importlib.metadata
import os
import signal
import subprocess
import sys

import pytest

from ag2_parallel.cli import exit_codes, main
from ag2_parallel.cli.frame import exit_code
from ag2_parallel.cli.termination import Termination
from ag2_parallel.cli.typed_options import as_typed
from ag2_parallel.errors import ConfigurationError, RunFailedError
from ag2_parallel.run_results import RunResults


def test_help_lists_the_commands_and_goes_to_standard_output(capsys):
    assert main(["--help"]) == exit_codes.OK
    out, err = capsys.readouterr()
    listed = {line.split()[0] for line in out.split("Commands:")[1].strip().splitlines() if line.strip()}
    assert {"demo", "run", "map", "schema", "doctor", "runs", "show", "export", "prune", "resume", "timeline"} <= listed
    assert err == ""


def test_version(capsys):
    assert main(["--version"]) == exit_codes.OK
    assert capsys.readouterr().out == f"ag2-parallel {importlib.metadata.version('ag2-parallel')}\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["start", "tasks.yaml"], "No such command 'start'"),
        (["run"], "Missing argument"),
        (["run", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
        (["run", "nowhere.toml"], "task files end in .yaml"),
        (["--nonsense"], "No such option"),
        (["demo", "--workers", "0"], "--workers"),
        (["demo", "--timeout", "soon"], "--timeout"),
        (["demo", "stray"], "unexpected extra argument"),
        (["demo", "--model", "m"], "--base-url and --model go together"),
        (["demo", "--timeout", "0"], "--timeout must be above 0"),
        (["demo", "--real", "--gguf", "/nowhere/model.gguf"], "/nowhere/model.gguf is not a file"),
    ],
)
def test_usage_errors_say_what_is_wrong_on_standard_error_and_exit_with_2(arguments, told, capsys):
    assert main(arguments) == exit_codes.USAGE
    out, err = capsys.readouterr()
    assert (out, told in err) == ("", True)


def test_without_arguments_it_shows_the_help_and_exits_with_2(capsys):
    assert main([]) == exit_codes.USAGE
    assert "Usage: ag2-parallel" in "".join(capsys.readouterr())


def test_help_loads_nothing_heavy():
    code = (
        "import sys\n"
        "from ag2_parallel.cli import main\n"
        "for command in ('demo', 'run', 'map', 'schema', 'doctor'):\n"
        "    assert main([command, '--help']) == 0\n"
        "heavy = {'autogen', 'ag2', 'aiohttp', 'httpx', 'openai', 'rich', 'jinja2', 'asyncio', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == "[]\n"


def test_the_module_runs_as_a_program():
    command = [sys.executable, "-m", "ag2_parallel", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.startswith("ag2-parallel ")


def raising(error):
    def command(_termination):
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (ConfigurationError("no such thing"), 2, "error: no such thing"),
        (RunFailedError("the source broke", RunResults([], run_id="r")), 3, "error: the source broke"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_become_a_message_and_anexit_code(error, code, told, capsys):
    assert exit_code(raising(error)) == code
    out, err = capsys.readouterr()
    assert (out, told in err) == ("", True)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ('with changed="keep" or backend="local"', "with --changed keep or --backend local"),
        ('handle_errors="ignore", run_id="my run"', "--on-error ignore, --run-id 'my run'"),
        ('human_input_mode="NEVER" in AG2', 'human_input_mode="NEVER" in AG2'),
    ],
)
def test_errors_name_options_as_one_types_them(message, told):
    from ag2_parallel.cli.commands import app

    assert as_typed(message, app) == told


def test_sigterm_interrupts_and_is_given_back(capsys):
    before = signal.getsignal(signal.SIGTERM)

    def command(_termination):
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("the signal comes first")

    assert exit_code(command) == exit_codes.TERMINATED
    assert "terminated" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is before


def test_termination_says_whether_the_signal_came():
    with Termination() as termination:
        assert not termination.received
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert termination.received
