"""``--forks N``: one process collects the tests, and N forks of it run them, a file at a time.

Processes that start anew each collect all tests for themselves, which takes 20 s of CPU in each. A fork has what its
parent collected. What a file sets up once is set up once, and what lasts for the session once in each fork. A test
that is marked ``apart`` is handed out alone: several long ones of a file are played at once.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe, wait
from types import SimpleNamespace
from typing import Any, cast

import pytest
from _pytest.config import create_terminal_writer

SHORT_S = 0.005
"""A set-up or an end that takes less is not reported unless it fails: ``--durations`` leaves it out as well."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="run the tests in so many forks of this process")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    option = session.config.option
    if not option.forks or option.collectonly or session.testsfailed:
        return None
    files: dict[str, list[int]] = {}
    for number, item in enumerate(session.items):
        alone = item.get_closest_marker("apart") is not None
        files.setdefault(item.nodeid if alone else item.nodeid.partition("::")[0], []).append(number)
    Parent(session, deque(files.values())).run(min(option.forks, len(files)))
    return True


class Parent:
    """Hands out files, each as the numbers of its tests, and reports what the forks report."""

    def __init__(self, session: pytest.Session, files: deque[list[int]]) -> None:
        self._session = session
        self._files = files
        self._forks: dict[Connection, Fork] = {}
        self._started = 0

    def run(self, count: int) -> None:
        try:
            for _ in range(count):
                self._start()
            while self._forks:
                for pipe in wait(list(self._forks)):
                    self._hear(cast("Connection", pipe))
        finally:
            for pipe in self._forks:
                pipe.close()  # a fork that cannot report ends what it has set up, and itself
            for fork in self._forks.values():
                os.waitpid(fork.pid, 0)

    def _start(self) -> None:
        temporary = self._session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all
        sys.stdout.flush()
        ours, theirs = Pipe()
        self._started += 1
        pid = os.fork()
        if not pid:
            for pipe in (ours, *self._forks):
                pipe.close()
            Child(self._session, theirs).live(temporary / f"fork{self._started}")
        theirs.close()
        self._forks[ours] = Fork(pid)

    def _hear(self, pipe: Connection) -> None:
        fork = self._forks[pipe]
        what, reports = _received(pipe)
        for kind, given in reports:
            self._report(kind, given)
        if what == "gone":
            self._lose(pipe, fork)
        elif what == "idle":
            fork.left = list(self._files.popleft()) if self._files else []
            pipe.send(fork.left)
        elif what == "start":
            fork.running = fork.left.pop(0)
        else:
            fork.running = None
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _report(self, kind: str, given: Any) -> None:
        hook = self._session.config.hook
        if kind == "report":
            report = hook.pytest_report_from_serializable(config=self._session.config, data=given)
            hook.pytest_runtest_logreport(report=report)
        elif kind == "finish":
            hook.pytest_runtest_logfinish(**given)
        else:
            hook.pytest_warning_recorded.call_historic(kwargs=given)

    def _lose(self, pipe: Connection, fork: Fork) -> None:
        """A fork has ended. Where a test ended it, that test has failed, and another fork goes on behind it."""
        del self._forks[pipe]
        pipe.close()
        _, status = os.waitpid(fork.pid, 0)
        if fork.running is not None:
            self._fail(fork, f"the process that ran it ended: {os.waitstatus_to_exitcode(status)}")
            if fork.left:
                self._files.appendleft(fork.left)
            if self._files:
                self._start()

    def _fail(self, fork: Fork, why: str) -> None:
        item = self._session.items[fork.running or 0]
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        self._session.config.hook.pytest_runtest_logreport(report=report)


def _received(pipe: Connection) -> tuple[str, list[tuple[str, Any]]]:
    """What a fork is about to do, and what it reports of what it did."""
    try:
        message: tuple[str, list[tuple[str, Any]]] = pipe.recv()
    except (EOFError, ConnectionResetError):
        return "gone", []
    return message


class Fork:
    """A fork as its parent knows it: what it runs, and what is left of its file."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.running: int | None = None
        self.left: list[int] = []


class Child:
    """Runs tests, in a fork, and hands what hooks of pytest hear of them to its parent."""

    def __init__(self, session: pytest.Session, pipe: Connection) -> None:
        self._session = session
        self._pipe = pipe
        self._reports: list[tuple[str, Any]] = []

    def live(self, temporary: os.PathLike[str]) -> None:
        """Never returns: what would follow is the parent's."""
        status = 1
        try:
            with self._set_up(temporary):
                self._run()
            status = 0
        except BaseException:  # noqa: BLE001  # there is nobody above to raise it to
            traceback.print_exc(file=sys.__stderr__)
        finally:
            with suppress(BaseException):
                threading._shutdown()  # type: ignore[attr-defined]  # an exit that is none of the interpreter's leaves it out
                atexit._run_exitfuncs()
            os._exit(status)

    @contextmanager
    def _set_up(self, temporary: os.PathLike[str]) -> Generator[None]:
        config: Any = self._session.config
        os.mkdir(temporary, 0o700)  # noqa: PTH102  # it is no Path to its type
        config._tmp_path_factory._basetemp = temporary
        capture = config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()  # into a file whose position all forks share
        capture.start_global_capturing()
        capture.suspend_global_capture()
        if reporter := config.pluginmanager.getplugin("terminalreporter"):
            config.pluginmanager.unregister(reporter)
        with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123  # nothing is opened by name
            quiet = SimpleNamespace(_tw=create_terminal_writer(config, nowhere))
            config.pluginmanager.register(quiet, "terminalreporter")
            config.pluginmanager.register(self)
            yield

    def _run(self) -> None:
        session = self._session
        while numbers := self._ask():
            items = [session.items[number] for number in numbers]
            for item, following in zip(items, [*items[1:], session], strict=True):  # the session: it lasts
                self._send("start")
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        session._setupstate.teardown_exact(None)
        self._send("end")

    def _ask(self) -> list[int]:
        self._send("idle")
        numbers: list[int] = self._pipe.recv()
        return numbers

    def _send(self, what: str) -> None:
        """With all reports since the last message: one message a test."""
        self._pipe.send((what, self._reports))
        self._reports = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.passed and report.when != "call" and report.duration < SHORT_S:
            return
        config = self._session.config
        self._reports.append(("report", config.hook.pytest_report_to_serializable(config=config, report=report)))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._reports.append(("finish", {"nodeid": nodeid, "location": location}))

    def pytest_warning_recorded(self, warning_message: object, when: str, nodeid: str, location: object) -> None:
        given = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        self._reports.append(("warning", given))
