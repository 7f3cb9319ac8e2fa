"""The image, built by buildah from the Dockerfile as it is, on a base of Debian's packages and this machine's Python.

The base image itself need not be within reach: what the Dockerfile relies on is Debian under ``/usr``, and a Python
with pip and venv under ``/usr/local``. Such a root is made here and given the name that the Dockerfile asks for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.image import sandbox
from tests.image.dockerfile import ROOT
from tests.needs import BUILDAH, MMDEBSTRAP

BASE = "docker.io/library/python:3.11-slim-bookworm"
NAME = "localhost/sidejudge:tested"
PACKAGES = (
    "bash,dash,coreutils,util-linux,sed,grep,findutils,libc-bin,base-files,base-passwd,ca-certificates,netbase,tzdata,libffi8,"
    "libsqlite3-0,libssl3,libbz2-1.0,liblzma5,libreadline8,zlib1g,libuuid1,libncursesw6,libexpat1,libstdc++6"
)
"""A shell, what the Python of this machine is linked with, and nothing else."""
LEFT_OUT = ("site-packages/*", "test", "idlelib", "tkinter", "config-3.*", "__pycache__", "turtledemo")


def missing() -> str | None:
    """Why the image is not built here; None when it is."""
    if "IMAGE" not in os.environ:
        return "a minute for the image; make image"
    for need in (BUILDAH, MMDEBSTRAP):
        if need.found is None:
            return need.reason
    if sys.version_info[:2] != (3, 11) or Path(sys.base_prefix) in (Path("/usr"), Path("/usr/local")):
        return "the image's Python is missing; run with a Python 3.11 in a folder of its own"
    return sandbox.missing()


@dataclass(frozen=True, slots=True)
class Built:
    """What came out: the configuration as an engine reads it, the root's folder, and the sizes of image and base."""

    environ: dict[str, str]
    user: str
    workdir: str
    entrypoint: list[str]
    cmd: list[str]
    labels: dict[str, str]
    healthcheck: list[str]
    exposed: list[str]
    root: Path
    size: int
    size_of_base: int


class Buildah:
    """Images and containers of one folder, which is all that there is to clean up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        places = {"root": folder / "images", "runroot": folder / "run", "storage-driver": "overlay"}
        self._where = [part for name, value in places.items() for part in (f"--{name}", str(value))]

    def __call__(self, *arguments: str, timeout_s: float = 300) -> str:
        command = [BUILDAH.path(), *self._where, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=timeout_s)
        if done.returncode and any(sign in done.stderr for sign in ("onnection", "Could not find a version")):
            pytest.skip("the image's dependencies cannot be fetched; give pip an index that has them")
        assert done.returncode == 0, f"{arguments[0]}: {done.stderr[-3000:]}"
        return done.stdout.strip()

    def inspected(self, name: str, kind: str = "image") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("inspect", "--type", kind, name))
        return found

    def clean(self) -> None:
        """Unmount and forget everything."""
        self("umount", "--all")
        shutil.rmtree(self.folder)


def make_base(buildah: Buildah) -> None:
    """A root like that of the base image, under its name."""
    try:
        container = buildah("from", "scratch")
        root = Path(buildah("mount", container))
    except AssertionError as error:
        pytest.skip(f"buildah may mount nothing here; give it the right to ({str(error).strip()[-200:]})")
    merged = "/usr/share/mmdebstrap/hooks/merged-usr"
    command = [MMDEBSTRAP.path(), "--quiet", "--variant=extract", f"--hook-dir={merged}", f"--include={PACKAGES}"]
    made = subprocess.run([*command, "bookworm", str(root)], capture_output=True, text=True, check=False, timeout=300)
    if made.returncode:
        pytest.skip(f"Debian's packages cannot be fetched; apt-get update must work ({made.stderr.strip()[-200:]})")
    python, local = Path(sys.base_prefix), root / "usr" / "local"
    version = f"python{sysconfig.get_python_version()}"
    shutil.copytree(
        python / "lib" / version, local / "lib" / version, symlinks=True, dirs_exist_ok=True,
        ignore=shutil.ignore_patterns(*(each.partition("/")[0] for each in LEFT_OUT)),
    )  # fmt: skip
    for library in (python / "lib").glob("libpython*"):
        shutil.copy2(library, local / "lib" / library.name, follow_symlinks=False)
    (local / "bin").mkdir(exist_ok=True)
    shutil.copy2(python / "bin" / version, local / "bin" / version)
    for name in ("python3", "python"):
        (local / "bin" / name).symlink_to(version)
    prepare = "/usr/sbin/ldconfig && /usr/local/bin/python3 -m ensurepip --default-pip"
    subprocess.run(["chroot", str(root), "/bin/sh", "-c", prepare], check=True, capture_output=True, timeout=60)
    buildah("config", "--env", "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", container)
    buildah("commit", "--quiet", "--rm", container, BASE)


def build(buildah: Buildah, *, variant: str = "base") -> Built:
    """The Dockerfile's image, and a container of it whose root is mounted."""
    make_base(buildah)
    arguments = {"VARIANT": variant, "VERSION": "1.2.3", "REVISION": "f" * 40, "BASE_DIGEST": "sha256:" + "0" * 64}
    given = [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
    # The steps run beside this machine's network, so they take its certificates as well.
    settings = buildah.folder / "pip.conf"
    settings.write_text("[global]\ncert = /etc/ssl/of-the-machine.crt\n")
    certificates = os.environ.get("PIP_CERT", "/etc/ssl/certs/ca-certificates.crt")
    for volume in (f"{certificates}:/etc/ssl/of-the-machine.crt:ro", f"{settings}:/etc/pip.conf:ro"):
        given += ["--volume", volume]
    buildah("bud", "--isolation", "chroot", "--pull-never", "--format", "docker", *given, "--tag", NAME, ".")
    container = buildah("from", "--pull-never", NAME)
    inspected, base = buildah.inspected(NAME), buildah.inspected(BASE)
    config = inspected["Docker"]["config"]
    sizes = {
        each["names"][0]: _bytes(each["size"]) for each in json.loads(buildah("images", "--json")) if each.get("names")
    }
    assert base["FromImageID"]
    return Built(
        environ=dict(each.split("=", 1) for each in config["Env"]),
        user=config["User"], workdir=config["WorkingDir"], entrypoint=config["Entrypoint"], cmd=config["Cmd"],
        labels=config["Labels"], healthcheck=config["Healthcheck"]["Test"][1:],
        exposed=sorted(port.partition("/")[0] for port in config["ExposedPorts"]),
        root=Path(buildah("mount", container)), size=sizes[NAME], size_of_base=sizes[BASE],
    )  # fmt: skip


def _bytes(text: str) -> int:
    number, unit = text.split()
    return round(float(number) * {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}[unit])
