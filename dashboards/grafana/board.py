"""Board: Grafana's classic dashboard JSON, from a few values: the kinds of panel, and what all of them share.

Classic JSON (schema version 39, Grafana 10 and newer) is what provisioning, ConfigMap side-cars and the catalogue take.
The data source is a variable, never ``__inputs``: those are filled in by the import dialogue only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .firing import firing

Kind: TypeAlias = Literal["stat", "timeseries", "table", "heatmap", "state-timeline", "bargauge"]
Json: TypeAlias = dict[str, Any]
Steps: TypeAlias = tuple[tuple[float | None, str], ...]
"""From which value on which colour holds; the first from ``None``."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24
HEIGHT = 8
GREEN, YELLOW, RED, GREY, BLUE = "green", "orange", "red", "text", "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A PromQL expression and what its series are called. ``exemplars``: dots that lead to traces."""

    expr: str
    legend: str = "__auto"
    instant: bool = False
    exemplars: bool = False
    heatmap: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel; ``mapped`` puts numbers into words."""

    title: str
    description: str
    kind: Kind
    unit: str
    queries: tuple[Query, ...]
    width: int = 12
    height: int = HEIGHT
    steps: Steps = ((None, BLUE),)
    minimum: float | None = None
    maximum: float | None = None
    decimals: int | None = None
    mapped: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    links: tuple[tuple[str, str], ...] = ()
    stacked: bool = False
    dashed: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    """Columns of a table: label or query letter to the column's name, in order."""
    empty: str = ""
    """Why there may be nothing to show."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Units of the columns of a table, where they are not ``unit``."""
    ranked: str = ""
    """The column of a table whose numbers ``mapped`` puts into words; the highest comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardRow:
    """A heading and the panels below it."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardVariable:
    """A variable that is filled by a query; ``query`` None: people type it, ``default`` at first."""

    name: str
    label: str
    query: str | None = None
    default: str = ""
    many: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A dashboard. ``uid`` never changes: links name it."""

    uid: str
    title: str
    description: str
    rows: tuple[DashboardRow, ...]
    variables: tuple[DashboardVariable, ...]
    versions: str = ""
    """PromQL that is there when another version of a service took over: marked in all panels."""

    def to_json(self, boards: Sequence[tuple[str, str]] = ()) -> Json:
        """The dashboard as Grafana reads it; ``boards`` are (uid, title) of those that it links to."""
        return {
            "uid": self.uid, "title": self.title, "description": self.description, "tags": ["sidejudge"],
            "schemaVersion": 39, "version": 1, "editable": False, "graphTooltip": 1, "timezone": "browser",
            "refresh": "1m", "time": {"from": "now-6h", "to": "now"},
            "templating": {"list": [_source(), *map(_variable, self.variables)]},
            "annotations": {
                "list": [_alerts(self.variables), *([_versions(self.versions)] if self.versions else [])]
            },
            "links": [
                {"type": "link", "title": title, "url": f"/d/{uid}", "keepTime": True, "includeVars": True,
                 "targetBlank": False, "icon": "dashboard", "tooltip": "", "tags": [], "asDropdown": False}
                for uid, title in boards if uid != self.uid
            ],
            "panels": _placed(self.rows),
        }  # fmt: skip


def _placed(rows: Sequence[DashboardRow]) -> list[Json]:
    """The panels from left to right, a new line where one does not fit."""
    placed: list[Json] = []
    y = 0
    for row in rows:
        heading = {"type": "row", "title": row.title, "collapsed": False, "panels": []}
        placed.append({"id": len(placed) + 1, "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1}, **heading})
        y, x, tallest = y + 1, 0, 0
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y, tallest = 0, y + tallest, 0
            where = {"x": x, "y": y, "w": panel.width, "h": panel.height}
            placed.append({"id": len(placed) + 1, "gridPos": where, **_panel(panel)})
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    return placed


def _panel(panel: Panel) -> Json:
    defaults: Json = {
        "unit": panel.unit,
        "color": {"mode": "palette-classic" if panel.kind == "timeseries" else "thresholds"},
        "thresholds": {
            "mode": "absolute",
            "steps": [{"value": value, "color": colour} for value, colour in panel.steps],
        },
        "mappings": _mappings(panel) if not panel.ranked else [],
        "links": [{"title": title, "url": url, "targetBlank": True} for title, url in panel.links],
        "custom": _custom(panel),
    }
    if panel.empty:
        defaults["noValue"] = panel.empty
    for key, value in (("min", panel.minimum), ("max", panel.maximum), ("decimals", panel.decimals)):
        if value is not None:
            defaults[key] = value
    overrides = [
        {"matcher": {"id": "byName", "options": column}, "properties": [{"id": "unit", "value": unit}]}
        for column, unit in panel.units.items()
    ]
    options = _OPTIONS[panel.kind]
    if panel.ranked:
        mapped = {"id": "mappings", "value": _mappings(panel)}
        overrides.append({"matcher": {"id": "byName", "options": panel.ranked}, "properties": [mapped]})
        options = {**options, "sortBy": [{"displayName": panel.ranked, "desc": True}]}
    return {
        "type": panel.kind, "title": panel.title, "description": panel.description, "datasource": SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": overrides},
        "options": options,
        "targets": [_target(query, chr(ord("A") + n), panel.kind) for n, query in enumerate(panel.queries)],
        "transformations": _columns(panel) if panel.kind == "table" else [],
    }  # fmt: skip


def _mappings(panel: Panel) -> list[Json]:
    return [{"type": "value", "options": _words(panel.mapped)}] if panel.mapped else []


def _words(mapped: Mapping[int, tuple[str, str]]) -> Json:
    return {str(k): {"text": text, "color": c, "index": n} for n, (k, (text, c)) in enumerate(mapped.items())}


def _custom(panel: Panel) -> Json:
    if panel.kind == "timeseries":
        return {
            "lineWidth": 2, "fillOpacity": 20 if panel.stacked else 0, "showPoints": "never", "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "dashed" if panel.dashed else "off"},
        }  # fmt: skip
    if panel.kind == "state-timeline":
        return {"fillOpacity": 80, "lineWidth": 0}
    if panel.kind == "table":
        return {"cellOptions": {"type": "color-text" if panel.mapped else "auto"}, "align": "auto"}
    return {}


_OPTIONS: Mapping[Kind, Json] = {
    "stat": {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value",
        "graphMode": "area", "textMode": "auto", "justifyMode": "auto", "orientation": "auto",
    },
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "table": {"showHeader": True, "cellHeight": "sm"},
    "heatmap": {
        "calculate": False, "cellGap": 1, "color": {"mode": "scheme", "scheme": "Blues", "steps": 32},
        "yAxis": {"axisPlacement": "left", "unit": "short"}, "tooltip": {"mode": "single", "yHistogram": True},
        "legend": {"show": True}, "rowsFrame": {"layout": "le"},
    },
    "state-timeline": {
        "mergeValues": True, "showValue": "never", "rowHeight": 0.9, "tooltip": {"mode": "single", "sort": "none"},
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
    },
    "bargauge": {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "displayMode": "basic",
        "orientation": "horizontal", "showUnfilled": True, "valueMode": "color",
    },
}  # fmt: skip


def _target(query: Query, letter: str, kind: Kind) -> Json:
    instant = query.instant or kind in {"table", "bargauge"}
    return {
        "refId": letter, "datasource": SOURCE, "expr": query.expr, "legendFormat": query.legend,
        "instant": instant, "range": not instant, "exemplar": query.exemplars, "editorMode": "code",
        "format": "table" if kind == "table" else "heatmap" if query.heatmap else "time_series",
    }  # fmt: skip


def _columns(panel: Panel) -> list[Json]:
    """Several queries as one table: joined by their labels, with the columns that are named, in that order."""
    many = len(panel.queries) > 1
    names = {(f"Value #{k}" if many else "Value") if len(k) == 1 else k: v for k, v in panel.columns.items()}
    keep = {"id": "filterFieldsByName", "options": {"include": {"names": list(names)}}}
    order = {"indexByName": {name: n for n, name in enumerate(names)}, "renameByName": names, "excludeByName": {}}
    return [{"id": "merge", "options": {}}, keep, {"id": "organize", "options": order}]


def _source() -> Json:
    return {
        "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0,
        "current": {}, "options": [], "refresh": 1, "regex": "", "multi": False, "includeAll": False,
        "skipUrlSync": False,
    }  # fmt: skip


def _variable(variable: DashboardVariable) -> Json:
    if variable.query is None:
        chosen = {"text": variable.default, "value": variable.default, "selected": True}
        return {
            "name": variable.name, "label": variable.label, "type": "textbox", "query": variable.default, "hide": 0,
            "current": chosen, "options": [chosen], "skipUrlSync": False,
        }  # fmt: skip
    return {
        "name": variable.name, "label": variable.label, "type": "query", "datasource": SOURCE, "hide": 0,
        "definition": variable.query, "query": {"query": variable.query, "refId": variable.name, "qryType": 1},
        "refresh": 2, "sort": 1, "regex": "", "multi": variable.many, "includeAll": variable.many,
        "allValue": ".*" if variable.many else None, "current": {}, "options": [], "skipUrlSync": False,
    }  # fmt: skip


def _alerts(variables: Sequence[DashboardVariable]) -> Json:
    expr = firing([each.name for each in variables], "critical", "warning")
    return _annotation("Alerts", RED, expr, title="{{alertname}}", text="{{service}} {{rubric}}", tags="severity")


def _versions(expr: str) -> Json:
    text = "{{environment}}: another version"
    return _annotation("Versions", BLUE, expr, title="{{service}} {{version}}", text=text, tags="version")


def _annotation(name: str, colour: str, expr: str, *, title: str, text: str, tags: str) -> Json:
    return {
        "name": name, "datasource": SOURCE, "enable": True, "hide": False, "iconColor": colour, "type": "dashboard",
        "expr": expr, "step": "60s", "titleFormat": title, "textFormat": text, "tagKeys": tags,
        "useValueForTime": False,
    }  # fmt: skip


def stat(
    title: str,
    description: str,
    *queries: Query,
    unit: str = "short",
    width: int = 6,
    height: int = 4,
    decimals: int | None = None,
    steps: Steps = ((None, BLUE),),
    mapped: Mapping[int, tuple[str, str]] | None = None,
    links: tuple[tuple[str, str], ...] = (),
) -> Panel:
    """One number, or one for each query."""
    return Panel(
        title=title, description=description, kind="stat", unit=unit, queries=queries, width=width, height=height,
        decimals=decimals, steps=steps, mapped=mapped or {}, links=links,
    )  # fmt: skip


def series(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    height: int = HEIGHT,
    steps: Steps = ((None, BLUE),),
    maximum: float | None = None,
    stacked: bool = False,
    dashed: bool = False,
    links: tuple[tuple[str, str], ...] = (),
    empty: str = "",
) -> Panel:
    """Lines over time, from 0 up; ``dashed`` draws the steps."""
    return Panel(
        title=title, description=description, kind="timeseries", unit=unit, queries=queries, width=width, height=height,
        minimum=0, maximum=maximum, steps=steps, stacked=stacked, dashed=dashed, links=links, empty=empty,
    )  # fmt: skip


def table(
    title: str,
    description: str,
    *queries: Query,
    columns: Mapping[str, str],
    units: Mapping[str, str] | None = None,
    width: int = 24,
    height: int = 6,
    decimals: int | None = None,
    links: tuple[tuple[str, str], ...] = (),
    empty: str = "",
    ranked: str = "",
    mapped: Mapping[int, tuple[str, str]] | None = None,
) -> Panel:
    """The latest values as rows; ``columns`` are labels, or letters of queries, and their headings.

    The rows with the highest numbers in the column ``ranked`` come first; ``mapped`` puts these numbers into words.
    """
    return Panel(
        title=title, description=description, kind="table", unit="short", queries=queries, columns=columns,
        units=units or {}, width=width, height=height, decimals=decimals, links=links, empty=empty, ranked=ranked,
        mapped=mapped or {},
    )  # fmt: skip
