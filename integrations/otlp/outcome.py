"""What can come of a delivered request: a receipt, or one of two refusals that the protocol tells apart."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The request is taken, and what was to be kept of it is committed.

    ``rejected_spans`` is the number of spans that were refused for good (OTLP partial success: the client must not
    send them again); ``message`` says why, or is empty. A message without rejected spans is a warning.
    """

    rejected_spans: int = 0
    message: str = ""


class Undecodable(ValueError):  # noqa: N818  # it names what the data is
    """The request is not an OTLP trace request; sending it again cannot help."""


class Overloaded(Exception):  # noqa: N818  # it names what the receiver is
    """The request was not taken and may be sent again after ``retry_after_s`` seconds; nothing of it was kept."""

    def __init__(self, retry_after_s: float, reason: str = "more is waiting to be committed than may wait") -> None:
        super().__init__(f"{reason}; send again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s
        self.reason = reason
