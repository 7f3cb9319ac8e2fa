"""The front door: the names that it promises, and the kit by which plugins are tested."""

from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files

import pytest

import sidejudge
from sidejudge import Answer, Case, Metric, Scored, Unavailable, ask, load_config, score
from sidejudge.testing import check_metric, check_notifier, check_rubric, check_sink

PROMISED = {
    "Case", "Span", "Trace", "Metric", "Rubric", "Criterion", "Bands", "Blocker", "Scored", "NotApplicable",
    "Unavailable", "Failed", "ask", "score", "load_config",
}  # fmt: skip


def test_the_front_door_has_the_names_that_it_promises():
    assert set(sidejudge.__all__) >= PROMISED
    assert all(hasattr(sidejudge, name) for name in sidejudge.__all__)


def test_importing_it_imports_nothing_of_ours_until_a_name_is_used():
    program = (
        "import sys, sidejudge\n"
        "ours = lambda: {name for name in sys.modules if name.startswith('sidejudge.')}\n"
        "assert ours() == set(), ours()\n"
        "sidejudge.Reason\n"
        "assert 'sidejudge.scoring.result.reason' in ours() and 'sidejudge.monitor' not in ours()\n"
    )
    subprocess.run([sys.executable, "-P", "-c", program], check=True)
    assert sidejudge.__all__ == sorted(sidejudge.__all__)


@pytest.mark.parametrize("package", ["", ".scoring", ".integrations", ".monitor", ".dashboards"])
def test_every_package_says_that_it_is_typed(package):
    assert files(importlib.import_module(f"sidejudge{package}")).joinpath("py.typed").is_file()


def test_a_notebook_scores_a_case_by_a_declared_rubric(tmp_path):
    path = tmp_path / "sidejudge.yaml"
    path.write_text("rubrics: {own: {metrics: [{id: a, check: {contains: way}}]}}")
    rubric = sidejudge.configured(load_config(path))["own"]
    found = score(Case(case_id="c", model_output="On its way"), rubric, created_at="2026-01-01T00:00:00Z")
    assert (found.composite, found.passed) == (1.0, True)


def metric(measure, **about):
    card = {"title": "t", "meaning": "m", "formula": "f", "source": "s", "undefined": "never", "id": "own", **about}
    return Metric(measure=measure, **card)


def test_a_metric_that_conforms_passes():
    def measure(case):
        if case.model_output is None:
            return Unavailable("no output")
        (reply,) = yield (ask("Is {{output}} polite?"),)
        return Unavailable(reply.reason)

    check_metric(metric(measure))


calls = []


@pytest.mark.parametrize(
    ("broken", "stated"),
    [
        (metric(lambda _: Scored(value=2.0)), "outside of"),
        (metric(lambda _: 1.0), "returns float"),
        (metric(lambda _: Unavailable("")), "no reason"),
        (
            metric(lambda _: Scored(value=float(len(calls)), reason=str(calls.append(1))), bounds=(0.0, None)),
            "and then",
        ),
        (metric(lambda _: Scored(value=1.0), id="Own metric"), "lower-case"),
        (metric(lambda _: Scored(value=1.0), title=" "), "title is empty"),
    ],
)
def test_a_metric_that_does_not_conform_is_told_why(broken, stated):
    with pytest.raises(AssertionError, match=stated):
        check_metric(broken)


class Delivery:
    """A sink and a notifier that do the same with whatever they get."""

    def __init__(self, act):
        self.deliver = self.send = act


def refuse(_):
    raise sidejudge.RefusedError("not this one")


def test_a_sink_and_a_notifier_that_conform_pass():
    taken = []
    check_sink(Delivery(lambda given: {0: "no"} if given else None))
    check_sink(Delivery(taken.extend))
    check_notifier(Delivery(taken.append))
    check_notifier(Delivery(refuse))
    assert {"rubric", "state", "scores"} <= taken[0].keys()
    assert taken[-1]["title"]


@pytest.mark.parametrize(
    ("check", "act", "stated"),
    [
        (check_sink, lambda _: True, "returns True"),
        (check_sink, lambda _: {7: "no"}, "positions"),
        (check_sink, lambda given: given[0], "list index"),
        (check_notifier, lambda _: "sent", "returns 'sent'"),
    ],
)
def test_a_sink_or_notifier_that_does_not_conform_is_refused(check, act, stated):
    with pytest.raises((AssertionError, IndexError), match=stated):
        check(Delivery(act))
    with pytest.raises(AssertionError, match="has no method"):
        check(object())


def test_rubrics_that_ship_conform():
    from sidejudge.scoring.rubrics import RUBRICS  # noqa: PLC0415  # of no interest to the others

    check_rubric(RUBRICS["answer"])
    half = replace(RUBRICS["answer"].criteria[0], weight=0.5)
    with pytest.raises(AssertionError, match="stands twice"):
        check_rubric(replace(RUBRICS["answer"], criteria=(half, half)))


def thanks(case):
    """As the page on plugins has it: a function that asks one question at a time."""
    if case.model_output is None:
        return Unavailable("the output is not known")
    reply = yield ask("Is {{output}} polite?")
    return bool(reply.value) if isinstance(reply, Answer) else Unavailable(reply.reason)


def mood(case):
    return "kind" if case.case_id == "text" else "rude"


def test_a_plain_function_conforms_as_it_stands_in_the_pages():
    check_metric(thanks)
    check_metric(lambda case: case.latency_e2e_ms or 0.0, bounds=(0.0, None))
    check_metric(mood, passes=["kind"])
    check_metric(lambda _: None)


@pytest.mark.parametrize(
    ("function", "stated"),
    [
        (lambda _: {"a": 1}, "a dict, which is no result"),
        (lambda _: 7, "outside of"),
        (mood, "passes has to name"),
        (lambda case: (yield "Is it polite?"), r"'Is it polite\?', which is no question"),
        ("polite", "neither a metric nor a function"),
        (
            lambda case: float(len(case.model_output) < 9),
            "raises TypeError on the case empty: .*; return NotApplicable",
        ),
    ],
)
def test_a_function_that_would_fail_in_every_case_is_refused(function, stated):
    with pytest.raises(AssertionError, match=stated):
        check_metric(function)


SECTION = {"metrics": [{"id": "thanks", "check": {"icontains": "thank"}}]}


@pytest.mark.parametrize("given", [SECTION, {"polite": SECTION}, {"rubrics": {"polite": SECTION, "two": SECTION}}])
def test_a_rubric_conforms_as_a_map(given):
    check_rubric(given)


@pytest.mark.parametrize(
    ("given", "stated"),
    [
        ({"metrics": [{"id": "thanks", "check": {"icontain": "x"}}]}, r"rubric.metrics\[0\].check.*icontains"),
        ({"polite": {"metrics": []}}, "polite.*metrics"),
        ({"title": "x"}, "declares"),
        ({}, "declares no rubric"),
        ([], "a list is neither"),
        ({"metrics": [{"id": "a", "python": "nowhere:nothing"}]}, "cannot be imported"),
    ],
)
def test_a_map_that_declares_no_rubric_is_refused_with_what_is_wrong(given, stated):
    with pytest.raises(AssertionError, match=stated):
        check_rubric(given)
