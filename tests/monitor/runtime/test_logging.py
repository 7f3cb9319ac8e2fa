"""Logs: a line is a record, whatever is in it."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.monitor.runtime.logging import JsonFormatter, TextFormatter, set_up

NASTY = "a\nb\r\x00\x1b[31m\t\"'\\\u2028\u0085\ud800é"


def record(message="event", *args, level=logging.WARNING, exc_info=None, **fields) -> logging.LogRecord:
    made = logging.LogRecord("sidejudge.test", level, __file__, 1, message, args, exc_info)
    vars(made).update(fields)
    return made


def raised() -> tuple:
    try:
        int(NASTY)
    except ValueError:
        return sys.exc_info()
    raise AssertionError


@pytest.fixture
def loggers_restored():
    names = ("sidejudge", "uvicorn")
    held = {name: dict(vars(logging.getLogger(name))) for name in names}
    yield
    for name, state in held.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = state["handlers"], state["propagate"]
        logger.setLevel(state["level"])


def test_a_record_is_an_object_with_time_level_logger_event_and_its_fields():
    made = record("saw %d", 3, count=3, path=Path("/x"))
    reported = json.loads(JsonFormatter().format(made))
    at = datetime.fromtimestamp(made.created, UTC).isoformat(timespec="milliseconds")
    assert reported == {
        "at": at, "level": "warning", "logger": "sidejudge.test", "event": "saw 3", "count": 3, "path": "/x",
    }  # fmt: skip


def test_a_record_is_one_line_whatever_is_in_it():
    line = JsonFormatter().format(record(NASTY, exc_info=raised(), field=NASTY, nested={NASTY: [NASTY]}))
    assert not set("\n\r\x00\x1b") & set(line)
    reported = json.loads(line)
    assert (reported["event"], reported["field"], reported["nested"]) == (NASTY, NASTY, {NASTY: [NASTY]})
    assert "test_logging.py" in reported["exception"]
    assert reported["exception"].endswith("ValueError")


ANY = st.recursive(
    st.none() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(), ANY)
def test_nothing_that_is_logged_can_break_the_log(message, value):
    for formatter in (JsonFormatter(), TextFormatter()):
        line = formatter.format(record(message.replace("%", "%%"), field=value))
        assert isinstance(line, str)
    assert "\n" not in JsonFormatter().format(record(message.replace("%", "%%"), field=value))
    json.loads(JsonFormatter().format(record("x", field=value)))


def test_text_is_time_level_logger_event_and_quoted_fields():
    made = record("gone", level=logging.ERROR, path="a b\n", n=2, color_message="not a field")
    at = datetime.fromtimestamp(made.created, UTC).strftime("%H:%M:%S")
    assert TextFormatter().format(made) == f"{at} error   sidejudge.test gone path='a b\\n' n=2"


def test_text_shows_an_exception_below_its_line():
    first, *rest = TextFormatter().format(record("gone", exc_info=raised())).split("\n")
    assert first.endswith("sidejudge.test gone")
    assert "test_logging.py" in rest[0]
    assert rest[-1] == "ValueError"


@pytest.mark.usefixtures("loggers_restored")
def test_what_a_place_writes_is_bounded_and_what_was_left_out_is_counted(capsys, monkeypatch):
    now_s = 100.0
    monkeypatch.setattr("sidejudge.monitor.runtime.logging.time.monotonic", lambda: now_s)
    set_up("info", "json")
    server, other = logging.getLogger("uvicorn.error"), logging.getLogger("sidejudge.part")

    def garbage(times: int) -> None:
        for _ in range(times):
            server.error("a request failed")

    garbage(500)
    other.warning("another place")
    for _ in range(40):
        other.info("alert")
    now_s += 59.9
    garbage(1)
    now_s += 0.1
    garbage(500)
    now_s += 60
    garbage(1)
    now_s += 60
    garbage(1)
    lines = list(map(json.loads, capsys.readouterr().err.splitlines()))
    assert [line["event"] for line in lines[30:71]] == ["another place", *["alert"] * 40]
    failed = [line for line in lines if line["event"] == "a request failed"]
    assert len(failed) == 30 + 30 + 2
    assert [(n, line["left_out"]) for n, line in enumerate(failed) if "left_out" in line] == [(30, 471), (60, 470)]


@pytest.mark.parametrize(("form", "is_json"), [("json", True), ("auto", True), ("text", False)])
@pytest.mark.usefixtures("loggers_restored")
def test_logs_go_to_standard_error_from_the_level_on_in_the_form_that_was_asked_for(capsys, form, is_json):
    set_up("warning", form)
    logger = logging.getLogger("sidejudge.part")
    logger.info("too small")
    logger.warning("seen", extra={"n": 1})
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("{") is is_json
    assert "seen" in line


@pytest.mark.usefixtures("loggers_restored")
def test_setting_up_again_replaces_what_was_set_up_and_the_server_tells_only_of_trouble(capsys):
    set_up("debug", "json")
    set_up("debug", "json")
    logging.getLogger("sidejudge").debug("once")
    logging.getLogger("uvicorn.error").info("started")
    logging.getLogger("uvicorn.error").warning("trouble")
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert events == ["once", "trouble"]


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_of_an_exception_the_message_is_shown_only_where_it_cannot_quote(formatter):
    secret = "zq" + "canary"
    try:
        try:
            {}[secret]
        except KeyError as error:
            raise ValueError(secret) from error
    except ValueError:
        quoting = formatter.format(record(exc_info=sys.exc_info()))
    assert secret not in quoting
    assert "KeyError" in quoting
    assert "test_logging.py" in quoting
    try:
        Path("/no/such/file").read_text()
    except OSError:
        assert "/no/such/file" in formatter.format(record(exc_info=sys.exc_info()))
