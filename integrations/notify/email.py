"""E-mail: notices as plain text, by SMTP (RFC 5321), encrypted by STARTTLS or from the first byte."""

from __future__ import annotations

import asyncio
import logging
import smtplib
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from hashlib import sha256
from typing import Any, Final, Literal

from sidejudge.integrations.addresses import why_not
from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.scoring.notices.notice import Notice
from sidejudge.scoring.notices.text import Wording, plain
from sidejudge.scoring.notices.wording import report

from .webhook import notice_id

log = logging.getLogger("sidejudge.notify")

_TIMEOUT_S: Final = 10.0
"""Of one answer of the server."""
_WHOLE_S: Final = 30.0
"""Of all of them: a message to many people takes many."""
_PERMANENT: Final = 500
_LATER_S: Final = (60.0, 300.0, 900.0, 3600.0)
"""When recipients that were refused for now, as by greylisting, are tried again, once others took the message."""
_SUBJECT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """Where messages are submitted, and as whom. ``encryption``: before the first byte, by STARTTLS, or none."""

    host: str
    port: int
    encryption: Literal["tls", "starttls", "none"]
    user: str | None = None
    password: str | None = None


class Email:
    """Sends notices to the same people."""

    def __init__(self, server: MailServer, sender: str, to: Sequence[str], wording: Wording) -> None:
        self._server, self._sender, self._to, self._wording = server, sender, tuple(to), wording
        self._later: set[asyncio.Task[None]] = set()
        self._one_later = asyncio.Lock()  # each takes a thread, which many at once would take from everything else

    async def send(self, notice: Notice) -> None:
        """Return once the server has taken it, for one recipient at least.

        Those that it refuses for now are tried again beside, so that they hold no notice back: until the process ends.
        """
        message = email_message(notice, self._wording, self._sender, self._to)
        if owed := await self._deliver(message, self._to):
            task = asyncio.create_task(self._deliver_later(message, owed))
            self._later.add(task)
            task.add_done_callback(self._later.discard)

    async def _deliver_later(self, message: EmailMessage, owed: Sequence[str]) -> None:
        for wait_s in _LATER_S:
            await asyncio.sleep(wait_s)
            try:
                async with self._one_later:
                    owed = await self._deliver(message, owed)
            except DestinationUnreachableError:
                continue
            except RefusedError:
                break
            if not owed:
                return
        log.warning("an SMTP server took a notice for some recipients alone", extra={"recipients": len(owed)})

    async def _deliver(self, message: EmailMessage, to: Sequence[str]) -> Sequence[str]:
        """Send it once; the recipients that are refused for now, while others are not."""
        under_way: list[_Plain] = []
        try:
            async with asyncio.timeout(_WHOLE_S):
                return await asyncio.to_thread(self._submit, message, to, under_way)
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            raise _failure(min(codes, default=_PERMANENT), "it refuses the recipients") from None
        except smtplib.SMTPResponseException as error:
            words = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else ""
            raise _failure(error.smtp_code, f"it answered {error.smtp_code} {plain(words, 200)}".strip()) from None
        except smtplib.SMTPNotSupportedError as error:
            raise RefusedError(f"the SMTP server does not support what is configured: {error}") from None
        except TimeoutError:
            raise DestinationUnreachableError("the SMTP server did not answer in time") from None
        except (OSError, smtplib.SMTPException) as error:
            raise DestinationUnreachableError(f"the SMTP server cannot be reached: {why_not(error)}") from None
        finally:
            for connected in under_way:
                connected.cut_off()

    def _submit(self, message: EmailMessage, to: Sequence[str], under_way: list[_Plain]) -> Sequence[str]:
        server, context = self._server, ssl.create_default_context()
        connected: _Plain
        if server.encryption == "tls":
            connected = _Tls(under_way, server.host, server.port, timeout=_TIMEOUT_S, context=context)
        else:
            connected = _Plain(under_way, server.host, server.port, timeout=_TIMEOUT_S)
        try:
            if server.encryption == "starttls":
                connected.starttls(context=context)
            if server.user is not None and server.password is not None:
                connected.login(server.user, server.password)
            refused = connected.send_message(message, to_addrs=to)  # raises where every recipient is refused
        finally:
            with suppress(OSError, smtplib.SMTPException):  # whatever it answers to that, what it took is taken
                connected.quit()
            connected.close()
        if refused:
            log.warning("an SMTP server refused some recipients", extra={"recipients": len(refused)})
        return [each for each, (code, _) in refused.items() if code < _PERMANENT]


class _Plain(smtplib.SMTP):
    """A connection that is ``under_way`` before it is made, so that another thread can cut it off.

    The client's own timeout begins anew with each byte: a server that goes on sending would hold its thread for ever.
    """

    def __init__(self, under_way: list[_Plain], *arguments: Any, **more: Any) -> None:
        under_way.append(self)
        super().__init__(*arguments, **more)

    def cut_off(self) -> None:
        """End it, wherever it is; one that has ended stays so."""
        if (connected := self.sock) is not None:
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)


class _Tls(_Plain, smtplib.SMTP_SSL):
    """The same, encrypted from the first byte."""


def email_message(notice: Notice, wording: Wording, sender: str, to: Sequence[str]) -> EmailMessage:
    """The notice as a message; the subject is its title, on one line."""
    reported = report(notice, wording)
    message = EmailMessage()
    message["From"], message["To"] = sender, ", ".join(to)
    message["Subject"] = plain(f"[sidejudge] {reported.title}", _SUBJECT)
    message["Date"] = format_datetime(datetime.fromtimestamp(notice.at_ns / 1e9, UTC))
    # The same at each delivery: an answer may be lost after the server has taken it, and mailboxes show one of each.
    digest = sha256(f"{message}{reported.text}".encode(errors="replace")).hexdigest()[:24]
    message["Message-ID"] = f"<{digest}.{notice_id(notice, wording)}@sidejudge.invalid>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(reported.text)
    return message


def _failure(code: int, reason: str) -> Exception:
    return RefusedError(reason) if code >= _PERMANENT else DestinationUnreachableError(reason)
