"""``sidejudge tail``: the traces of a running monitor as they end."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypedDict, cast
from urllib.parse import urlencode

import click

from sidejudge.scoring.verdict.documents import TraceDocument

from .ask import ask_for, trace_line, url_option
from .errors import CommandError
from .settings import FiniteRange, own_name

EVERY_S = 1.0
_PAGE = 200
_REMEMBERED = 20_000
"""Most traces remembered as shown; they cover the period that is read again."""
_OVERLAP = timedelta(seconds=10)
"""Results are committed in no strict order of their times, so that a short period is requested again."""


@click.command()
@click.option("--service", help="Only traces of this service.")
@click.option("--reason", help="Only traces that ended so: scored, no_rubric, not_a_run, …")
@click.option("--rubric", callback=own_name, help="Only traces with a verdict by this rubric.")
@click.option("--state", type=click.Choice(["passed", "failed", "incomplete"]), help="Only with such a verdict.")
@click.option("-n", "latest", type=click.IntRange(0, 1000), default=10, show_default=True, help="Earlier ones first.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="json: one a line.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--seconds", type=FiniteRange(min=0), help="End by itself after this long.")
@url_option
def tail(  # noqa: PLR0917  # click passes options by name
    service: str | None, reason: str | None, rubric: str | None, state: str | None, latest: int, form: str,
    url: str, seconds: float | None, *, as_json: bool,
) -> int:  # fmt: skip
    """Follow the traces that end: how each ended, with its verdicts, or why it has none. Until Ctrl-C.

    It waits for a monitor that restarts, and shows the traces judged meanwhile.
    """
    asked = {name: value for name, value in (("service", service), ("reason", reason)) if value}
    until = None if seconds is None else time.monotonic() + seconds
    follow = Follow(lambda query: _ask(url, query), asked, latest)
    waiting = False
    while True:
        try:
            for trace in follow.more():
                if _wanted(trace, rubric, state):
                    _show(trace, as_json=as_json or form == "json")
            waiting = False
        except CommandError as error:
            if not follow.began:
                raise
            if not waiting:
                click.echo(f"{error.cause}; waiting for it", err=True)
            waiting = True
        if until is not None and time.monotonic() >= until:
            return 0
        time.sleep(EVERY_S if until is None else min(EVERY_S, max(0.0, until - time.monotonic())))


class TracesAnswer(TypedDict):
    """A page of ``/v1/traces``, the newest first."""

    traces: list[TraceDocument]
    next_cursor: str | None


class Follow:
    """Requests traces repeatedly, and yields each revision of each once, the oldest first.

    ``ask`` gets the query of ``/v1/traces`` and returns its answer.
    """

    def __init__(self, ask: Callable[[Mapping[str, str]], TracesAnswer], asked: Mapping[str, str], n: int) -> None:
        self._ask, self._asked, self._latest = ask, asked, n
        self._shown: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._since: datetime | None = None
        self.began = False

    def more(self) -> Iterator[TraceDocument]:
        """The traces that are new since the last call; on the first the latest ones."""
        found = self._read()
        if not self.began:
            self.began = True
            for trace in found[self._latest :]:
                self._shown[_key(trace)] = None
            found = found[: self._latest]
        for trace in reversed(found):
            if _key(trace) not in self._shown:
                self._shown[_key(trace)] = None
                yield trace
        while len(self._shown) > _REMEMBERED:
            self._shown.popitem(last=False)

    def _read(self) -> list[TraceDocument]:
        """The pages up to what was shown already, newest first; at first the latest, and what is requested again."""
        since = {} if self._since is None else {"since": (self._since - _OVERLAP).isoformat()}
        found: list[TraceDocument] = []
        cursor: dict[str, str] = {}
        while True:
            answer = self._ask({**self._asked, **since, "limit": str(_PAGE), **cursor})
            found += answer["traces"]
            if not answer["next_cursor"] or len(found) >= _REMEMBERED:
                break
            first_read = self._since is None and len(found) >= self._latest
            if first_read and found[0]["closed_ns"] - found[-1]["closed_ns"] > _OVERLAP.total_seconds() * 1e9:
                break
            cursor = {"cursor": answer["next_cursor"]}
        if found:
            self._since = datetime.fromtimestamp(found[0]["closed_ns"] / 1e9, UTC)
        elif self._since is None:
            self._since = datetime.now(UTC)
        return found


def _key(trace: TraceDocument) -> tuple[str, int]:
    return str(trace["trace_id"]), int(trace["revision"])


def _ask(url: str, query: Mapping[str, str]) -> TracesAnswer:
    return cast("TracesAnswer", ask_for(url, "/v1/traces", lambda body: "traces" in body, f"?{urlencode(query)}"))


def _wanted(trace: TraceDocument, rubric: str | None, state: str | None) -> bool:
    verdicts = [each for each in trace["verdicts"] if rubric is None or each["rubric"] == rubric]
    if rubric is None and state is None:
        return True
    passed = {"passed": True, "failed": False, "incomplete": None}
    return any(state is None or each["passed"] is passed[state] for each in verdicts)


def _show(trace: TraceDocument, *, as_json: bool) -> None:
    click.echo(json.dumps(trace, ensure_ascii=False) if as_json else trace_line(trace))
