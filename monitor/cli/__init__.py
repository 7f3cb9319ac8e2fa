"""The command ``sidejudge``. Commands are imported when they are called, so that ``--help`` is instant."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from .errors import CALL, DATA, CommandError

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Run": {
        "serve": ("serve:serve", "Run the monitor."),
        "demo": ("serve:demo", "Run the monitor with sample traffic."),
        "init": ("init:init", "Write a first configuration, from questions or from traces."),
        "check": ("check:check", "Validate a configuration, and show what is in force."),
        "doctor": ("check:doctor", "Examine this machine, this installation and what is reachable."),
    },
    "Look at a running monitor": {
        "status": ("status:status", "Show the status of each service."),
        "tail": ("tail:tail", "Follow traces as they end."),
        "explain": ("explain:explain", "Explain a trace, a metric or a rubric; list the last traces."),
        "compare": ("compare:compare", "Show whether it got worse: since a moment, or with a version."),
    },
    "Write rubrics and contracts": {
        "rubrics": ("rubrics:rubrics", "List, show and add ready rubrics."),
        "metrics": ("rubrics:metrics", "List every metric with its weight, bands and source."),
        "try": ("try_rubric:try_rubric", "Judge one recorded trace by one rubric, showing each step."),
        "try-judge": ("try_judge:try_judge", "Ask the judge models questions with known answers."),
        "learn": ("learn:learn", "Learn scenarios from good runs."),
        "plan": ("plan:plan", "Show what alerts will do at your traffic."),
        "simulate": ("simulate:simulate", "Show which alerts the past would have raised."),
        "schema": ("help:schema", "Print a JSON Schema: configuration, case, scenario, verdict."),
    },
    "Judge without a server": {
        "score": ("score:score", "Judge a file of cases or recorded traces; write verdicts."),
        "test": ("test:test", "Put a test set to an agent and judge its answers."),
        "testcase": ("testcase:testcase", "Write a trace that failed as a test for such a set."),
        "backfill": ("backfill:backfill", "Judge traces that are in Langfuse already."),
        "inspect": ("inspect:inspect", "Show what is read from recorded OTLP, without judging."),
    },
    "Use verdicts that are written": {
        "gate": ("gate:gate", "Pass or fail a release: hold verdicts against its gates."),
        "scorecard": ("scorecard:scorecard", "Rank models: final scores, cost, every metric."),
        "calibrate": ("calibrate:calibrate", "Compare verdicts with the labels that people gave."),
    },
    "Operate": {
        "export": ("export:export", "Write rules and dashboards; send scores again."),
        "forget": ("store:forget", "Erase what is held of traces, a user or a session."),
        "langfuse": ("langfuse:langfuse", "Delete scores in Langfuse that are not asked for any more."),
        "store": ("store:store", "Save what can be read of a damaged store."),
        "fleet": ("fleet:fleet", "Look after the database that the monitors of a fleet share."),
    },
    "Help": {
        "help": ("help:help_", "Explain a command, a key or a page; search the documentation."),
        "completion": ("help:completion", "Print the completion script of bash, zsh or fish."),
    },
}
"""Purpose → name → where the command lies here, and its line in the overview, which is shown without importing it."""
COMMANDS: dict[str, tuple[str, str]] = {
    name: (f"{__name__}.{where}", line) for group in GROUPS.values() for name, (where, line) in group.items()
}


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
        widest = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), line) for name, (_, line) in group.items()])

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        """Run, and exit with 0 (done and good), 1 (something is wrong with the data) or 2 (with the call)."""
        given = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in given
        given = [argument for argument in given if argument != "--debug"]  # it may stand before or after the command
        # It has one name, however it is started, and it alone decides how it ends.
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        colour = False if plain else None  # None: on a terminal
        extra |= {"prog_name": "sidejudge", "standalone_mode": False, "color": colour}
        _open_what_is_closed()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # what another locale has no character for
        try:
            result = super().main(given, **extra)
        except Exception as error:
            if debug:
                raise
            code = _report(error, given, colour)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            code = 130
        else:
            code = result if isinstance(result, int) else 0
        _let_go_of_output()
        sys.exit(code)


def _open_what_is_closed() -> None:
    """Standard streams that the caller closed lead nowhere; their numbers would else be those of the next files."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # to the end


def _let_go_of_output() -> None:
    """Drop what could not be written: Python tries it again at its end, and ends with a code of its own."""
    if not isinstance(sys.stdout, io.TextIOWrapper):  # a caller in Python may catch it
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_REMEDIES: Final = {
    errno.EMFILE: "allow this process more open files (ulimit -n)",
    errno.ENFILE: "allow this machine more open files",
    errno.ENOSPC: "free space on that volume",
    errno.EPROTONOSUPPORT: "give a proxy as http://HOST:PORT, and names without brackets in NO_PROXY",
}
"""Of errors of the system that the path and its permissions have no part in."""


def _report(error: Exception, given: Sequence[str], colour: bool | None) -> int:  # noqa: FBT001  # click's own meaning
    """Write cause and remedy, and return the exit code; ``given`` is the call."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return CALL
    if isinstance(error, CommandError):
        cause, remedy, code = error.cause, error.remedy, error.code
    elif isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        path = (
            context.command_path
            if context is not None
            else " ".join(["sidejudge", *(word for word in given[:1] if word in COMMANDS)])
        )
        cause, remedy, code = " ".join(error.format_message().split()).rstrip("."), f"see '{path} --help'", CALL
    elif isinstance(error, click.Abort):
        cause, remedy, code = "interrupted", "call it again", 130
    elif isinstance(error, OSError):
        what = f"{error.filename}: " if error.filename else ""
        remedy = _REMEDIES.get(error.errno or 0, "check the path and the permissions")
        cause, code = f"{what}{error.strerror or error}", CALL
    else:
        cause = f"unexpected {type(error).__name__}: {error}"
        remedy, code = "this is a bug; call it again with --debug and report what it shows", DATA
    for line in cause.splitlines() or [""]:
        click.echo(f"{click.style('error:', fg='red')} {line}", err=True, color=colour)
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
def main(debug: bool) -> None:  # noqa: FBT001  # taken before parsing, because parsing can fail as well
    """Judge sampled traces of an LLM application: scores, metrics, status.

    Exit codes: 0 done and good, 1 done and something is wrong with the data, 2 the call or the configuration is wrong.
    'status' also ends with 3 (critical) and 4 (too little data). 130: interrupted.
    """
