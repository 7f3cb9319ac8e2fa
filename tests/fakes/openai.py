"""A model provider on a real socket: the OpenAI protocol, and every way in which it goes wrong.

`Provider` answers `/v1/chat/completions` and `/v1/embeddings` from a thread of its own, so that a test in this process
and a monitor in another may both call it. What it does next is a queue of behaviours, after which the standing one
holds. A behaviour is a function of the request; the functions below make the usual ones.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

Messages = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Seen:
    """A request as it came over the wire."""

    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)

    @property
    def messages(self) -> Messages:
        return self.body["messages"]


@dataclass(frozen=True)
class Act:
    """What happens on the socket: after a delay a response, which may break off, or nothing at all."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    delay_s: float = 0.0
    hang: bool = False
    reset_after: int | None = None
    """Bytes of the body after which the connection is reset; 0 resets it before the status line."""


Behaviour = Callable[[Seen], Act]


def completion(seen: Seen, message: Mapping[str, Any], finish_reason: str = "stop") -> dict[str, Any]:
    """The body of an answer; tokens are counted as a quarter of the characters."""
    requested = sum(len(each["content"]) for each in seen.messages) // 4
    stated = len(message.get("content") or "") // 4
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": seen.body["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": requested, "completion_tokens": stated, "total_tokens": requested + stated},
    }


def states(text: str | Callable[[Messages], str], *, finish_reason: str = "stop", delay_s: float = 0.0) -> Behaviour:
    """Answers with this text, or with what a function makes of the messages."""

    def act(seen: Seen) -> Act:
        stated = text if isinstance(text, str) else text(seen.messages)
        body = completion(seen, {"content": stated}, finish_reason)
        return Act(body=json.dumps(body).encode(), delay_s=delay_s)

    return act


def refuses(why: str = "I cannot help with that.") -> Behaviour:
    return lambda seen: Act(body=json.dumps(completion(seen, {"content": None, "refusal": why})).encode())


def filtered() -> Behaviour:
    return lambda seen: Act(body=json.dumps(completion(seen, {"content": ""}, "content_filter")).encode())


def no_choices() -> Behaviour:
    return lambda seen: Act(body=json.dumps({**completion(seen, {"content": ""}), "choices": []}).encode())


def body(content: bytes) -> Behaviour:
    """An answer of these bytes."""
    return lambda _: Act(body=content)


def error(status: int, message: str, *, code: str | None = None, **headers: str) -> Behaviour:
    """An error as OpenAI words it."""
    body = json.dumps({"error": {"message": message, "type": code, "param": None, "code": code}}).encode()
    named = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return lambda _: Act(status=status, body=body, headers=named)


def unauthorised() -> Behaviour:
    return error(401, "Incorrect API key provided: sk-very-secret.", code="invalid_api_key")


def forbidden() -> Behaviour:
    return error(403, "Project does not have access to the model.", code="permission_denied")


def no_model() -> Behaviour:
    return error(404, "The model `nobody` does not exist or you do not have access to it.", code="model_not_found")


def no_credit() -> Behaviour:
    return error(429, "You exceeded your current quota, please check your plan.", code="insufficient_quota")


def too_many(retry_after: str | None = None) -> Behaviour:
    more = {} if retry_after is None else {"retry_after": retry_after}
    return error(429, "Rate limit reached for requests", code="rate_limit_exceeded", **more)


def too_long() -> Behaviour:
    text = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    return error(400, text, code="context_length_exceeded")


def page(status: int = 502) -> Behaviour:
    """What a proxy says when nobody is behind it."""
    return lambda _: Act(status, b"<html><body><h1>502 Bad Gateway</h1></body></html>", {"content-type": "text/html"})


def raw(body: bytes, status: int = 200) -> Behaviour:
    return lambda _: Act(status, body)


def hangs() -> Behaviour:
    return lambda _: Act(hang=True)


def resets(after: int = 0) -> Behaviour:
    """Breaks the connection: before it says anything, or so many bytes into an answer."""
    if not after:
        return lambda _: Act(reset_after=0)
    return lambda seen: Act(body=json.dumps(completion(seen, {"content": "x" * 500})).encode(), reset_after=after)


def embeds(vector: Callable[[str], Sequence[float]]) -> Behaviour:
    """Answers a request for embeddings with a function of each text."""

    def act(seen: Seen) -> Act:
        texts = seen.body["input"] if isinstance(seen.body["input"], list) else [seen.body["input"]]
        data = [{"object": "embedding", "index": i, "embedding": list(vector(t))} for i, t in enumerate(texts)]
        usage = {"prompt_tokens": sum(map(len, texts)) // 4, "total_tokens": sum(map(len, texts)) // 4}
        body = {"object": "list", "data": data, "model": seen.body["model"], "usage": usage}
        return Act(body=json.dumps(body).encode())

    return act


class Provider:
    """The server. Used as a context manager; `url` is the `api_base` to give to a client."""

    def __init__(self, standing: Behaviour | None = None) -> None:
        self.standing = standing or states("{}")
        self.next: deque[Behaviour] = deque()
        self.seen: list[Seen] = []
        self.at_once = 0
        self.most_at_once = 0
        """The largest number of requests that were being answered at the same moment."""
        self._loop = asyncio.new_event_loop()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, name="fake-provider", daemon=True)
        self._started = threading.Event()
        self._hanging: asyncio.Event

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def will(self, *behaviours: Behaviour) -> None:
        """What it does with the next requests, one each; then what it always does."""
        self.next.extend(behaviours)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        self._hanging = asyncio.Event()
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, sock=self._socket))
        self._loop.call_soon(self._started.set)
        self._loop.run_forever()
        self._loop.run_until_complete(self._end(server))
        self._loop.close()

    async def _end(self, server: asyncio.Server) -> None:
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close in the loop's next turn

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:]) if k}
        raw_body = await reader.readexactly(int(headers.get("content-length", "0")))
        seen = Seen(head[0].split(" ")[1], headers, raw_body)
        self.seen.append(seen)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            act = (self.next.popleft() if self.next else self.standing)(seen)
            await asyncio.sleep(act.delay_s)
            if act.hang:
                await self._hanging.wait()
            return await perform(act, writer)
        finally:
            self.at_once -= 1


async def perform(act: Act, writer: asyncio.StreamWriter) -> bool:
    """Do it; whether the connection may be used again."""
    reported = {**act.headers, "content-length": str(len(act.body))}
    head = f"HTTP/1.1 {act.status} Told\r\n" + "".join(f"{k}: {v}\r\n" for k, v in reported.items()) + "\r\n"
    if act.reset_after is None:
        writer.write(head.encode() + act.body)
        await writer.drain()
        return True
    if act.reset_after:
        writer.write(head.encode() + act.body[: act.reset_after])
        await writer.drain()
    # Closing with a linger time of zero sends a reset in place of a farewell.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return False
