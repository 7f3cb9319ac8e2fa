"""``sidejudge.score``: cases as notebooks have them, judged as ``score`` of a file judges them."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import date
from decimal import Decimal
from uuid import UUID

import pytest
import yaml
from msgspec import structs

import sidejudge
from sidejudge import Case, Span, Trace, Verdict, Verdicts, configured, load_config, score
from sidejudge.monitor.offline.experiment.guard import guard
from sidejudge.monitor.offline.experiment.score_cases import read_row
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.trace.span import SpanKind
from tests.fakes.judge import judges
from tests.fakes.openai import Provider, too_many, unauthorised

MODEL = "openai/gpt-4o-mini-2024-07-18"
ROWS = [
    {"case_id": "a", "model_output": "Thank you for asking."},
    {"model_output": "No."},
    {"case_id": "c", "model_output": "Thank you."},
]
RUBRICS = {"polite": {"metrics": [{"id": "thanks", "check": {"contains": "hank"}}]}}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "sidejudge.yaml"
    path.write_text(yaml.safe_dump({"rubrics": RUBRICS}))
    return path


def outcome(verdicts):
    assert isinstance(verdicts, Verdicts)
    return [(each.case_id, each.passed) for each in verdicts]


EXPECTED = [("a", True), ("2", False), ("c", True)]


@pytest.mark.parametrize("rows", [ROWS, tuple(ROWS), (each for each in [*ROWS])], ids=["list", "tuple", "generator"])
def test_maps_are_judged_in_their_order_and_a_row_without_an_id_has_its_number(config, rows):
    assert outcome(score(rows, "polite", config=config)) == EXPECTED


def test_a_data_frame_is_judged_row_by_row_and_an_empty_cell_is_no_value(config):
    pandas = pytest.importorskip("pandas", reason="pandas is missing; make .venv/.dev")
    table = pandas.DataFrame([{**ROWS[0], "latency_e2e_ms": 2.0}, *ROWS[1:]])
    verdicts = score(table, "polite", config=config)
    assert outcome(verdicts) == EXPECTED
    frame = verdicts.to_frame()
    assert list(frame["case_id"]) == ["a", "2", "c"]
    assert list(frame["thanks"]) == [1.0, 0.0, 1.0]


def tables():
    """Tables of other libraries, none of which is among what sidejudge asks for."""
    yield "pandas", lambda module, columns: module.DataFrame(columns)
    yield "polars", lambda module, columns: module.DataFrame(columns)
    yield "polars", lambda module, columns: module.LazyFrame(columns)
    yield "pyarrow", lambda module, columns: module.table(columns)


@pytest.mark.parametrize(("module", "make"), list(tables()))
def test_a_table_of_each_library_is_judged_row_by_row(config, module, make):
    library = pytest.importorskip(module, reason=f"{module} is missing; pip install {module}")
    columns = {"id": [7, 8], "answer": ["Thank you.", "No."], "input_tokens": [3, None]}
    assert outcome(score(make(library, columns), "polite", config=config)) == [("7", True), ("8", False)]


def test_cells_as_tables_have_them_are_read(config):
    numpy = pytest.importorskip("numpy", reason="numpy is missing; make .venv/.dev")
    row = {
        "id": numpy.int64(7), "model_output": numpy.str_("Thank you."), "input_tokens": 3.0, "cost_usd": numpy.nan,
        "tools_used": numpy.array([{"name": "a", "arguments": {"n": numpy.float64(1)}}], dtype=object),
    }  # fmt: skip
    assert outcome(score([row], "polite", config=config)) == [("7", True)]


def test_cells_that_json_has_no_kind_for_are_read(config):
    id_ = UUID(int=7)
    row = {
        "id": id_,
        "model_output": b"Thank you.",
        "cost_usd": Decimal("0.5"),
        "tags": {"a"},
        "metadata": {"at": date(2026, 1, 2)},
    }
    assert outcome(score([row], "polite", config=config)) == [(str(id_), True)]
    read = read_row(row, 1)
    assert (read.cost_usd, read.tags, read.metadata) == (0.5, ("a",), {"at": "2026-01-02"})


@pytest.mark.parametrize("name", ["actual_output", "answer", "output", "response"])
def test_a_row_may_use_the_names_of_other_tools_as_a_file_may(config, name):
    assert score({name: "Thank you."}, "polite", config=config).passed is True


def test_several_rubrics_give_a_verdict_each_case_by_case(config):
    found = score(iter(ROWS), ["polite", "run_health"], config=config)
    assert [(each.case_id, each.rubric) for each in found] == [
        (case, rubric) for case in ("a", "2", "c") for rubric in ("polite", "run_health")
    ]
    assert [each.rubric for each in score(ROWS[0], ["polite"], config=config)] == ["polite"]


@pytest.mark.parametrize("given", ["Thank you.", ["Thank you."], None, 7, [["model_output", "x"]]])
def test_what_holds_no_rows_is_refused_with_what_to_give(config, given):
    with pytest.raises(sidejudge.SidejudgeError, match=r"is no row of cases; give a map with the fields of a case"):
        score(given, "polite", config=config)


def test_one_map_or_case_gives_one_verdict(config):
    one = score(ROWS[0], "polite", config=config)
    assert isinstance(one, Verdict)
    assert one == score(Case(**ROWS[0]), "polite", config=config, created_at=one.created_at)
    assert one.to_dict()["passed"] is True


def test_nothing_gives_nothing_and_no_rate(config):
    verdicts = score([], "polite", config=config)
    assert (len(verdicts), verdicts.pass_rate, verdicts.to_dicts()) == (0, None, [])


def test_a_rate_leaves_out_what_is_incomplete(config):
    verdicts = Verdicts([*score(ROWS, "polite", config=config), score({"model_output": "x"}, "run_health")])
    assert (verdicts.passed, verdicts.failed, len(verdicts)) == (2, 1, 4)
    assert verdicts.pass_rate == pytest.approx(2 / 3)
    assert repr(verdicts).startswith("Verdicts: 2 passed, 1 failed, 1 incomplete, ")


def test_the_call_of_before_works_as_it_did(config):
    rubric = configured(load_config(config))["polite"]
    found = score(Case(case_id="c", model_output="Thank you"), rubric, created_at="2026-01-01T00:00:00Z")
    assert (found.passed, found.created_at) == (True, "2026-01-01T00:00:00Z")


def test_it_works_in_a_running_event_loop(config):
    async def cell():
        return score(ROWS, "polite", config=config)

    assert outcome(asyncio.run(cell())) == EXPECTED


def test_the_configured_judge_is_asked(tmp_path):
    with Provider(judges()) as provider:
        path = tmp_path / "judge.yaml"
        path.write_text(yaml.safe_dump({
            "evaluators": {"judge": {"model": MODEL, "api_key": "k", "api_base": provider.url}},
            "rubrics": {"own": {"metrics": [{"id": "kind", "ask": "Is it kind?", "answer": "boolean"}]}},
        }))  # fmt: skip
        verdicts = score(ROWS, "own", config=path)
    assert all(each.passed is not None for each in verdicts), [each.reason for each in verdicts]
    assert [each.judgements != () for each in verdicts] == [True] * 3


def test_a_call_that_the_judge_ended_pays_nothing_twice_when_it_is_made_again(tmp_path):
    works, path = judges(), tmp_path / "judged.yaml"
    cases = [{"input": f"Where is parcel {n}?", "model_output": f"At door {n}."} for n in range(12)]
    with Provider(unauthorised()) as provider:
        provider.will(*[works] * 5)
        judge = {"model": "openai/gpt-4.1-mini-2025-04-14", "api_base": provider.url, "api_key": "sk"}
        path.write_text(yaml.safe_dump({"evaluators": {"judge": {**judge, "concurrency": 1}}}))
        with pytest.raises(SidejudgeError, match="authentication failed"):
            score(cases, "answer", config=path)
        provider.standing = works
        asked = len(provider.seen)
        found = score(cases, "answer", config=path)
        assert "error" not in {each.to_json()["status"] for verdict in found for each in verdict.scores}
        again = [seen for seen in provider.seen[asked:] if b"parcel" in seen.raw]
        assert len(again) == len(cases) - 5


def test_a_judge_that_was_waited_for_in_vain_is_not_waited_for_by_the_next_call(tmp_path):
    works, path, case = judges(), tmp_path / "judged.yaml", {"input": "Where is it?", "model_output": "Here."}
    with Provider(too_many("120")) as provider:
        judge = {"model": "openai/gpt-4.1-mini-2025-04-14", "api_base": provider.url, "api_key": "sk"}
        path.write_text(yaml.safe_dump({"evaluators": {"judge": {**judge, "max_wait": "8s"}}}))
        assert guard("answer", config=path)(lambda _: "Here.")("Where is it?") == "Here.", "it has not waited"
        took = []
        for _ in range(3):
            began = time.monotonic()
            with pytest.raises(SidejudgeError, match="rate limited"):
                score(case, "answer", config=path)
            took.append(time.monotonic() - began)
        assert took[0] > 8 > max(took[1:])
        provider.standing = works
        assert "error" not in {each.to_json()["status"] for each in score(case, "answer", config=path).scores}


def test_without_a_judge_its_questions_are_open_and_not_guessed(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump({
        "rubrics": {"own": {"metrics": [{"id": "kind", "ask": "Is it kind?", "answer": "boolean"}]}},
    }))  # fmt: skip
    assert {each.passed for each in score(ROWS, "own", config=path)} == {None}


def test_a_row_that_is_no_case_is_named_with_its_number_and_field(config):
    with pytest.raises(
        sidejudge.SidejudgeError, match="line 2: modell_output: unknown field; did you mean model_output"
    ):
        score([ROWS[0], {"modell_output": "x"}], "polite", config=config)


def test_no_row_is_judged_where_one_that_is_there_is_no_case_and_of_a_stream_those_before_it_are(config):
    judged = []

    def answer(case, question):
        judged.append(case)
        return sidejudge.NoAnswer("nobody was asked")

    rows = [{"model_output": "a"}, {"input": "b"}]
    for given, least in ((rows, 0), (iter(rows), 1)):
        with pytest.raises(sidejudge.SidejudgeError, match=r"line 2: model_output: is missing"):
            score(given, "quality", answer=answer)
        assert (len(judged) >= 1) == bool(least)


def test_an_empty_answer_is_one_under_any_name(config):
    for name in ("model_output", "answer", "response"):
        verdict = score({name: None}, "quality")
        assert verdict.passed is None
        assert "model_output is null" in verdict.reason, name


def test_a_rubric_that_is_not_there_is_refused_with_those_that_are(config):
    with pytest.raises(ValueError, match=r"there is no rubric 'polit'; did you mean 'polite'\? choose"):
        score(ROWS, "polit", config=config)


@pytest.mark.parametrize("named", [None, 5, [], [None]])
def test_what_names_no_rubric_is_refused_before_anything_is_judged(named):
    with pytest.raises(ValueError, match="names no rubric; give the name of one"):
        score(iter([]), named)


def test_a_notebook_shows_a_trace_and_a_rubric_escaped(config):
    rubric = configured(load_config(config))["polite"]._repr_html_()
    assert "<td>thanks</td><td>1</td>" in rubric
    spans = [
        Span(
            trace_id="t", span_id=str(number), parent_id=parent, name=f"<i>{number}", kind=SpanKind.LLM, dialect="d",
            start_ns=number, end_ns=2 * 10**9 + number, model="<script>",
        )
        for number, parent in ((1, None), (2, "1"), (3, "4"), (4, "3"))
    ]  # fmt: skip
    shown = Trace.of("t", spans, "idle")._repr_html_()
    assert "<i>" not in shown
    assert "<script>" not in shown
    assert shown.index("&lt;i&gt;1</td><td>llm</td><td>2 s") < shown.index("\N{EM SPACE}&lt;i&gt;2")
    many = [structs.replace(spans[0], span_id=str(n), start_ns=n) for n in range(500)]
    assert Trace.of("t", many, "idle")._repr_html_().count("<tr>") == 201


def test_a_notebook_shows_what_was_judged_escaped():
    found = score({"case_id": "<script>", "model_output": "x", "expected_outcome": "<img src=x>"}, "qa")
    shown = found._repr_html_()
    assert "<script>" not in shown
    assert "<img" not in shown
    assert "incomplete" in shown
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()


@pytest.mark.parametrize(("tokens", "passed"), [(50, False), (500, True)])
def test_a_configured_budget_limits_a_run(tmp_path, tokens, passed):
    path = tmp_path / "sidejudge.yaml"
    path.write_text(f"budgets: [{{tokens: {tokens}}}]")
    run = {"model_output": "ok", "input": "q", "tools_used": [], "input_tokens": 100, "output_tokens": 9}
    assert score(run, "run_health", config=path).passed is passed
