"""Read certificates and check them before anything listens, so that a mistake names its configuration key."""

from __future__ import annotations

import ssl
from pathlib import Path

from sidejudge.integrations.otlp.server.grpc_receiver import Certificates
from sidejudge.monitor.config.sources import TlsSection
from sidejudge.scoring.errors import SidejudgeError


class CertificateError(SidejudgeError):
    """A certificate or key that cannot be used; the message names the configuration key."""


def read(tls: TlsSection, key: str = "sources.otlp.tls") -> Certificates:
    """Read the files of a ``tls`` section. Raises :class:`CertificateError`."""
    made = Certificates(
        chain=_bytes(tls.certificate, f"{key}.certificate"),
        key=_bytes(tls.key, f"{key}.key"),
        client_ca=_bytes(tls.client_ca, f"{key}.client_ca") if tls.client_ca else None,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        raise CertificateError(f"{key}: {tls.certificate} and {tls.key} cannot be used together ({error})") from None
    if tls.client_ca:
        check_authority(tls.client_ca, f"{key}.client_ca")
    return made


def check_authority(path: Path, key: str) -> None:
    """Raise :class:`CertificateError` unless the file holds certificates."""
    _bytes(path, key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError as error:
        raise CertificateError(f"{key}: {path} holds no certificates ({error})") from None


def _bytes(path: Path, key: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{key}: {path}: {error.strerror or error}") from None


def _no_password() -> str:
    raise ValueError("the key is encrypted")
