"""The commands: parse, call, exit code."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it from the signature
from typing import TYPE_CHECKING, Annotated

import typer

from ag2_parallel.cli import exit_codes, journal_commands
from ag2_parallel.cli.doctor_command import doctor
from ag2_parallel.cli.frame import exit_code, say, speak_for
from ag2_parallel.cli.map_command import map_rows
from ag2_parallel.cli.resume_command import resume
from ag2_parallel.cli.run_command import run as run_files
from ag2_parallel.cli.schema_command import schema

if TYPE_CHECKING:
    from ag2_parallel.cli.termination import Termination

app = typer.Typer(
    name="ag2-parallel",
    help="Run AG2 agents and agent teams in parallel.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"ag2-parallel {version('ag2-parallel')}")
        raise typer.Exit


@app.callback()
def _program(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Run AG2 agents and agent teams in parallel."""


@app.command()
def demo(  # noqa: PLR0913 - typer reads the options from the signature
    *,
    framework: Annotated[str | None, typer.Option(help="classic or ag2; default: what is installed.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Ask this OpenAI-compatible server; goes with --model.")] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model at --base-url.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds the key for --base-url.")
    ] = None,
    real: Annotated[bool, typer.Option("--real", help="Start a real, very small model on this machine.")] = False,
    gguf: Annotated[Path | None, typer.Option(help="Another model file for --real.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=10_000, help="Tasks at once; default: all.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds for each task.")] = 900.0,
    out: Annotated[
        Path | None, typer.Option(help="New or empty folder for the reports; default: demo-output-<run id>.")
    ] = None,
    speed: Annotated[float, typer.Option(help="How much faster the scripted model answers.")] = 1.0,
    compare: Annotated[
        bool | None,
        typer.Option(
            "--compare/--no-compare", help="Also run one after another; default: where the answers are scripted."
        ),
    ] = None,
) -> None:
    """Five diagnostic teams on one invented patient case, at once and one after another.

    Needs no key and no network: an embedded server gives scripted answers, minutes scaled to seconds.
    Exit codes: 0 all succeeded, 1 some did not, 2 usage or configuration, 3 the run failed, 130 interrupted,
    143 terminated.
    """

    def run(termination: Termination) -> int:
        from ag2_parallel.cli.demo.demonstration import Demonstration
        from ag2_parallel.cli.demo.options import DemoOptions

        options = DemoOptions(
            framework=framework,
            base_url=base_url,
            model=model,
            api_key_env=api_key_env,
            real=real,
            gguf=gguf,
            workers=workers,
            timeout=timeout,
            out=out,
            speed=speed,
            compare=compare,
        )
        return Demonstration(options, say, termination).run()

    raise typer.Exit(exit_code(run))


@app.command()
def timeline(
    source: Annotated[Path, typer.Argument(help="A journal, or results: .json or .jsonl.", metavar="FILE")],
    run: Annotated[
        str | None, typer.Argument(help="The run, where there are several; default: the last one.", metavar="[RUN]")
    ] = None,
    *,
    out: Annotated[
        Path | None, typer.Option(help="File ending in .html, .svg or .png; default: FILE with the ending .html.")
    ] = None,
) -> None:
    """Make a page of a run that is over: what happened when, what failed and why, tokens, cost, transcripts.

    The page is one file that loads nothing from elsewhere. Pictures show the Gantt alone and need matplotlib.
    """

    def write(_termination: Termination) -> int:
        from ag2_parallel.cli.timeline import write_timeline

        write_timeline(source, run, out, say)
        return exit_codes.OK

    raise typer.Exit(exit_code(write))


app.command("run")(run_files)
app.command("map")(map_rows)
app.command()(resume)
app.command()(schema)
app.command()(doctor)
journal_commands.add_to(app, exit_code)
speak_for(app)
