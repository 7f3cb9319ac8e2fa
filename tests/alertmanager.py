"""A real Alertmanager in a process of its own, which passes on what it is sent to a webhook."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.needs import ALERTMANAGER
from tests.running import free_port


class RealAlertmanager:
    def __init__(self, url: str) -> None:
        self.url = url

    def alerts(self, **labels: str) -> list[dict[str, Any]]:
        """The alerts that it holds and that are not over."""
        query = [("filter", f'{name}="{value}"') for name, value in labels.items()]
        answer = httpx.get(f"{self.url}/api/v2/alerts", params=query, timeout=10)
        return answer.raise_for_status().json()


@contextmanager
def alertmanager(
    folder: Path, webhook: str = "http://127.0.0.1:1/", config: dict[str, Any] | None = None
) -> Iterator[RealAlertmanager]:
    """Started with this configuration; without one, everything goes to the webhook, each alert by itself."""
    binary = ALERTMANAGER.path()
    folder.mkdir(parents=True, exist_ok=True)
    config = config or {
        "route": {"receiver": "hook", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s",
                  "repeat_interval": "24h"},
        "receivers": [{"name": "hook", "webhook_configs": [{"url": webhook, "send_resolved": True}]}],
    }  # fmt: skip
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(config))
    url = f"http://127.0.0.1:{(port := free_port())}"
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        [binary, f"--config.file={folder / 'alertmanager.yml'}", f"--storage.path={folder / 'data'}",
         f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="],
        stdout=log, stderr=log,
    )  # fmt: skip
    log.close()
    try:
        wait_for(url, process, folder)
        yield RealAlertmanager(url)
    finally:
        process.terminate()
        process.wait(timeout=20)


def wait_for(url: str, process: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"{url}/-/ready", timeout=2).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"Alertmanager did not start:\n{(folder / 'log').read_text()}")
