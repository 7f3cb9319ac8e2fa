"""The command ``sidejudge``. Commands are imported when they are called, so that ``--help`` is instant."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from .errors import CALL, DATA, CommandError

COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("monitor.cli.serve:serve", "Run the monitor."),
    "init": ("monitor.cli.init:init", "Write a first configuration, from questions or from traces."),
    "demo": ("monitor.cli.demo:demo", "Run the monitor with sample traffic."),
    "inspect": ("monitor.cli.inspect:inspect", "Show what is seen in recorded OTLP."),
    "score": ("monitor.cli.score:score", "Score a file of cases."),
    "gate": ("monitor.cli.gate:gate", "Hold verdicts against the release gates."),
    "scorecard": ("monitor.cli.scorecard:scorecard", "Compare models: final scores, cost rank, every metric."),
    "test": ("monitor.cli.test:test", "Put a test set to an agent and judge its answers."),
    "testcase": ("monitor.cli.testcase:testcase", "Write a trace that failed as a test."),
    "calibrate": ("monitor.cli.calibrate:calibrate", "Compare verdicts with the labels that people gave."),
    "learn": ("monitor.cli.learn:learn", "Learn scenarios from good runs."),
    "backfill": ("monitor.cli.backfill:backfill", "Judge traces that are in Langfuse already."),
    "simulate": ("monitor.cli.simulate:simulate", "Show which alerts the past would have raised."),
    "explain": ("monitor.cli.explain:explain", "Explain a trace, a metric or a rubric; list the last traces."),
    "tail": ("monitor.cli.tail:tail", "Follow the traces of a running monitor as they end."),
    "forget": ("monitor.cli.forget:forget", "Erase what is held of traces, a user or a session."),
    "status": ("monitor.cli.status:status", "Show the status of a running monitor."),
    "compare": ("monitor.cli.compare:compare", "Show whether it got worse: since a moment, or with a version."),
    "export": ("monitor.cli.export:export", "Write rules and dashboards; send scores again."),
    "langfuse": ("monitor.cli.langfuse:langfuse", "Delete scores in Langfuse that are not asked for any more."),
    "fleet": ("monitor.cli.fleet:fleet", "Look after the database that the monitors of a fleet share."),
    "metrics": ("monitor.cli.metrics:metrics", "List every metric with its weight, bands and source."),
    "try": ("monitor.cli.try_rubric:try_rubric", "Judge one trace by one rubric, showing each step."),
    "try-judge": ("monitor.cli.try_judge:try_judge", "Ask the judges questions with known answers."),
    "rubrics": ("monitor.cli.rubrics:rubrics", "List, show and add ready rubrics."),
    "plan": ("monitor.cli.plan:plan", "Show what alerts will do at your traffic."),
    "check": ("monitor.cli.check:check", "Validate a configuration and show what is in force."),
    "doctor": ("monitor.cli.doctor:doctor", "Examine this machine and this installation."),
    "completion": ("monitor.cli.completion:completion", "Print the completion script of bash, zsh or fish."),
    "schema": (
        "monitor.cli.schema:schema",
        "Print a JSON Schema: configuration, case, scenario, verdict.",
    ),
}
"""Name → where the command lies, and its line in the overview, which is shown without importing it."""


class LazyGroup(click.Group):
    """A group whose commands are imported when called, and whose errors are two lines on standard error."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}:{name} is not a command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from difflib import get_close_matches  # only needed on the way out

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            meant = f"did you mean '{near[0]}'? " if near else ""
            raise CommandError(f"there is no command {args[0]!r}", f"{meant}'sidejudge --help' lists all")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        """Run, and exit with 0 (done and good), 1 (something is wrong with the data) or 2 (with the call)."""
        given = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in given
        given = [argument for argument in given if argument != "--debug"]  # it may stand before or after the command
        # It has one name, however it is started, and it alone decides how it ends.
        extra |= {"prog_name": "sidejudge", "standalone_mode": False}
        try:
            result = super().main(given, **extra)
        except Exception as error:
            if debug:
                raise
            code = _report(error)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            code = 130
        else:
            code = result if isinstance(result, int) else 0
        sys.exit(code)


def _report(error: Exception) -> int:
    """Write cause and remedy, and return the exit code."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return CALL
    if isinstance(error, CommandError):
        cause, remedy, code = error.cause, error.remedy, error.code
    elif isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "sidejudge"
        cause, remedy, code = error.format_message().rstrip("."), f"see '{path} --help'", CALL
    elif isinstance(error, click.Abort):
        cause, remedy, code = "interrupted", "call it again", 130
    elif isinstance(error, BrokenPipeError):
        # The reader (head, a pager) has seen enough. Python would complain again when it flushes at exit.
        sys.stdout = None
        return 0
    elif isinstance(error, OSError):
        what = f"{error.filename}: " if error.filename else ""
        cause, remedy, code = f"{what}{error.strerror or error}", "check the path and the permissions", CALL
    else:
        cause = f"unexpected {type(error).__name__}: {error}"
        remedy, code = "this is a bug; call it again with --debug and report what it shows", DATA
    for line in cause.splitlines() or [""]:
        click.echo(f"{click.style('error:', fg='red')} {line}", err=True)
    click.echo(f"remedy: {remedy}", err=True)
    return code


def _version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:  # noqa: FBT001  # click's signature
    if wanted:
        from importlib.metadata import version  # reading the metadata takes longer than the rest

        click.echo(f"sidejudge {version('sidejudge')}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def main(debug: bool) -> None:  # noqa: FBT001, ARG001  # taken before parsing, because parsing can fail as well
    """Judge sampled traces of an LLM application: scores, metrics, status.

    Exit codes: 0 done and good, 1 done and something is wrong with the data, 2 the call or the configuration is wrong.
    'status' also ends with 3 (critical) and 4 (too little data). 130: interrupted.
    """
    from monitor.runtime.package_check import shadowed

    for name, folder in shadowed().items():
        raise CommandError(
            f"the package {name!r} is imported from {folder or 'nowhere'}, not from this installation",
            "start from another folder, or with 'python -P -m monitor'",
        )
