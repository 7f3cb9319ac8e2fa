"""A process that has everything imported and forks for each command: a command costs what it does, and not its imports.

It reads a line of JSON for each command and answers with the process id, and with ``wait`` with the exit code.
"""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any


class Warm:
    """Runs commands of ``sidejudge``."""

    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).resolve())], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            cwd=root, env={k: v for k, v in os.environ.items() if not k.startswith("SIDEJUDGE_")},
        )  # fmt: skip

    def run(
        self, arguments: list[str], folder: Path, environ: Mapping[str, str], output: Path, *,
        wait: bool, stdout: Path | None = None,
    ) -> int:  # fmt: skip
        """The exit code of a command, or with ``wait=False`` its process id.

        ``output`` gets what is written, without standard output where ``stdout`` gets that.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"arguments": arguments, "folder": str(folder), "environ": dict(environ), "output": str(output)}
        asked |= {"stdout": str(stdout or output)}
        self._process.stdin.write(json.dumps(asked | {"wait": wait}).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _become(command: Mapping[str, Any]) -> None:
    os.setsid()
    os.chdir(command["folder"])
    os.environ.clear()
    os.environ.update(command["environ"])
    out, errors = (
        os.open(command[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666) for name in ("stdout", "output")
    )
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (out, 1), (errors, 2)):
        os.dup2(source, target)
    sys.argv = ["sidejudge", *command["arguments"]]
    import_module("sidejudge.monitor.cli").main()


def _serve() -> None:
    for module in pkgutil.walk_packages(import_module("sidejudge").__path__, "sidejudge."):
        if not module.name.endswith("__main__"):
            with suppress(ModuleNotFoundError):  # of an extra that is not installed
                import_module(module.name)
    os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}  # as the product sets them
    with suppress(ModuleNotFoundError):
        import_module("litellm")  # 4 s of CPU, which each command that asks a judge would take
    for line in sys.stdin.buffer:
        command = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                _become(command)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            else:
                code = 0
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        stated = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if command["wait"] else child
        sys.stdout.buffer.write(b"%d\n" % stated)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    _serve()
