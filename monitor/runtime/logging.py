"""Structured logs: one JSON object a line, or readable text on a terminal. Contents of traces are never logged.

Of a trace there is one debug line, and a warning where something keeps traces of a service from their verdicts.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
import time
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Literal, TypeAlias

import orjson

from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, own
from sidejudge.scoring.result.result import Failed
from sidejudge.scoring.status.service_status import UNKNOWN_SERVICE
from sidejudge.scoring.trace.time_units import MINUTE_NS

_STANDARD = frozenset(vars(logging.makeLogRecord({})))
_ExceptionInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
_CHAIN: Final = 5
"""Exceptions of a chain that are shown."""


_MOST: Final = 30
_WITHIN_S: Final = 60.0
"""Warnings that one place of the program may write within so many seconds: strangers cause some, and retries others."""


class _Bound(logging.Filter):
    """Leaves out warnings of a place that has written many; its next one afterwards has their number (``left_out``)."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[tuple[str, int], tuple[float, int]] = {}
        """By file and line: since when, and how many were to be written."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        now_s, place = time.monotonic(), (record.pathname, record.lineno)
        since_s, count = self._places.get(place, (now_s, 0))
        if now_s - since_s >= _WITHIN_S:
            if count > _MOST:
                vars(record)["left_out"] = count - _MOST
            since_s, count = now_s, 0
        self._places[place] = (since_s, count + 1)
        return count < _MOST


class _WithoutContents(logging.Formatter):
    """Shows of an exception where it came from and its class: its message may quote a trace.

    Messages of the operating system and of SQLite are shown: they name files and addresses.
    """

    def formatException(self, ei: _ExceptionInfo) -> str:  # noqa: N802  # the name that logging calls
        error, parts = ei[1], list[str]()
        while error is not None and len(parts) < _CHAIN:
            message = f": {error}" if isinstance(error, OSError | sqlite3.Error) else ""
            parts.append("".join(traceback.format_tb(error.__traceback__)) + type(error).__name__ + message)
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\n\nduring or because of:\n\n".join(parts)


class JsonFormatter(_WithoutContents):
    """``{"at", "level", "logger", "event", …fields}``: what a call passes in ``extra`` becomes a field."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        except TypeError:  # whole numbers beyond 64 bits, halves of surrogate pairs: json can write what orjson refuses
            return json.dumps(line, default=str)


class TextFormatter(_WithoutContents):
    """``12:00:01 warning sidejudge.store event key=value``."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        fields = "".join(f" {name}={value!r}" for name, value in _fields(record).items())
        text = f"{at} {record.levelname.lower():7} {record.name} {record.getMessage()}{fields}"
        return text + ("\n" + self.formatException(record.exc_info) if record.exc_info else "")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD and name != "color_message"}


def set_up(level: str, form: Literal["json", "text", "auto"]) -> None:
    """Send the logs of ``sidejudge`` and of its server to standard error. ``auto`` is text on a terminal, else JSON."""
    text = form == "text" or (form == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter() if text else JsonFormatter())
    handler.addFilter(_Bound())
    for name in ("sidejudge", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper() if name == "sidejudge" else logging.WARNING)


log = logging.getLogger("sidejudge.traces")

EVERY_NS: Final = 10 * MINUTE_NS
"""At most one warning in this time for each service and cause: a judge that fails fails for every trace."""
_SERVICES: Final = 200
"""Services that are warned of separately; names come from outside."""
_NAME: Final = 200

_UNNAMED: Final = "; set OTEL_SERVICE_NAME in the application, so that its traces carry its name"


class TraceLog:
    """``committed`` is a listener of the commit. Contents of traces are never logged."""

    def __init__(self) -> None:
        self._warned: dict[tuple[str, EndReason], int] = {}

    def committed(self, result: TraceResult) -> None:
        """Log how a trace ended."""
        service = label(result.service, _NAME) if result.service else UNKNOWN_SERVICE
        trace = {"trace_id": result.trace_id.hex(), "service": service}
        if log.isEnabledFor(logging.DEBUG):
            outcome = {verdict.rubric: verdict.passed for verdict in result.verdicts}
            log.debug(
                "trace ended",
                extra={
                    **trace, "reason": result.reason.value, "completion": result.completion,
                    "revision": result.revision, "spans": result.details.get("spans"), "passed": outcome,
                },
            )  # fmt: skip
        unnamed = _UNNAMED if service.startswith(UNKNOWN_SERVICE) else ""
        if result.reason is EndReason.NO_RUBRIC and self._due(service, result):
            remedy = f"add a route for this service; 'sidejudge explain {trace['trace_id']}' shows why none matched"
            log.warning("no route selects traces of this service", extra={**trace, "remedy": remedy + unnamed})
        elif (cause := _judge_failure(result)) and self._due(service, result):
            remedy = "see evaluators.judge and 'sidejudge doctor'; these verdicts are incomplete"
            log.warning("a judge failed", extra={**trace, "cause": cause, "remedy": remedy})

    def _due(self, service: str, result: TraceResult) -> bool:
        key = (service, EndReason.NO_RUBRIC if result.reason is EndReason.NO_RUBRIC else EndReason.JUDGE_FAILED)
        before = self._warned.get(key)
        if before is not None and 0 <= result.ended_ns - before < EVERY_NS:
            return False
        if before is None and len(self._warned) >= _SERVICES:
            return False
        self._warned[key] = result.ended_ns
        return True


def _judge_failure(result: TraceResult) -> str | None:
    """The first metric without a judge's answer, and why, without quoted contents."""
    for verdict in result.changed:
        for score in verdict.scores:
            if isinstance(score.result, Failed):
                where = own(f"{verdict.rubric}.{score.metric}")
                return Reason("{where}: {why}", where=where, why=score.result.reason).shown()
    return None
