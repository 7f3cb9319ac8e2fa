"""A real Prometheus in a process of its own, that scrapes a monitor each second."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.needs import PROMETHEUS, PROMTOOL
from tests.running import free_port


def backfill(data: Path, scraped: Mapping[str, str]) -> None:
    """Write one scrape of each instance, as OpenMetrics, into the data of a server that is started afterwards.

    A server looks for its targets only some seconds after its start; what it finds here is there at once.
    """
    now_s = time.time()
    lines = []
    for instance, text in scraped.items():
        for family in text_string_to_metric_families(text):
            for each in family.samples:
                named = {**each.labels, "instance": instance, "job": "sidejudge"}.items()
                labels = ",".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in named)
                lines.append(f"{each.name}{{{labels}}} {each.value} {now_s:.3f}")
    file = data.with_name("scraped.txt")
    file.write_text("\n".join([*lines, "# EOF", ""]))
    subprocess.run(
        [PROMTOOL.path(), "tsdb", "create-blocks-from", "openmetrics", str(file), str(data)],
        check=True, capture_output=True,
    )  # fmt: skip


class Prometheus:
    def __init__(
        self, folder: Path, targets: Iterable[str], rules: str | None = None, alertmanager: str | None = None
    ) -> None:
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        (folder / "rules.yaml").write_text(rules or "groups: []")
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [{"job_name": "sidejudge", "static_configs": [{"targets": list(targets)}]}],
        }
        if alertmanager:
            reported = {"static_configs": [{"targets": [alertmanager.removeprefix("http://")]}]}
            config["alerting"] = {"alertmanagers": [reported]}
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self._log = (folder / "prometheus.log").open("wb")
        self.process = subprocess.Popen(
            [
                PROMETHEUS.path(), f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage",
            ],
            stdout=self._log, stderr=self._log,
        )  # fmt: skip
        self.http = httpx.Client(base_url=self.url, timeout=10)

    def get(self, path: str, **query: str) -> Any:
        """What an API call answers under ``data``; an error of Prometheus is an error here."""
        answer = self.http.get(f"/api/v1/{path}", params=query)
        if answer.status_code == 503:  # it is still starting
            answer.raise_for_status()
        assert answer.status_code == 200, f"{query}: {answer.text}"
        return answer.json()["data"]

    def query(self, expr: str) -> list[dict[str, Any]]:
        return self.get("query", query=expr)["result"]

    def course(self, expr: str, begin_s: float, end_s: float) -> dict[tuple[tuple[str, str], ...], list[float]]:
        """What the expression answered second by second, by the labels of its series."""
        reported = self.get("query_range", query=expr, start=f"{begin_s:.3f}", end=f"{end_s:.3f}", step="1s")["result"]
        return {tuple(sorted(each["metric"].items())): [float(v) for _, v in each["values"]] for each in reported}

    def until(self, condition: Callable[[], object], otherwise: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while True:
            try:
                if condition():
                    return
            except httpx.HTTPError:
                assert self.process.poll() is None, otherwise
            assert time.monotonic() < end, otherwise
            time.sleep(0.2)

    def close(self) -> None:
        self.http.close()
        self.process.terminate()
        self.process.wait(timeout=20)
        self._log.close()
