"""Hostile requests: recorded payloads that are mutated, and callers that do not keep to the protocol."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

CANARY = "zqcanary"
"""Stands in contents that are sent, and nowhere else."""
PROTOBUF, JSON = "application/x-protobuf", "application/json"
_WORDS = (b"\x00", b"\xff" * 9, b"\x0a" * 40, b"\x80" * 12, b"nan", b"1e999", b"\xed\xa0\x80", b"../", b"\r\n\r\n")
_DEEP = json.loads("[" * 500 + "]" * 500)
_VALUES = (
    True, None, -1, 10**40, "9" * 5000, "", "x" * 10_000, [], {}, [[[[]]]], _DEEP, "\ud800", "é" * 50, 1e308, "NaN",
    float("nan"), float("-inf"), "0" * 32, "0" * 16, "\ufdfa" * 5000, 2**64, -(2**63) - 1, {"stringValue": {}},
)  # fmt: skip


def recordings(folder: Path) -> list[bytes]:
    """The payloads that are mutated: recorded requests of real clients."""
    return [path.read_bytes() for path in sorted(folder.rglob("*.pb"))]


def mutated(dice: random.Random, payload: bytes) -> bytes:
    """The payload with a few bytes flipped, cut out, doubled, or replaced by words that parsers stumble over."""
    data = bytearray(payload)
    for _ in range(dice.randint(1, 8)):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(5):
            case 0 if data:
                data[at % len(data)] ^= 1 << dice.randrange(8)
            case 1:
                del data[at : at + dice.randint(1, 200)]
            case 2:
                data[at:at] = data[at : at + dice.randint(1, 200)]
            case 3:
                data[at:at] = dice.choice(_WORDS)
            case _:
                del data[at:]
    return bytes(data)


def json_request(dice: random.Random) -> bytes:
    """An OTLP/JSON request with values of the wrong kind in places of the right name."""
    span = {
        "traceId": dice.randbytes(16).hex(), "spanId": dice.randbytes(8).hex(), "name": "n",
        "startTimeUnixNano": "1", "endTimeUnixNano": "2", "attributes": [
            {"key": key, "value": {"stringValue": f"{CANARY} {n}"}}
            for n, key in enumerate(("input.value", "output.value", "gen_ai.prompt"))
        ],
        "status": {"code": 1}, "events": [],
    }  # fmt: skip
    for key in dice.sample(sorted(span), k=dice.randint(1, 3)):
        span[key] = dice.choice(_VALUES)
    if dice.random() < 0.3:
        span["attributes"] = [
            {"key": "k", "value": {dice.choice(("bytesValue", "intValue", "kvlistValue")): dice.choice(_VALUES)}}
        ]
    scope: object = {"spans": [span]}
    return json.dumps(
        {"resourceSpans": [{"scopeSpans": [scope if dice.random() < 0.9 else dice.choice(_VALUES)]}]}
    ).encode()


def log_request(dice: random.Random) -> bytes:
    """The same for log records."""
    record = {
        "traceId": dice.randbytes(16).hex(), "spanId": dice.randbytes(8).hex(), "eventName": "gen_ai.user.message",
        "timeUnixNano": "1", "body": {"stringValue": "v"}, "attributes": [],
    }  # fmt: skip
    for key in dice.sample(sorted(record), k=dice.randint(1, 3)):
        record[key] = dice.choice(_VALUES)
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()


def compressed(dice: random.Random, data: bytes) -> tuple[bytes, str]:
    """A body in one of the encodings that are known, or in one that its name does not fit."""
    made, name = dice.choice([
        (gzip.compress(data, 1), "gzip"), (zlib.compress(data, 1), "deflate"),
        (zlib.compress(data, 1)[2:-4], "deflate"),
        (gzip.compress(b"", 1) * 2000 + gzip.compress(data, 1), "gzip"), (data, "zstd"), (data, "br"),
        (gzip.compress(gzip.compress(data, 1), 1), "gzip"),
    ])  # fmt: skip
    return mutated(dice, made) if dice.random() < 0.3 else made, name


def requests(dice: random.Random, recorded: list[bytes]) -> Iterator[tuple[bytes, dict[str, str]]]:
    """Bodies and headers, without end; what is meant for log records has the path ``/v1/logs`` in ``x-path``."""
    while True:
        match dice.randrange(11):
            case 8:
                yield log_request(dice), {"content-type": JSON, "x-path": "/v1/logs"}
            case 9:
                body, encoding = compressed(dice, dice.choice(recorded))
                yield body, {"content-type": PROTOBUF, "content-encoding": encoding}
            case 10:
                path = dice.choice(("/v1/logs", "/v1/metrics", "/api/public/otel/v1/traces", "/v1/traces/../logs"))
                yield mutated(dice, dice.choice(recorded)), {"content-type": PROTOBUF, "x-path": path}
            case 0:
                yield json_request(dice), {"content-type": JSON}
            case 1:
                yield (
                    gzip.compress(bytes(dice.randint(0, 4_000_000)), 1),
                    {"content-type": PROTOBUF, "content-encoding": "gzip"},
                )
            case 2:
                yield mutated(dice, gzip.compress(dice.choice(recorded))), {
                    "content-type": PROTOBUF, "content-encoding": "gzip",
                }  # fmt: skip
            case 3:
                yield b"\x12\x00" * dice.randint(1, 200_000), {"content-type": PROTOBUF}
            case 4:
                yield (
                    mutated(dice, dice.choice(recorded)),
                    {"content-type": dice.choice((JSON, "text/plain", "", "a" * 500))},
                )
            case _:
                yield mutated(dice, dice.choice(recorded)), {"content-type": PROTOBUF}


def misbehave(dice: random.Random, url: str) -> None:
    """One connection that stalls, breaks off, or pipelines without reading; a second at most."""
    target = urlsplit(url)
    head = b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
    bodies = (
        head[: dice.randrange(len(head))],
        head + b"content-length: 100000\r\n\r\n" + bytes(dice.randrange(1000)),
        head + b"transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        head + b"content-length: -1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n" * dice.randint(1, 20_000),
        b"\x16\x03\x01" + dice.randbytes(200),
        head + b"".join(b"x-%d: y\r\n" % n for n in range(dice.randint(1, 5000))) + b"\r\n",
        head + b"x: " + b"y" * dice.randint(1, 200_000) + b"\r\n\r\n",
        head.replace(b"1.1", b"1.0") + b"content-length: 3\r\n\r\nabc",
        head.replace(b"1.1", b"0.9") + b"\r\n",
        head + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n5\r\nhello",
        head + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + dice.randbytes(50),
        head + b"expect: 100-continue\r\ncontent-length: 10\r\n\r\n",
    )
    with (
        contextlib.suppress(OSError),
        socket.create_connection((str(target.hostname), int(target.port or 0)), 1) as peer,
    ):
        peer.settimeout(1)
        peer.sendall(dice.choice(bodies))
        if dice.random() < 0.5:
            peer.recv(100)
