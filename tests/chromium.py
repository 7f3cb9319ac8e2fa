"""A real Chromium, driven over the pipe of its own debugging protocol; nothing besides the browser is needed."""

from __future__ import annotations

import base64
import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.needs import CHROMIUM

_LAUNCH = """
import fcntl, os, sys
reading, writing = (fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3])
os.dup2(reading, 3); os.dup2(writing, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The protocol wants its two ends of the pipe as descriptors 3 and 4."""
_WAIT_S = 60


class Browser:
    """One browser with one tab. ``said`` is what the console, the log and dialogs said, ``asked`` every address."""

    def __init__(self, folder: Path) -> None:
        path = CHROMIUM.path()
        reading, self._out = os.pipe()
        self._in, writing = os.pipe()
        self.stated: list[str] = []
        self.requested: list[str] = []
        self.dialogs: list[str] = []
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._waiting = threading.Condition()
        self._errors = (folder / "chromium.log").open("wb")
        self._process = subprocess.Popen(
            [
                sys.executable, "-c", _LAUNCH, str(reading), str(writing), path, "--headless=new", "--no-sandbox",
                "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run",
                "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}",
            ],
            pass_fds=(reading, writing), stdout=self._errors, stderr=self._errors,
        )  # fmt: skip
        os.close(reading)
        os.close(writing)
        self._loaded: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._session: str | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """One command of the protocol and its answer."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        with self._waiting:
            assert self._waiting.wait_for(lambda: number in self._answers, _WAIT_S), f"{method}: no answer"
        answer = self._answers.pop(number)
        assert "error" not in answer, (method, answer["error"])
        return dict(answer["result"])

    def look(self, *, width: int = 1280, height: int = 900, scheme: str = "light", scripts: bool = True) -> None:
        """How the page is looked at: size, light or dark, with or without scripts."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def open(self, url: str) -> None:
        """Go there, and return once it is loaded."""
        while not self._loaded.empty():
            self._loaded.get()
        found = self.call("Page.navigate", url=url)
        assert "errorText" not in found, found
        self._loaded.get(timeout=_WAIT_S)
        self.until("document.readyState === 'complete'")  # the event may be that of the page before

    def ask(self, expression: str) -> Any:
        """What an expression of the page is worth, as JSON; promises are waited for."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = 30) -> None:
        """Return once the expression holds; it must within this long."""
        end = time.monotonic() + seconds
        while not self.ask(f"Boolean({expression})"):
            assert time.monotonic() < end, f"{expression} did not come true"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """One key, as a person presses it."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}
        text = {"Enter": "\r", " ": " "}.get(key, "")
        about = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def picture(self, path: Path) -> None:
        """The whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        os.close(self._out)
        os.close(self._in)
        self._errors.close()

    def _read(self) -> None:
        rest = b""
        while chunk := os.read(self._in, 1 << 16):
            *whole, rest = (rest + chunk).split(b"\0")
            for text in whole:
                self._hear(json.loads(text))

    def _hear(self, message: dict[str, Any]) -> None:
        if "id" in message:
            with self._waiting:
                self._answers[message["id"]] = message
                self._waiting.notify_all()
            return
        reported = message.get("params", {})
        match message["method"]:
            case "Page.loadEventFired":
                self._loaded.put(None)
            case "Network.requestWillBeSent":
                self.requested.append(reported["request"]["url"])
            case "Page.javascriptDialogOpening":
                self.dialogs.append(reported["message"])
            case "Runtime.consoleAPICalled":
                self.stated.append(" ".join(str(each.get("value")) for each in reported["args"]))
            case "Runtime.exceptionThrown":
                self.stated.append(str(reported["exceptionDetails"].get("exception", reported["exceptionDetails"])))
            case "Log.entryAdded":
                self.stated.append(reported["entry"]["text"])
