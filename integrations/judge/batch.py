"""Batch client: asks judges through a provider's batch endpoint, at half the price.

Requests are gathered until none comes for a while, written to a file (``/v1/files``) and submitted as one batch
(``/v1/batches``, OpenAI's protocol), which is polled until it has ended. The id of a request is its hash. The open
batches are stored: a run that was killed and starts again sends the same requests, byte for byte, and gets the answers
of the batch that it submitted before. A request that its batch did not answer is put into the next one. A provider
queues so many tokens at a time: a batch that is over that fails some time after it was taken, and is submitted again in
smaller parts, one after the other.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
_VALIDATING: Final = "validating"
_NO_ROOM: Final = "no room"
"""Stands for the state of a batch that failed because the provider's queue has no room for its tokens."""
_NO_ROOM_CODE: Final = "token_limit_exceeded"
_REMEMBERED_S: Final = 30 * 86_400
"""How long a provider keeps the output of a batch."""
_MOST_BATCHES: Final = 3
"""How many batches a request is put into until one answers it."""
_MOST_REFUSALS: Final = 6
"""How often in a row a batch is submitted again that was not taken: for an hour, as each pause doubles."""
_LAST_S: Final = 10.0
"""How long ``close`` waits for a batch that is just being submitted, in s."""
_AT_ONCE_S: Final = 60.0
LONGEST_S: Final = _MOST_BATCHES * 25 * 3600.0 + 2 * 3600.0
"""How long the answer to a request may take, in s: a day for each batch, and what gathering and submitting takes."""
_PASSING: Final = {
    ProviderErrorKind.RATE_LIMITED, ProviderErrorKind.TIMEOUT, ProviderErrorKind.OVERLOADED,
    ProviderErrorKind.UNREACHABLE,
}  # fmt: skip
"""Failures after which the same request may succeed later."""


class BatchNotes(Protocol):
    """Texts by name that outlive the process."""

    def all(self) -> dict[str, str]: ...
    async def change(self, values: Mapping[str, str | None]) -> None: ...


@dataclass(slots=True)
class _Asked:
    """A request that a caller waits for. ``line`` is its line in the file; ``batches`` counts its batches so far."""

    model: JudgeModel
    line: str
    future: asyncio.Future[Completion]
    began: float = field(default_factory=time.monotonic)
    batches: int = 0


@dataclass(slots=True)
class _Lot:
    """Gathered requests to one model: lines by request id, their size in bytes, and when the last one came.

    After ``refusals`` in a row it is submitted again from ``not_before``. ``most`` go into one batch: fewer than
    ``_MOST_REQUESTS`` where the provider's queue had no room for more, and then one batch at a time.
    """

    model: JudgeModel
    lines: dict[str, str] = field(default_factory=dict)
    size: int = 0
    last: float = 0.0
    refusals: int = 0
    not_before: float = 0.0
    most: int = _MOST_REQUESTS


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
        self._asked: dict[str, _Asked] = {}
        self._times: Counter[str] = Counter()
        self._under_way: dict[str, set[str]] | None = None
        self._working: asyncio.Task[None] | None = None
        self._making: asyncio.Task[None] | None = None

    async def complete(self, request: JudgeRequest, model: JudgeModel) -> Completion:
        """Submit the request with others, and wait for its answer. Raises ``ProviderError`` where there is none.

        What a batch does not answer is put into the next one, at most ``_MOST_BATCHES`` times.
        """
        body = _body(request, model)
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:40]
        self._times[digest] += 1  # an equal request is another one
        name = f"sidejudge-{digest}-{self._times[digest]}"
        line = json.dumps({"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body})
        asked = _Asked(model, line, asyncio.get_running_loop().create_future())
        self._asked[name] = asked
        try:
            if not any(name in ids for ids in (await self._known()).values()):
                self._gather(name, asked)
            if self._working is None or self._working.done():
                self._working = asyncio.create_task(self._work())
            return await asked.future
        finally:
            del self._asked[name]

    def _gather(self, name: str, asked: _Asked) -> None:
        lot = self._lot(asked.model)
        lot.lines[name] = asked.line
        lot.size, lot.last = lot.size + len(asked.line), time.monotonic()

    def _lot(self, model: JudgeModel) -> _Lot:
        return self._lots.setdefault((model.name, model.api_base), _Lot(model))

    async def at_once(self, request: JudgeRequest, model: JudgeModel) -> Completion:
        """Ask by itself, within a minute, at the full price: whether the provider answers cannot wait for a day."""
        return await self._client.complete(request, replace(model, timeout_s=min(model.timeout_s, _AT_ONCE_S)))

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
        """Stop waiting; idempotent. A batch that is just being submitted is noted first, for it is paid for."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)
        if self._making is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.gather(self._making, return_exceptions=True), _LAST_S)

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
            self._lots.clear()
            for name in self._asked:
                self._fail(name, ProviderError(ProviderErrorKind.UNREACHABLE, type(error).__name__))

    async def _submit_and_poll(self) -> None:
        looked = 0.0
        while any(self._waits(name) for name in self._asked):
            for lot in list(self._lots.values()):
                full = len(lot.lines) >= _MOST_REQUESTS or lot.size >= _MOST_BYTES
                now = time.monotonic()
                due = lot.lines and (full or now - lot.last >= self._gather_s) and now >= lot.not_before
                if due and not await self._waits_for_room(lot):
                    await self._submit(lot)
            if time.monotonic() - looked >= self._poll_s:
                looked = time.monotonic()
                for batch, ids in list((await self._known()).items()):
                    if any(self._waits(name) for name in ids):
                        await self._poll(batch, ids)
            await asyncio.sleep(min(self._gather_s, self._poll_s) / 4)

    def _waits(self, name: str) -> bool:
        asked = self._asked.get(name)
        return asked is not None and not asked.future.done()

    async def _waits_for_room(self, lot: _Lot) -> bool:
        """Whether it has to wait until another batch to its model has ended."""
        if lot.most == _MOST_REQUESTS:
            return False
        under_way = (name for ids in (await self._known()).values() for name in ids if self._waits(name))
        return any(self._lot(self._asked[name].model) is lot for name in under_way)

    async def _submit(self, lot: _Lot) -> None:
        taken, model = dict(list(lot.lines.items())[: lot.most]), lot.model
        for name in taken:
            del lot.lines[name]
        lot.size = sum(map(len, lot.lines.values()))
        lines = {name: line for name, line in taken.items() if self._waits(name)}
        if not lines:
            return
        content = "".join(f"{line}\n" for line in lines.values()).encode()
        try:
            upload = ("sidejudge.jsonl", content)
            file = await self._provider(model, lambda openai: openai.files.create(file=upload, purpose="batch"))
            self._making = asyncio.create_task(self._make(model, str(file.id), list(lines)))
            await asyncio.shield(self._making)
        except ProviderError as error:
            self._refused(lot, lines, error)

    async def _make(self, model: JudgeModel, file: str, names: list[str]) -> None:
        """Submit a batch and note it."""
        made = await self._provider(
            model,
            lambda openai: openai.batches.create(
                input_file_id=file, endpoint="/v1/chat/completions", completion_window="24h"
            ),
        )
        batch = str(made.id)
        (await self._known())[batch] = set(names)
        for name in names:
            if (asked := self._asked.get(name)) is not None:
                asked.batches += 1
        await self._note(batch, names)
        log.info("a batch was handed in", extra={"batch": batch, "requests": len(names), "judge": model.name})

    def _refused(self, lot: _Lot, lines: Mapping[str, str], error: ProviderError) -> None:
        """A batch could not be submitted: once more after a pause where that may help, else its requests fail."""
        lot.refusals += 1
        if error.kind in _PASSING and lot.refusals <= _MOST_REFUSALS:
            lot.lines = {**lines, **lot.lines}
            lot.size = sum(map(len, lot.lines.values()))
            lot.not_before = time.monotonic() + self._poll_s * 2**lot.refusals
            log.warning("a batch could not be handed in; it is tried again", extra={"cause": str(error)})
            return
        lot.refusals = 0
        for name in lines:
            self._fail(name, error)

    async def _note(self, batch: str, names: Iterable[str]) -> None:
        """Keep which requests a batch answers; none: forget it."""
        ids = sorted(names)
        await self._notes.change({batch: json.dumps({"ids": ids, "at": time.time()}) if ids else None})

    async def _poll(self, batch: str, ids: set[str]) -> None:
        model = next(self._asked[name].model for name in ids if name in self._asked)
        try:
            status, why, files = await self._look(model, batch)
            if status == _NO_ROOM:
                await self._in_parts(model, batch, ids, why)
                return
            if status != _VALIDATING:
                self._lot(model).refusals = 0
            if status not in _ENDED:
                return
            texts = [await self._text(model, each) for each in files]
        except ProviderError as error:
            log.warning("a batch could not be looked at", extra={"batch": batch, "cause": str(error)})
            return
        none = ProviderError(ProviderErrorKind.OVERLOADED, f"the batch is {status} without it: {why}")
        unanswered = dict.fromkeys(ids, none)
        for text in texts:
            for line in text.split("\n"):  # what else ends a line for Python may stand within an answer
                self._take(line, unanswered)
        if len(unanswered) < len(ids):
            lot = self._lot(model)
            lot.most = min(_MOST_REQUESTS, 2 * lot.most)  # the room may have been taken by batches of others
        for name, cause in unanswered.items():
            self._again(name, cause)
        if unanswered:  # they are submitted again; what was answered and paid for is still found here
            known = await self._known()
            known[batch] = ids - unanswered.keys()
            await self._note(batch, known[batch])
        log.info("a batch has ended", extra={"batch": batch, "status": status, "unanswered": len(unanswered)})

    async def _in_parts(self, model: JudgeModel, batch: str, ids: set[str], why: str) -> None:
        """Submit the requests of a batch that the provider's queue had no room for in smaller parts, after a pause."""
        lot, waiting = self._lot(model), [name for name in sorted(ids) if self._waits(name)]
        for name in waiting:
            self._asked[name].batches -= 1
        lot.most = max(1, min(lot.most, len(waiting)) // 2)
        (await self._known()).pop(batch)
        await self._note(batch, ())
        lines = {name: self._asked[name].line for name in waiting}
        self._refused(lot, lines, ProviderError(ProviderErrorKind.RATE_LIMITED, why))

    async def _look(self, model: JudgeModel, batch: str) -> tuple[str, str, list[str]]:
        """The state of a batch, what went wrong with it, and the ids of its files."""
        try:
            found = await self._provider(model, lambda openai: openai.batches.retrieve(batch))
        except ProviderError as error:
            if error.kind is not ProviderErrorKind.MODEL_NOT_FOUND:
                raise
            return "failed", "the provider does not know it any more", []
        errors = (found.errors.data or ()) if found.errors else ()
        why = "; ".join(str(each.message) for each in errors)
        if found.status == "failed" and any(each.code == _NO_ROOM_CODE for each in errors):
            return _NO_ROOM, why, []
        return str(found.status), why, [str(each) for each in (found.output_file_id, found.error_file_id) if each]

    async def _text(self, model: JudgeModel, file: str) -> str:
        """The text of a file; empty if the file is gone."""
        try:
            return str((await self._provider(model, lambda openai: openai.files.content(file))).text)
        except ProviderError as error:
            if error.kind is not ProviderErrorKind.MODEL_NOT_FOUND:
                raise
            log.warning("a file of a batch is gone", extra={"file": file})
            return ""

    def _take(self, line: str, unanswered: dict[str, ProviderError]) -> None:
        """One line of an output file. An answer, and an error that would come again, leave ``unanswered``."""
        try:
            found = json.loads(line)
            name, response = found["custom_id"], found.get("response") or {}
        except (ValueError, KeyError, TypeError, RecursionError):
            return
        if not isinstance(name, str) or name not in unanswered:
            return
        try:
            if (status := response.get("status_code", 0)) != 200:  # HTTP's OK
                raise _error_of(found, status)
            if (asked := self._asked.get(name)) is not None and not asked.future.done():
                asked.future.set_result(completion_of(response["body"], asked.model, time.monotonic() - asked.began))
        except ProviderError as error:
            if error.kind in _PASSING:
                unanswered[name] = error
                return
            self._fail(name, error)
        except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError):
            self._fail(name, ProviderError(ProviderErrorKind.BAD_ANSWER, "a line of the batch cannot be read"))
        del unanswered[name]

    def _again(self, name: str, error: ProviderError) -> None:
        """Put a request into the next batch; it fails where it was in enough of them."""
        asked = self._asked.get(name)
        if asked is not None and asked.batches < _MOST_BATCHES:
            self._gather(name, asked)
        else:
            self._fail(name, error)

    def _fail(self, name: str, error: ProviderError) -> None:
        asked = self._asked.get(name)
        if asked is not None and not asked.future.done():
            asked.future.set_exception(error)

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
