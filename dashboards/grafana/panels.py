"""Panels: the kinds of panel that boards are made of, each with what is usual for it."""

from __future__ import annotations

from collections.abc import Mapping

from .board import BLUE, HEIGHT, Panel, Query, Steps


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
