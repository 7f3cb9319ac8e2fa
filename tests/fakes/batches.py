"""A provider's batch endpoint (OpenAI's protocol): files in, batches that are done after a few looks, files out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.fakes.openai import Act, Behaviour, Seen

NO_ROOM = (
    "Enqueued token limit reached for gpt-4o-mini in organization org-1. Limit: 2,000,000 enqueued tokens. "
    "Please try again once some in_progress batches have been completed."
)
_PART = re.compile(rb'filename="[^"]*"\r\n(?:[^\r\n]+\r\n)*\r\n(.*?)\r\n--', re.DOTALL)


@dataclass
class Batches:
    """``answer`` is asked about each line; ``lost`` says which lines have no answer. Use it as a standing behaviour.

    ``errors`` is the file of errors that a batch names; ``delay_s`` is how long it takes to make one, in s. ``room`` is
    how many requests are queued at a time: a batch beyond it is taken, and has failed at the first look.
    """

    answer: Behaviour
    looks: int = 1
    ends: str = "completed"
    lost: Callable[[int], bool] = lambda _: False
    errors: str | None = None
    delay_s: float = 0.0
    room: int | None = None
    files: list[bytes] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, seen: Seen) -> Act:
        path = seen.path.removeprefix("/v1")
        if path == "/files":
            (content,) = _PART.findall(seen.raw)
            self.files.append(content)
            return _json({"id": f"file-{len(self.files) - 1}", "object": "file", "bytes": len(content),
                          "created_at": 1, "filename": "x.jsonl", "purpose": "batch"})  # fmt: skip
        if path == "/batches":
            number = int(seen.body["input_file_id"].removeprefix("file-"))
            lines = len(self.files[number].splitlines())
            queued = sum(each["lines"] for each in self.batches if each["looks"] < self.looks and not each["full"])
            full = self.room is not None and queued + lines > self.room
            self.batches.append({"input": number, "looks": 0, "lines": lines, "full": full, **seen.body})
            return replace(_json(self._batch(len(self.batches) - 1)), delay_s=self.delay_s)
        if path.startswith("/batches/"):
            number = int(path.rpartition("-")[2])
            self.batches[number]["looks"] += 1
            return _json(self._batch(number))
        if path.startswith("/files/out-"):
            return Act(body=self._output(int(path.removeprefix("/files/out-").removesuffix("/content"))))
        return Act(status=404, body=b"{}")

    def _batch(self, number: int) -> dict[str, Any]:
        made = self.batches[number]
        done = made["looks"] >= self.looks and not made["full"]
        errors = [{"code": "token_limit_exceeded", "message": NO_ROOM, "line": None, "param": None}]
        failed = {"status": "failed", "errors": {"object": "list", "data": errors}} if made["full"] else {}
        return {
            "id": f"batch-{number}", "object": "batch", "endpoint": made["endpoint"], "created_at": 1,
            "input_file_id": made["input_file_id"], "completion_window": "24h",
            "status": self.ends if done else "in_progress",
            "output_file_id": f"out-{number}" if done else None, "error_file_id": self.errors if done else None,
            **(failed if made["looks"] else {"status": "validating"} if made["full"] else {}),
        }  # fmt: skip

    def _output(self, number: int) -> bytes:
        lines = []
        for at, line in enumerate(self.files[self.batches[number]["input"]].splitlines()):
            if self.lost(at):
                continue
            asked = json.loads(line)
            act = self.answer(Seen("/v1/chat/completions", {}, json.dumps(asked["body"]).encode()))
            response = {"status_code": act.status, "request_id": "r", "body": json.loads(act.body)}
            found = {"id": "l", "custom_id": asked["custom_id"], "response": response, "error": None}
            lines.append(json.dumps(found, ensure_ascii=False))
        return "\n".join(reversed(lines)).encode()


def _json(body: dict[str, Any]) -> Act:
    return Act(body=json.dumps(body).encode())
