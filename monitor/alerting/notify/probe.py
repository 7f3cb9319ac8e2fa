"""Sends a test notice to every receiver, only when ``doctor --notify`` asks for it."""

from __future__ import annotations

import asyncio
import time

from sidejudge.integrations.delivery_errors import DestinationUnreachableError, RefusedError
from sidejudge.monitor.config import Config
from sidejudge.scoring.notices.notice import Notice, NoticeKind

from .build import receivers
from .receiver import NoticeReceiver


def try_receivers(config: Config) -> list[tuple[str, str | None]]:
    """(name, why it did not take a test notice, ``None`` when it did) of each receiver; all at a time."""
    return asyncio.run(_try_all(receivers(config, time.time_ns)))


async def _try_all(reported: list[NoticeReceiver]) -> list[tuple[str, str | None]]:
    now_ns = time.time_ns()
    notice = Notice(id=f"test-{now_ns // 10**9}", kind=NoticeKind.TEST, at_ns=now_ns)
    return list(await asyncio.gather(*(_try(each, notice) for each in reported)))


async def _try(receiver: NoticeReceiver, notice: Notice) -> tuple[str, str | None]:
    try:
        await receiver.sender.send(notice)
    except (DestinationUnreachableError, RefusedError) as error:
        return receiver.name, error.reason
    return receiver.name, None
