"""Forms: the dashboards as the files that people load: JSON, a ConfigMap for Grafana's side-car, and provisioning."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sidejudge.dashboards.yaml_text import written
from sidejudge.scoring.alerts.declaration import Declaration

from .application import application
from .board import Board
from .monitor import monitor
from .overview import overview
from .rubric import rubric
from .runs import runs


def boards(declared: Declaration, runbooks: str | None = None) -> tuple[Board, ...]:
    """All dashboards, in their usual order of use, querying the records of the rules of ``declared``.

    ``runbooks`` is the address of runbooks (``runbook_link``); None: nothing links to them.
    """
    return overview(declared, runbooks), rubric(declared), application(declared), runs(), monitor()


def dashboards(declared: Declaration, runbooks: str | None = None) -> Mapping[str, str]:
    """File name to dashboard, as JSON."""
    found = boards(declared, runbooks)
    links = [(board.uid, board.title) for board in found]
    return {
        f"{board.uid}.json": json.dumps(board.to_json(links), indent=1, ensure_ascii=False) + "\n" for board in found
    }


def config_map(declared: Declaration, runbooks: str | None = None) -> str:
    """All dashboards as one ConfigMap with the label that Grafana's side-car looks for (``kubectl apply -f``)."""
    labels = {
        "app.kubernetes.io/name": "sidejudge",
        "app.kubernetes.io/component": "dashboards",
        "grafana_dashboard": "1",
    }
    return written(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "sidejudge-dashboards",
                "labels": labels,
                "annotations": {"grafana_folder": "sidejudge"},
            },
            "data": dict(dashboards(declared, runbooks)),
        }
    )


def provider() -> str:
    """For ``/etc/grafana/provisioning/dashboards``: reads the JSON files from a folder."""
    options = {"path": "/var/lib/grafana/dashboards/sidejudge", "foldersFromFilesStructure": False}
    return written(
        {
            "apiVersion": 1,
            "providers": [
                {
                    "name": "sidejudge",
                    "folder": "sidejudge",
                    "type": "file",
                    "allowUiUpdates": False,
                    "options": options,
                }
            ],
        }
    )


def data_source() -> str:
    """For ``/etc/grafana/provisioning/datasources``: a Prometheus whose exemplars lead to traces in Langfuse."""
    link = {
        "name": "trace_id",
        "url": "$LANGFUSE_PROJECT_URL/traces/$${__value.raw}",
        "urlDisplayLabel": "Trace in Langfuse",
    }
    return written(
        {
            "apiVersion": 1,
            "datasources": [
                {
                    "name": "Prometheus", "type": "prometheus", "uid": "prometheus", "access": "proxy",
                    "url": "$PROMETHEUS_URL", "jsonData": {"exemplarTraceIdDestinations": [link]},
                }
            ],
        }
    )  # fmt: skip
