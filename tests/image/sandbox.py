"""A container's surroundings without a container engine: a root that cannot be written, an unprivileged user.

In a mount namespace of its own, the folders that a program needs are bound into an empty root, read-only; ``/tmp`` and
the state directory can be written; then root is changed, all capabilities are dropped, and the program takes the place
of the shell, so that a signal to the process reaches it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/ssl", "/etc/hosts", "/etc/passwd", "/etc/nsswitch.conf")
DEVICES = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/zero")


def missing() -> str | None:
    """Why there can be no sandbox here; None when there can be one."""
    if os.geteuid() != 0:
        return "a sandbox is not allowed to this user; run as root"
    for tool in ("unshare", "chroot", "setpriv"):
        if shutil.which(tool) is None:
            return f"{tool} is missing; apt-get install util-linux coreutils"
    tried = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    )
    return None if tried.returncode == 0 else "mounting is not allowed here; run as root with CAP_SYS_ADMIN"


class Sandbox:
    """One root. ``binds`` and ``writable`` are folders by where they stand inside; what is written stays.

    ``base`` is an image's root; without one the machine's own system and Python are bound into an empty root.
    """

    def __init__(
        self, root: Path, binds: Mapping[str, Path], writable: Mapping[str, Path], *, base: Path | None = None
    ) -> None:
        self.root = root
        needed = DEVICES if base else (*SYSTEM, str(Path(sys.base_prefix)), *DEVICES)
        given = {path: Path(path) for path in needed if Path(path).exists()}
        empty = f"mount -t tmpfs -o size=1m,mode=755 tmpfs {root}"
        self._lines = ["set -e", f"mount --bind {base} {root}" if base else empty]
        for inside, what in {**given, **binds}.items():
            self._bind(inside, what, read_only=not inside.startswith("/dev/"))
        self._lines += [f"mkdir -p {root}/proc", f"mount -t proc proc {root}/proc"]
        for inside, what in writable.items():
            self._bind(inside, what, read_only=False)
        self._lines += [
            f"mkdir -p {root}/tmp",
            f"mount -t tmpfs -o size=64m,mode=1777 tmpfs {root}/tmp",
            f"mount -o remount,{'bind,' if base else ''}ro {root}",
        ]

    def _bind(self, inside: str, what: Path, *, read_only: bool) -> None:
        there = f"{self.root}{inside}"
        made = f"mkdir -p {there}" if what.is_dir() else f"mkdir -p {Path(there).parent}; touch {there}"
        self._lines += [made, f"mount --bind {what.resolve()} {there}"]
        if read_only:
            self._lines.append(f"mount -o remount,bind,ro {there}")

    def start(
        self, command: Sequence[str], environ: Mapping[str, str], *, user: int = 65532, cwd: str = "/", **how: object
    ) -> subprocess.Popen[str]:
        """Start a program inside. Its process id is that of what is returned."""
        inner = 'cd "$1"; shift; exec "$@"'
        # Inside, programs lie where the system has them, whatever the path of whoever runs the tests.
        path = "export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        script = "\n".join([*self._lines, path, f'exec chroot {self.root} "$@"'])
        drop = [
            "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
            "--no-new-privs",
        ]  # fmt: skip
        variables = [f"{name}={value}" for name, value in environ.items()]
        program = [*drop, "env", "-i", *variables, "sh", "-c", inner, "sh", cwd, *command]
        return subprocess.Popen(["unshare", "--mount", "sh", "-c", script, "sh", *program], text=True, **how)

    def run(
        self, command: Sequence[str], environ: Mapping[str, str], **how: object
    ) -> subprocess.CompletedProcess[str]:
        """Run a program inside to its end."""
        process = self.start(command, environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **how)
        stated, _ = process.communicate(timeout=60)
        return subprocess.CompletedProcess(list(command), process.returncode, stated)
