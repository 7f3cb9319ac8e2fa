"""An attacker with a budget: readers without rights, some of whom never read, and a caller of the application.

He has no token and no credentials. What he writes (headers, attributes, contents) is his to choose. Through a proxy
that adds nothing, his requests are those of a process on the monitor's machine, as they are here.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import sys
import threading
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from tests.faults.campaign.hostile import CANARY, JSON

SERVICE = "attacked"
"""The service to which he claims that his traces belong."""
PATHS = ("/", "/verdicts", "/traces", "/v1/verdicts?limit=1000", "/v1/traces?limit=1000", "/v1/status", "/metrics")
TOKENS = ("", "0" * 43, "null")
_EVERY = 8192
"""Characters of one text, of all that there are."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What the attacker can afford at once."""

    readers: int = 4
    slow_readers: int = 40
    """Connections that ask for much and do not read the answer."""
    keys: int = 200_000
    """Keys of one JSON object."""
    flipped_bytes: int = 20
    """Bytes of the store's file that are damaged at the end."""


class Attacker:
    """``broken`` is called with what he should not have had."""

    def __init__(self, seed: int, budget: Budget, broken) -> None:
        self._seed, self.budget, self._broken = seed, budget, broken
        self.asked = self.unread = 0

    def threads(self, api: str, stop: threading.Event) -> list[threading.Thread]:
        """His readers, which end with ``stop``."""
        ready = [threading.Thread(target=self._read, args=(api, stop, n)) for n in range(self.budget.readers)]
        return [*ready, threading.Thread(target=self._never_read, args=(api, stop))]

    def _read(self, api: str, stop: threading.Event, number: int) -> None:
        dice = random.Random(self._seed + number)
        known = ["0" * 32]
        with httpx.Client(timeout=30) as client:  # one for all: to make one takes as long as many requests
            while not stop.is_set():
                self._ask(client, api, dice, known)
                time.sleep(dice.uniform(0.05, 0.3))

    def _ask(self, client: httpx.Client, api: str, dice: random.Random, known: list[str]) -> None:
        path = dice.choice([*PATHS, *(f"{under}/{known[-1]}" for under in ("/traces", "/v1/traces"))])
        headers = {"x-sidejudge-contents-token": dice.choice(TOKENS), "cookie": f"sidejudge={dice.choice(TOKENS)}"}
        with contextlib.suppress(httpx.HTTPError):
            answer = client.get(api + path, headers=headers)
            self.asked += 1
            if CANARY in answer.text:
                self._broken(f"contents are shown to a reader without rights: {path}")
            if path.startswith("/v1/verdicts") and answer.status_code == 200:
                known += [each["trace_id"] for each in answer.json()["verdicts"][:1] if each["trace_id"]]

    def _never_read(self, api: str, stop: threading.Event) -> None:
        target = urlsplit(api)
        while not stop.is_set():
            with contextlib.ExitStack() as held:
                for _ in range(self.budget.slow_readers):
                    with contextlib.suppress(OSError):
                        peer = socket.create_connection((str(target.hostname), int(target.port or 0)), 1)
                        held.enter_context(peer).sendall(b"GET /v1/verdicts?limit=1000 HTTP/1.1\r\nhost: x\r\n\r\n")
                        self.unread += 1
                stop.wait(5)
            stop.wait(5)  # honest readers have a turn

    def request(self, dice: random.Random) -> tuple[bytes, dict[str, str]]:
        """A trace of his, with claims about its weight, or of contents that cost much to read."""
        kind = dice.randrange(4)
        if kind == 0:
            keys = {f"k{n}": 1 for n in range(self.budget.keys)}
            return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [keys]}]}]}).encode(), {"content-type": JSON}
        begin = dice.randrange(0, sys.maxunicode, _EVERY)
        every = "".join(chr(code) for code in range(begin, begin + _EVERY) if not 0xD800 <= code < 0xE000)
        said = {
            "input.value": f"{CANARY} {every if kind == 1 else ''}", "output.value": f"{CANARY} {every}",
            "gen_ai.operation.name": "invoke_agent", "sidejudge.handover": f"{dice.getrandbits(56):014x}",
        }  # fmt: skip
        now_ns = time.time_ns()
        span = {
            "traceId": dice.randbytes(2).hex() + "f" * 28, "spanId": dice.randbytes(8).hex(), "name": "run",
            "traceState": f"ot=th:{'f' * dice.randint(1, 14)};rv:{'f' * 14}", "startTimeUnixNano": str(now_ns - 10**9),
            "endTimeUnixNano": str(now_ns), "attributes": _attributes(said),
        }  # fmt: skip
        resource = _attributes({"service.name": SERVICE, "sidejudge.handover": f"ot=th:{'f' * 13};sig:00"})
        body = {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [{"spans": [span]}]}]}
        return json.dumps(body).encode(), {"content-type": JSON}


def _attributes(values: dict[str, str]) -> list[dict[str, object]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
