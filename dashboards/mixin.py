"""Mixin: rules and dashboards as the folder that users of jsonnet import, in plain JSON but for its few lines."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sidejudge.dashboards.grafana.forms import dashboards
from sidejudge.dashboards.rules.groups import rules
from sidejudge.scoring.alerts.declaration import Declaration


def mixin(declared: Declaration, runbooks: str | None = None) -> Mapping[str, str]:
    """File name to content. Recordings and alerts share groups, whose order matters, so all are under alerts."""
    boards = dashboards(declared, runbooks)
    imports = "\n".join(f"    '{name}': (import '{name}')," for name in boards)
    return {
        "mixin.libsonnet": "{\n  prometheusAlerts+:: { groups+: (import 'rules.json').groups },\n"
        f"  prometheusRules+:: {{}},\n  grafanaDashboards+:: {{\n{imports}\n  }},\n}}\n",
        "rules.json": json.dumps(rules(declared, runbooks), indent=1, ensure_ascii=False) + "\n",
        **boards,
    }
