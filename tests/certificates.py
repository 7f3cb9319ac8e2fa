"""Certificates for tests, made anew each time with the machine's openssl."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.needs import OPENSSL


@dataclass(frozen=True, slots=True)
class Made:
    """An authority, a server's certificate for 127.0.0.1 signed by it, and a client's."""

    folder: Path

    def __getattr__(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")


def make(folder: Path) -> Made:
    """``ca``, ``ca_key``, ``server``, ``server_key``, ``client``, ``client_key``: paths of PEM files."""
    openssl = OPENSSL.path()

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    use = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")  # from 3.13 on Python trusts no authority without it
    run("req", "-x509", *key, "-keyout", "ca_key.pem", "-out", "ca.pem", "-subj", "/CN=tests", *use)
    for name in ("server", "client"):
        run(
            "req", "-x509", *key, "-keyout", f"{name}_key.pem", "-out", f"{name}.pem", "-subj", f"/CN={name}",
            "-CA", "ca.pem", "-CAkey", "ca_key.pem", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
            "-addext", "basicConstraints=CA:FALSE",
        )  # fmt: skip
    return Made(folder)


def another(made: Made, name: str, names: str, days: int = 2) -> Made:
    """A further server's certificate of that authority: ``names`` as in subjectAltName; one of ``-1`` has expired."""

    def run(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=made.folder, check=True, capture_output=True)

    run(
        "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
        "-keyout", f"{name}_key.pem", "-out", f"{name}.csr",
    )  # fmt: skip
    extensions = (f"subjectAltName={names}", "basicConstraints=CA:FALSE", "authorityKeyIdentifier=keyid")
    (made.folder / f"{name}.ext").write_text("\n".join(extensions) + "\n")
    run(
        "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca_key.pem", "-CAcreateserial",
        "-days", str(days), "-extfile", f"{name}.ext", "-out", f"{name}.pem",
    )  # fmt: skip
    return made
