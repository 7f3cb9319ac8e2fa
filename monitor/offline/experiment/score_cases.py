"""Score: cases as Python has them in (a record, maps, an iterable, a DataFrame), verdicts out: a list, a table, a view.

A table's types are not JSON's: its numbers are numpy's, a column of whole numbers with a gap holds decimals, ids are
numbers. What means the same in the format of cases is written so; everything else is left for its reader to refuse.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from concurrent.futures import Future
from dataclasses import replace
from decimal import Decimal
from importlib import import_module
from itertools import islice
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeAlias, TypedDict, Unpack, overload, runtime_checkable

from sidejudge.integrations.cases.fields import FieldError, case_of
from sidejudge.integrations.cases.lines import CaseError, plain
from sidejudge.integrations.cases.names import in_our_names
from sidejudge.monitor.config import Config
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.evaluators.score import PlainEvaluator
from sidejudge.scoring.evaluators.score import score as score_one
from sidejudge.scoring.statistics.interval import wilson_pair
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.trace.time_units import iso_time
from sidejudge.scoring.verdict.outcome import OutcomeMemo
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.verdict import Verdict

from .inline import InlineJudge, rubric_of

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]  # it is not among our dependencies


_SHOWN = 50
"""Verdicts that a notebook shows below the summary: the first that did not pass."""


class Verdicts(tuple[Verdict, ...]):
    """The verdicts of many cases under one rubric.

    Verdicts that neither passed nor failed (*incomplete*) are in no pass rate: an unjudged case is no failure.
    """

    __slots__ = ()

    def __new__(cls, verdicts: Iterable[Verdict] = ()) -> Self:
        return super().__new__(cls, verdicts)

    @property
    def passed(self) -> int:
        """How many passed."""
        return sum(each.passed is True for each in self)

    @property
    def failed(self) -> int:
        """How many failed."""
        return sum(each.passed is False for each in self)

    @property
    def pass_rate(self) -> float | None:
        """The share that passed among cases that passed or failed, 0 to 1; None where there are none."""
        counted = self.passed + self.failed
        return self.passed / counted if counted else None

    def to_dicts(self) -> list[dict[str, object]]:
        """Each in the documented format, ready for JSON."""
        return [each.to_json() for each in self]

    def to_frame(self) -> pd.DataFrame:
        """A table: a row a case, with its verdict and a column for the value of each metric (NaN: it has none).

        Raises:
            ImportError: pandas is not installed.
        """
        rows = [
            {
                "case_id": each.case_id, "rubric": each.rubric, "state": each.state.value, "passed": each.passed,
                "composite": each.composite, "rating": each.rating, "reason": each.reason,
                **{score.metric: score.to_json()["value"] for score in each.scores},
            }
            for each in self
        ]  # fmt: skip
        return import_module("pandas").DataFrame(rows)

    def _repr_html_(self) -> str:
        others = (each._repr_html_() for each in self if each.passed is not True)
        return f"<p>{self!r}</p>{''.join(islice(others, _SHOWN))}"

    def __repr__(self) -> str:
        left = len(self) - self.passed - self.failed
        bounds = wilson_pair(self.passed, self.passed + self.failed)
        sure = f", {bounds.lower:.0%} to {bounds.upper:.0%} pass (95 %)" if bounds is not None else ""
        return f"Verdicts: {self.passed} passed, {self.failed} failed, {left} incomplete{sure}"


Row: TypeAlias = Case | Mapping[str, Json]

_TO_ROWS: Final = (("to_dicts", ()), ("to_pylist", ()), ("to_dict", ("records",)))
"""How tables give their rows as maps: polars, Arrow, pandas."""
_NO_VALUE: Final = frozenset({"NAType", "NaTType"})
_WHOLE: Final = frozenset({"input_tokens", "output_tokens"})
_REMEDY: Final = 'give a map with the fields of a case, such as {"model_output": "…"}, or a Case'


@runtime_checkable
class DataFrame(Protocol):
    """A table: of pandas, polars or Arrow. It has columns, and gives its rows as maps."""

    @property
    def columns(self) -> object:
        """The columns, or their names."""


def rows_of(given: Iterable[Row] | DataFrame) -> tuple[Iterable[Row], int | None]:
    """The rows and their number, None where unknown.

    Raises:
        CaseError: It holds no rows.
    """
    if callable(collect := getattr(given, "collect", None)):  # polars' lazy table
        given = collect()
    if isinstance(given, DataFrame):
        method, arguments = next((each for each in _TO_ROWS if hasattr(given, each[0])), _TO_ROWS[-1])
        rows: list[Row] = getattr(given, method)(*arguments)
        return rows, len(rows)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise CaseError(1, "$", f"a {type(given).__name__} is no row of cases", _REMEDY)
    return given, len(given) if isinstance(given, Sized) else None


def read_row(row: Row, number: int) -> Case:
    """A row as a case. One without an id has its number, from 1.

    Raises:
        CaseError: It violates the format of cases; the message names row, field and remedy.
    """
    if isinstance(row, Case):
        return row
    if not isinstance(row, Mapping):
        raise CaseError(number, "$", f"a {type(row).__name__} is no row of cases", _REMEDY)
    fields = in_our_names({str(key): _as_json(value) for key, value in row.items()})
    for name in _WHOLE & fields.keys():
        fields[name] = _whole(fields[name])
    id_ = _whole(fields.get("case_id"))
    if id_ is None or isinstance(id_, int | float):
        fields["case_id"] = str(number if id_ is None else id_)
    try:
        return case_of(fields)
    except FieldError as error:
        raise CaseError(number, error.field, str(error), error.remedy) from None


def _as_json(value: object) -> Json:
    """A cell as JSON has it: numpy's scalars and arrays as numbers and lists, a gap as null."""
    if type(value).__name__ in _NO_VALUE or (isinstance(value, float | Decimal) and isnan(value)):
        return None
    if hasattr(value, "tolist"):
        return _as_json(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_as_json(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else plain(value)


def _whole(value: Json) -> Json:
    """A number without decimals as a whole one: a gap in its column made it one with decimals."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_AT_ONCE: Final = 16
"""Cases that are judged at the same time: enough for a judge's own limits to decide, few enough to hold little."""
_PROGRESS_FROM: Final = 20
"""Fewest verdicts of a call that shows progress."""

Rubrics: TypeAlias = list[Rubric | str] | tuple[Rubric | str, ...]


class _Options(TypedDict, total=False):
    answer: PlainEvaluator | None
    created_at: str | None
    memo: OutcomeMemo | None
    config: Config | Path | str | None
    progress: bool | None


@overload
def score(case: Row, rubric: Rubric | str, **options: Unpack[_Options]) -> Verdict: ...


@overload
def score(case: Iterable[Row] | DataFrame, rubric: Rubric | str | Rubrics, **options: Unpack[_Options]) -> Verdicts: ...


@overload
def score(case: Row, rubric: Rubrics, **options: Unpack[_Options]) -> Verdicts: ...


def score(
    case: Row | Iterable[Row] | DataFrame,
    rubric: Rubric | str | Rubrics,
    *,
    answer: PlainEvaluator | None = None,
    created_at: str | None = None,
    memo: OutcomeMemo | None = None,
    config: Config | Path | str | None = None,
    progress: bool | None = None,
) -> Verdict | Verdicts:
    """Judge one case, or many, by a rubric. It works in a running event loop, as notebooks have one.

    Args:
        case: A case, or a map with the fields of one, for one verdict. For all of many: an iterable of them, or a table
            of pandas, polars or Arrow whose columns are fields; NaN is a cell without a value. A row without
            ``case_id`` has its number.
        rubric: A rubric, or the name of a built-in one or one that ``config`` declares; a list of them for a verdict by
            each.
        answer: A plain function that answers the questions of metrics, in place of the evaluators of ``config``.
        created_at: When the verdicts were reached, ISO 8601 in UTC; now where it is None.
        memo: Remembers outcomes between calls with ``answer``.
        config: A configuration or its file: rubrics of your own, and the judge and the embeddings that answer. None:
            the embedded defaults, where only words answer.
        progress: Whether to show the progress; None: for many cases, on a terminal or in a notebook.

    Returns:
        A verdict for one case by one rubric; else ``Verdicts``, in the order of the cases and then of the rubrics.

    Raises:
        ConfigError: The configuration cannot be used.
        CaseError: A row has a field that violates the format of cases; it names row, field and remedy. Of rows that are
            there at once none is judged then.
        ValueError: There is no rubric of that name, or none is named.
    """
    rubrics = _rubrics(rubric)
    if config is None or answer is not None:
        memo = memo or OutcomeMemo()
        judges = [_plain(rubric_of(each, config), answer or lexical.answer, memo) for each in rubrics]
    else:
        judges = [InlineJudge(each, config).judge for each in rubrics]
    single = isinstance(case, Case | Mapping)
    rows, total = rows_of([case] if isinstance(case, Case | Mapping) else case)
    cases: Iterable[Case] = (read_row(row, number) for number, row in enumerate(rows, start=1))
    if total is not None:
        cases = list(cases)  # a row that is no case ends the call before a judge was paid for another
    found = _in_order(judged(each) for each in cases for judged in judges)
    shown = _with_progress(found, None if total is None else total * len(judges), wanted=progress)
    verdicts = Verdicts(each if created_at is None else replace(each, created_at=created_at) for each in shown)
    return verdicts[0] if single and isinstance(rubric, Rubric | str) else verdicts


def _rubrics(named: Rubric | str | Rubrics) -> Rubrics:
    rubrics = [named] if isinstance(named, Rubric | str) else list(named) if isinstance(named, Iterable) else []
    if not rubrics or not all(isinstance(each, Rubric | str) for each in rubrics):
        raise ValueError(f"{named!r} names no rubric; give the name of one, such as 'run_health', or a list of names")
    return rubrics


def _plain(rubric: Rubric, answer: PlainEvaluator, memo: OutcomeMemo) -> Callable[[Case], Future[Verdict]]:
    def judged(case: Case) -> Future[Verdict]:
        done: Future[Verdict] = Future()
        done.set_result(score_one(case, rubric, answer=answer, created_at=iso_time(time.time_ns()), memo=memo))
        return done

    return judged


def _in_order(judged: Iterator[Future[Verdict]]) -> Iterator[Verdict]:
    """The results in their order, while some that come later are under way."""
    waiting = deque(islice(judged, _AT_ONCE))
    while waiting:
        yield waiting.popleft().result()
        waiting.extend(islice(judged, 1))


def _with_progress(found: Iterator[Verdict], total: int | None, *, wanted: bool | None) -> Iterator[Verdict]:
    """The same verdicts, while a progress bar is shown on standard error or below a notebook's cell."""
    if wanted is False or (wanted is None and total is not None and total < _PROGRESS_FROM):
        return found
    from rich.console import Console  # noqa: PLC0415  # only where somebody may see it
    from rich.progress import track  # noqa: PLC0415  # likewise

    console = Console(stderr=True)
    seen = wanted or console.is_terminal or console.is_jupyter
    return iter(track(found, "judging", total, console=console, transient=True)) if seen else found
