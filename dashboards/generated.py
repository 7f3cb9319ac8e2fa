"""Generated files: rules, dashboards, the mixin and the heads of the runbooks, all written from declarations.

``python -m sidejudge.dashboards`` writes them anew; a test compares them with the repository. The mixin is the folder
of rules and dashboards that users of jsonnet import, plain JSON but for a few lines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from sidejudge.dashboards.grafana.files import alert_rules, config_map, dashboards, data_source, provider
from sidejudge.dashboards.rules.alertmanager import alertmanager, inhibit_rules
from sidejudge.dashboards.rules.groups import prometheus_rule, rule_file, rules
from sidejudge.dashboards.runbooks.pages import pages
from sidejudge.scoring.alerts.declaration import Declaration

FOLDER = Path(__file__).resolve().parent


def files() -> Mapping[Path, str]:
    """Every generated file: its path and its text, under the default configuration."""
    declared = Declaration()
    return {
        FOLDER / "rules" / "sidejudge.rules.yaml": rule_file(declared),
        FOLDER / "rules" / "prometheusrule.yaml": prometheus_rule(declared),
        FOLDER / "rules" / "inhibit_rules.yaml": inhibit_rules(declared),
        FOLDER / "rules" / "alertmanager.yaml": alertmanager(declared),
        **{FOLDER / "grafana" / "json" / name: text for name, text in dashboards(declared).items()},
        **pages(declared),
        FOLDER / "grafana" / "configmap.yaml": config_map(declared),
        FOLDER / "grafana" / "provisioning" / "alert_rules.yaml": alert_rules(declared),
        FOLDER / "grafana" / "provisioning" / "dashboards.yaml": provider(),
        FOLDER / "grafana" / "provisioning" / "datasource.yaml": data_source(),
    }


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
