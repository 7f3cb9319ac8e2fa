"""Board: Grafana's classic dashboard JSON, from a few values: the kinds of panel, and what all of them share.

Classic JSON (schema version 39, Grafana 10 and newer) is what provisioning, ConfigMap side-cars and the catalogue take.
The data source is a variable, never ``__inputs``: those are filled in by the import dialogue only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

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
    """A PromQL expression and the name of its series. ``exemplars``: dots that lead to traces."""

    expr: str
    legend: str = "__auto"
    instant: bool = False
    exemplars: bool = False
    heatmap: bool = False


class PanelLook(TypedDict, total=False):
    """The look of a panel; missing settings are Grafana's defaults. ``mapped`` puts numbers into words."""

    width: int
    height: int
    steps: Steps
    minimum: float
    maximum: float
    decimals: int
    mapped: Mapping[int, tuple[str, str]]
    links: tuple[tuple[str, str], ...]
    stacked: bool
    dashed: bool
    """Whether the steps are drawn."""
    columns: Mapping[str, str]
    """Columns of a table: label or query letter to the column's name, in order."""
    empty: str
    """Why the panel may be empty."""
    units: Mapping[str, str]
    """Units of the columns of a table, where they differ from the panel's."""
    ranked: str
    """The column of a table whose numbers ``mapped`` puts into words; the highest comes first."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel."""

    kind: Kind
    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    look: PanelLook

    @property
    def width(self) -> int:
        """Width of the panel, of the 24 columns of a board."""
        return self.look.get("width", WIDTH // 2)

    @property
    def height(self) -> int:
        """In rows of the board's grid."""
        return self.look.get("height", HEIGHT)


def panel(kind: Kind, title: str, description: str, unit: str, *queries: Query, **look: Unpack[PanelLook]) -> Panel:
    """A panel of any kind."""
    return Panel(kind, title, description, unit, queries, look)


def stat(title: str, description: str, *queries: Query, unit: str = "short", **look: Unpack[PanelLook]) -> Panel:
    """One number, or one for each query."""
    return Panel("stat", title, description, unit, queries, {"width": 6, "height": 4, **look})


def series(title: str, description: str, unit: str, *queries: Query, **look: Unpack[PanelLook]) -> Panel:
    """Lines over time, from 0 up."""
    return Panel("timeseries", title, description, unit, queries, {"minimum": 0, **look})


def table(title: str, description: str, *queries: Query, **look: Unpack[PanelLook]) -> Panel:
    """The latest values as rows; ``columns`` are labels, or letters of queries, and their headings."""
    return Panel("table", title, description, "short", queries, {"width": WIDTH, "height": 6, **look})


@dataclass(frozen=True, slots=True)
class DashboardRow:
    """A heading and the panels below it."""

    title: str
    panels: tuple[Panel, ...]


def row(title: str, *panels: Panel) -> DashboardRow:
    """A row of these panels."""
    return DashboardRow(title, panels)


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
        """The dashboard as Grafana's JSON; ``boards`` are (uid, title) of linked boards."""
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
    look = panel.look
    mapped, ranked = _mappings(look), look.get("ranked")
    defaults: Json = {
        "unit": panel.unit,
        "color": {"mode": "palette-classic" if panel.kind == "timeseries" else "thresholds"},
        "thresholds": {
            "mode": "absolute",
            "steps": [{"value": value, "color": colour} for value, colour in look.get("steps", ((None, BLUE),))],
        },
        "mappings": [] if ranked else mapped,
        "links": [{"title": title, "url": url, "targetBlank": True} for title, url in look.get("links", ())],
        "custom": _custom(panel.kind, look),
    }
    named = {"noValue": look.get("empty") or None, "min": look.get("minimum"), "max": look.get("maximum")}
    named["decimals"] = look.get("decimals")
    defaults |= {key: value for key, value in named.items() if value is not None}
    overrides = [_override(column, "unit", unit) for column, unit in look.get("units", {}).items()]
    options = _OPTIONS[panel.kind]
    if ranked:
        overrides.append(_override(ranked, "mappings", mapped))
        options = {**options, "sortBy": [{"displayName": ranked, "desc": True}]}
    return {
        "type": panel.kind, "title": panel.title, "description": panel.description, "datasource": SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": overrides},
        "options": options,
        "targets": [_target(query, chr(ord("A") + n), panel.kind) for n, query in enumerate(panel.queries)],
        "transformations": _columns(panel) if panel.kind == "table" else [],
    }  # fmt: skip


def _override(column: str, name: str, value: object) -> Json:
    return {"matcher": {"id": "byName", "options": column}, "properties": [{"id": name, "value": value}]}


def _mappings(look: PanelLook) -> list[Json]:
    """Words and colours in place of numbers."""
    mapped = look.get("mapped", {}).items()
    words = {str(number): {"text": text, "color": c, "index": n} for n, (number, (text, c)) in enumerate(mapped)}
    return [{"type": "value", "options": words}] if words else []


def _custom(kind: Kind, look: PanelLook) -> Json:
    stacked = look.get("stacked", False)
    if kind == "timeseries":
        return {
            "lineWidth": 2, "fillOpacity": 20 if stacked else 0, "showPoints": "never", "spanNulls": False,
            "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "dashed" if look.get("dashed") else "off"},
        }  # fmt: skip
    if kind == "state-timeline":
        return {"fillOpacity": 80, "lineWidth": 0}
    if kind == "table":
        return {"cellOptions": {"type": "color-text" if look.get("mapped") else "auto"}, "align": "auto"}
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
    only = "Value" if len(panel.queries) == 1 else "Value #{}"
    columns = panel.look.get("columns", {})
    names = {only.format(key) if len(key) == 1 else key: title for key, title in columns.items()}
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
