"""``sidejudge`` in processes of their own that start at once: forked from one that has imported the packages already.

A start costs a second or two of imports, and the suite starts some hundreds. All else is as an operator has it: a
process with its own memory, signals, environment, folder and standard streams. Tests of the start itself, and of what
is imported when, start the command anew (``tests/monitor/cli/test_main.py``).
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing import forkserver, get_context
from pathlib import Path

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["tests.imported_for_forks"])


def share() -> None:
    """Start what all are forked from, for this process and for those that are forked from this one themselves."""
    server = forkserver._forkserver
    server.ensure_running()
    # Others ask in vain whether it runs, for it is not their child. It lasts until the last of them has ended.
    server.ensure_running = lambda: None  # type: ignore[method-assign]  # see above


def environment() -> dict[str, str]:
    """This process's environment without what is meant for a monitor, or for measuring coverage."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SIDEJUDGE_", "COVERAGE_"))}


class Forked:
    """One call of ``sidejudge``, with the methods of ``subprocess.Popen``. What it writes is appended to files.

    With ``-c`` and a program, that program, as ``python -c`` runs it.
    """

    def __init__(
        self,
        *arguments: object,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: Path | None = None,
        stdout: Path | None = None,
        stderr: Path | None = None,
    ) -> None:
        streams = [str(each or os.devnull) for each in (stdin, stdout, stderr)]
        call = ([str(each) for each in arguments], str(cwd or Path.cwd()), environment() | dict(env or {}), streams)
        self._process = FORKS.Process(target=_call, args=call)
        self._process.start()
        self.pid: int = self._process.pid or 0
        atexit.register(self.kill)  # else what a test leaves running is waited for at the end, without an end

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("sidejudge", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def sidejudge(
    *arguments: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    timeout: float = 100,
) -> subprocess.CompletedProcess[str]:
    """Call ``sidejudge``, with ``env`` beside this environment, and wait until it has ended."""
    with tempfile.TemporaryDirectory() as name:
        given, out, err = (Path(name) / each for each in ("in", "out", "err"))
        given.write_text(stdin)
        process = Forked(*arguments, cwd=cwd, env=env, stdin=given, stdout=out, stderr=err)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())


def _call(arguments: list[str], cwd: str, environ: dict[str, str], streams: list[str]) -> None:
    """The forked process: it becomes ``sidejudge`` with these arguments."""
    for number, (path, mode) in enumerate(zip(streams, "raa", strict=True)):
        with Path(path).open(mode + "b") as opened:
            os.dup2(opened.fileno(), number)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["sidejudge", *arguments]
    from sidejudge.monitor.cli import main  # noqa: PLC0415  # the importing process needs none of it

    try:
        if arguments[:1] == ["-c"]:
            sys.path.insert(0, "")
            exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})  # a test's own
        else:
            main()
    finally:
        atexit._run_exitfuncs()  # which multiprocessing leaves out
        sys.stdout.flush()
        sys.stderr.flush()


def peak_kb(*arguments: object) -> int:
    """The most memory that one call takes in a process of its own, started anew."""
    program = (
        "import re, sys\nfrom pathlib import Path\nfrom sidejudge.monitor.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        # Of this process alone: ru_maxrss begins with that of the process that started it.
        "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    command = [sys.executable, "-P", "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True, timeout=100)
    return int(done.stdout.splitlines()[-1])
