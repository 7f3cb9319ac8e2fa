"""Batch client: asks judges through a provider's batch endpoint, at half the price.

Requests are gathered until none comes for a while, written to a file (``/v1/files``) and submitted as one batch
(``/v1/batches``, OpenAI's protocol), which is polled until it has ended. The id of a request is its hash. The open
batches are stored: a run that was killed and starts again sends the same requests, byte for byte, and gets the answers
of the batch that it submitted before.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, Protocol, TypeVar

from sidejudge.integrations.provider.attempt import Completion
from sidejudge.integrations.provider.errors import IN_PASSING, ProviderError, ProviderErrorKind, read_error
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.scoring.judging.request import JudgeRequest
from sidejudge.scoring.trace.span import JsonRecord

from .client import JudgeClient, JudgeModel, TokenPrice, arguments_of, completion_of, response_format

_Done = TypeVar("_Done")
log = logging.getLogger("sidejudge.judge")

DISCOUNT: Final = 0.5
"""The price of a request in a batch, as a share of the list price."""
PROVIDER: Final = "openai"
"""The provider whose protocol batches speak; others that speak it are named by their address."""
_MOST_REQUESTS: Final = 50_000
_MOST_BYTES: Final = 150 * 2**20
_ENDED: Final = ("completed", "expired", "failed", "cancelled")
_REMEMBERED_S: Final = 30 * 86_400
"""How long a provider keeps the output of a batch."""


class BatchNotes(Protocol):
    """Texts by name that outlive the process."""

    def all(self) -> dict[str, str]: ...
    async def change(self, values: Mapping[str, str | None]) -> None: ...


@dataclass(slots=True)
class _Lot:
    """Gathered requests to one model: lines by request id, their size in bytes, and when the last one came."""

    model: JudgeModel
    lines: dict[str, str] = field(default_factory=dict)
    size: int = 0
    last: float = 0.0


class BatchJudgeClient:
    """Asks models in batches. Use it from one event loop; ``close`` leaves submitted batches open.

    Args:
        client: knows the models' contexts and prices.
        library: the thread that the provider's client runs in.
        notes: keeps the open batches.
        gather_s: seconds without a further request after which a batch is submitted.
        poll_s: seconds between two polls of the open batches.
    """

    def __init__(
        self, client: JudgeClient, library: LiteLLM, notes: BatchNotes, *, gather_s: float = 10.0, poll_s: float = 30.0
    ) -> None:
        self._client, self._library, self._notes = client, library, notes
        self._gather_s, self._poll_s = gather_s, poll_s
        self._lots: dict[tuple[str, str | None], _Lot] = {}
        self._waiting: dict[str, asyncio.Future[Completion]] = {}
        self._models: dict[str, JudgeModel] = {}
        self._began: dict[str, float] = {}
        self._asked: Counter[str] = Counter()
        self._under_way: dict[str, set[str]] | None = None
        self._working: asyncio.Task[None] | None = None

    async def complete(self, request: JudgeRequest, model: JudgeModel) -> Completion:
        """Submit the request with others, and wait for its answer. Raises ``ProviderError`` where there is none."""
        body = _body(request, model)
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:40]
        self._asked[digest] += 1  # an equal request is another one
        name = f"sidejudge-{digest}-{self._asked[digest]}"
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._waiting[name] = future
        self._models[name], self._began[name] = model, time.monotonic()
        if not any(name in ids for ids in (await self._known()).values()):
            line = json.dumps({"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body})
            lot = self._lots.setdefault((model.name, model.api_base), _Lot(model))
            lot.lines[name] = line
            lot.size, lot.last = lot.size + len(line), time.monotonic()
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        try:
            return await future
        finally:
            for held in (self._waiting, self._models, self._began):
                held.pop(name, None)

    async def context_tokens(self, model: JudgeModel) -> int:
        """As ``JudgeClient.context_tokens``."""
        return await self._client.context_tokens(model)

    async def price(self, model: JudgeModel) -> TokenPrice | None:
        """Half the model's price."""
        price = await self._client.price(model)
        if price is None:
            return None
        return TokenPrice(
            input_usd_per_million=price.input_usd_per_million * DISCOUNT,
            output_usd_per_million=price.output_usd_per_million * DISCOUNT,
        )

    async def close(self) -> None:
        """Stop waiting; idempotent."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)

    async def _known(self) -> dict[str, set[str]]:
        """The ids of the requests of each open batch, by the batch's id."""
        if self._under_way is None:
            kept = {batch: json.loads(text) for batch, text in self._notes.all().items()}
            oldest = time.time() - _REMEMBERED_S
            self._under_way = {batch: set(each["ids"]) for batch, each in kept.items() if each["at"] > oldest}
            await self._notes.change({batch: None for batch in kept if batch not in self._under_way})
            if self._under_way:
                log.info("batches of an earlier run are under way", extra={"batches": len(self._under_way)})
        return self._under_way

    async def _work(self) -> None:
        """Submit gathered requests and poll open batches, until no caller waits."""
        try:
            await self._submit_and_poll()
        except Exception as error:  # noqa: BLE001  # whatever it is: nobody must wait for ever
            log.error("batches cannot be looked after", extra={"cause": str(error)})  # noqa: TRY400  # its text is ours
            self._fail(list(self._waiting), ProviderError(ProviderErrorKind.UNREACHABLE, type(error).__name__))

    async def _submit_and_poll(self) -> None:
        looked = 0.0
        while any(not future.done() for future in self._waiting.values()):
            for lot in list(self._lots.values()):
                full = len(lot.lines) >= _MOST_REQUESTS or lot.size >= _MOST_BYTES
                if lot.lines and (full or time.monotonic() - lot.last >= self._gather_s):
                    await self._submit(lot)
            if time.monotonic() - looked >= self._poll_s:
                looked = time.monotonic()
                for batch, ids in list((await self._known()).items()):
                    if any(name in self._waiting and not self._waiting[name].done() for name in ids):
                        await self._poll(batch, ids)
            await asyncio.sleep(min(self._gather_s, self._poll_s) / 4)

    async def _submit(self, lot: _Lot) -> None:
        lines, model = dict(list(lot.lines.items())[:_MOST_REQUESTS]), lot.model
        for name in lines:
            del lot.lines[name]
        lot.size = sum(map(len, lot.lines.values()))
        content = "".join(f"{line}\n" for line in lines.values()).encode()

        async def work(openai: Any) -> str:
            file = await openai.files.create(file=("sidejudge.jsonl", content), purpose="batch")
            made = await openai.batches.create(
                input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
            )
            return str(made.id)

        try:
            batch = await self._provider(model, work)
        except ProviderError as error:
            self._fail(lines, error)
            return
        known = await self._known()
        known[batch] = set(lines)
        await self._notes.change({batch: json.dumps({"ids": list(lines), "at": time.time()})})
        log.info("a batch was handed in", extra={"batch": batch, "requests": len(lines), "judge": model.name})

    async def _poll(self, batch: str, ids: set[str]) -> None:
        model = next(self._models[name] for name in ids if name in self._models)

        async def work(openai: Any) -> tuple[str, str, list[str]]:
            found = await openai.batches.retrieve(batch)
            if found.status not in _ENDED:
                return str(found.status), "", []
            files = [each for each in (found.output_file_id, found.error_file_id) if each]
            why = "; ".join(str(each.message) for each in (found.errors.data or ())) if found.errors else ""
            return str(found.status), why, [(await openai.files.content(each)).text for each in files]

        try:
            status, why, texts = await self._provider(model, work)
        except ProviderError as error:
            if error.kind is not ProviderErrorKind.MODEL_NOT_FOUND:
                log.warning("a batch could not be looked at", extra={"batch": batch, "cause": str(error)})
                return
            status, why, texts = "failed", "the provider does not know it any more", []
        if status not in _ENDED:
            return
        for text in texts:
            for line in text.split("\n"):  # what else ends a line for Python may stand within an answer
                self._take(line)
        left = {name for name in ids if name in self._waiting and not self._waiting[name].done()}
        if left:
            self._fail(left, ProviderError(ProviderErrorKind.OVERLOADED, f"the batch is {status} without it: {why}"))
        if status != "completed" or left:  # requests without an answer are submitted again
            (await self._known()).pop(batch, None)
            await self._notes.change({batch: None})
        log.info("a batch has ended", extra={"batch": batch, "status": status, "unanswered": len(left)})

    def _take(self, line: str) -> None:
        """One line of an output file."""
        try:
            found = json.loads(line)
            name, response = found["custom_id"], found.get("response") or {}
        except (ValueError, KeyError, TypeError, RecursionError):
            return
        future = self._waiting.get(name)
        if future is None or future.done():
            return
        model = self._models[name]
        try:
            if (status := response.get("status_code", 0)) != 200:  # HTTP's OK
                raise _error_of(found, status)
            future.set_result(completion_of(response["body"], model, time.monotonic() - self._began[name]))
        except ProviderError as error:
            self._fail([name], error)
        except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError):
            self._fail([name], ProviderError(ProviderErrorKind.BAD_ANSWER, "a line of the batch cannot be read"))

    def _fail(self, names: Iterable[str], error: ProviderError) -> None:
        for name in names:
            future = self._waiting.get(name)
            if future is not None and not future.done():
                future.set_exception(error)

    async def _provider(self, model: JudgeModel, work: Callable[[Any], Awaitable[_Done]]) -> _Done:
        async def calling(_: object) -> _Done:
            sdk = import_module("openai")
            async with sdk.AsyncOpenAI(api_key=model.api_key, base_url=model.api_base, max_retries=3) as client:
                return await work(client)

        try:
            return await self._library.run(calling)
        except ProviderError:
            raise
        except Exception as error:  # noqa: BLE001  # any: whatever the provider's client raises
            raise read_error(error, secret=model.api_key) from None


def _body(request: JudgeRequest, model: JudgeModel) -> dict[str, object]:
    """The request as a batch takes it: all that an answer depends on."""
    body: dict[str, object] = {"model": model.name.partition("/")[2], **arguments_of(request, model)}
    if model.structured != "never":
        body["response_format"] = response_format(request)
    return body


def _error_of(found: JsonRecord, status: int) -> ProviderError:
    body = (found.get("response") or {}).get("body") or {}
    stated = (body.get("error") if isinstance(body, Mapping) else None) or found.get("error") or {}
    message = str(stated.get("message", "no answer")) if isinstance(stated, Mapping) else "no answer"
    kind = {**IN_PASSING, 404: ProviderErrorKind.MODEL_NOT_FOUND}.get(status)
    if "context" in message and "length" in message:
        kind = ProviderErrorKind.CONTEXT_OVERFLOW
    if kind is None:
        kind = ProviderErrorKind.BAD_REQUEST if status // 100 == 4 else ProviderErrorKind.OVERLOADED
    return ProviderError(kind, message[:300])
