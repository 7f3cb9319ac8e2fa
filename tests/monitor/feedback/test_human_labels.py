"""People's labels in a fake Langfuse, compared with our scores there: what counts, what does not, and what is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from sidejudge.integrations.langfuse.probe import probe
from sidejudge.integrations.langfuse.scores import score_id
from sidejudge.monitor.config.langfuse import AnnotationsSection, PeopleScore
from sidejudge.monitor.feedback import human_labels
from sidejudge.monitor.feedback.human_labels import AGAIN_NS, FIRST_NS, HumanLabels
from sidejudge.scoring.questions.teaching import teaches
from sidejudge.scoring.rubrics import RUBRICS
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import Mode, stamp
from tests.langfuse_bench import trace

QA = RUBRICS["qa"]
HOUR_NS = 3600 * 10**9
JUDGE, OLD_JUDGE = "openai/gpt-4o-mini-2024-07-18", "openai/gpt-3.5-turbo-0125"


class Scene:
    """A bench, and what people and we say in its Langfuse."""

    def __init__(self, bench) -> None:
        self.bench = bench
        bench.fake.mode = Mode.NEW

    async def people(
        self, *scores, requested_for=lambda _: False, rubrics=(QA,), corrections_fail=(), judges=(JUDGE,)
    ) -> HumanLabels:
        server = await probe(self.bench.langfuse)
        scores_out = SimpleNamespace(langfuse=self.bench.langfuse, server=server)
        parts = self.bench.feedback_parts(scores_out, **{rubric.id: rubric for rubric in rubrics})
        parts = replace(parts, judges={rubric.id: judges for rubric in rubrics})
        section = AnnotationsSection(scores=scores, corrections_fail=corrections_fail)
        found = HumanLabels(section, parts, requested_for)
        found.restore()
        return found

    def write(self, body, *, ago_ns=0) -> None:
        at = stamp(datetime.fromtimestamp((self.bench.now_ns - ago_ns) / 1e9 - 1, UTC))
        self.bench.fake.scores.add(**body, timestamp=at)

    def ours(self, number, passed, *, version=QA.version, judge=None, rubric="qa", of="traceId", **metrics) -> None:
        """Our verdict; passed None: incomplete; judge None: words alone decided."""
        subject, metadata = trace(number), {"rubric_version": version, "judge": judge}
        stated = {"qa_state".replace("qa", rubric): "incomplete" if passed is None else "valid"}
        if passed is not None:
            stated[f"{rubric}_pass"] = float(passed)
        for name, value in (stated | metrics).items():
            kind = "CATEGORICAL" if isinstance(value, str) else "BOOLEAN" if name.endswith("_pass") else "NUMERIC"
            self.write(
                {
                    "id": score_id(subject, name), of: subject, "name": name, "value": value, "dataType": kind,
                    "metadata": {**metadata, "rating": "good" if name == "qa_relevancy" else None},
                }
            )  # fmt: skip

    def label(self, number, stated, name="qa_pass", *, by="ann", ago_ns=0, of="traceId", **more) -> None:
        kind = "BOOLEAN" if isinstance(stated, bool) else "CATEGORICAL" if isinstance(stated, str) else "NUMERIC"
        value = float(stated) if isinstance(stated, bool) else stated
        self.write(
            {
                "id": f"{name}-{number}-{by}", of: trace(number), "name": name, "value": value, "dataType": kind,
                "source": "ANNOTATION", "authorUserId": by, **more,
            },
            ago_ns=ago_ns,
        )  # fmt: skip


@pytest.fixture
def scene(bench):
    return Scene(bench)


def table(people, metric="pass"):
    """(people passed and so did we, they passed and we failed, they failed and we passed, neither passed)."""
    found = next((each for each in people.snapshot().measured if each.metric == metric), None)
    if found is None:
        return None
    (neither, we), (they, both) = found.confusion.counts
    return both, they, we, neither


@pytest.mark.parametrize("mode", [Mode.V3, Mode.DUAL, Mode.EVENTS_ONLY, Mode.NEW], ids=lambda mode: mode.value)
async def test_labels_meet_our_verdicts_on_every_version(scene, mode):
    scene.bench.fake.mode = mode
    for number, (stated, passed) in enumerate([(True, True)] * 4 + [(False, False)] * 3 + [(False, True)] * 2):
        scene.ours(number, passed)
        scene.label(number, stated)
    people = await scene.people()
    await people.tick()
    assert table(people) == (4, 0, 2, 3)
    (reported,) = people.agreements()
    assert (reported.rubric, reported.n) == ("qa", 9)
    assert people.snapshot().reason == ""


async def test_a_prefill_is_no_label_until_a_person_has_touched_it(scene):
    scene.ours(1, True)
    scene.label(1, True, by=None)
    people = await scene.people()
    await people.tick()
    assert table(people) is None
    assert people.snapshot().passed_over["unsigned"] == 1
    scene.write({"id": "qa_pass-1-None", "traceId": trace(1), "name": "qa_pass", "value": 0, "dataType": "BOOLEAN",
                 "source": "ANNOTATION", "authorUserId": "ann"})  # fmt: skip
    await people.tick()
    assert table(people) == (0, 0, 1, 0)
    assert people.snapshot().passed_over["unsigned"] == 0


async def test_what_was_asked_for_because_of_a_doubt_is_no_sample(scene):
    for number in (1, 2):
        scene.ours(number, True)
        scene.label(number, False)
    people = await scene.people(requested_for=lambda given: given.subject == trace(1))
    await people.tick()
    assert table(people) == (0, 0, 1, 0)
    assert people.snapshot().passed_over["asked_for"] == 1


async def test_a_score_under_another_name_is_what_the_configuration_says(scene):
    for number, (stated, passed) in enumerate([("good", True), ("fine", False), ("bad", False)]):
        scene.ours(number, passed, qa_relevancy=4.0)
        scene.label(number, stated, "verdict")
        scene.label(number, 4.0, "stars")
    scene.label(0, "good", "mood")
    people = await scene.people(
        PeopleScore(name="verdict", rubric="qa", passes=("good", "fine")),
        PeopleScore(name="stars", rubric="qa", metric=METRIC),
    )
    await people.tick()
    assert table(people) == (1, 1, 0, 1)
    assert people.snapshot().passed_over["unmapped"] == 1


async def test_stars_pass_from_the_number_on_that_the_configuration_names(scene):
    for number, (stars, passed) in enumerate([(5.0, True), (4.0, False), (3.5, True), (1.0, False), (1.0, False)]):
        scene.ours(number, passed)
        scene.label(number, stars, "stars")
    scene.label(0, "five", "stars", by="bob")
    people = await scene.people(PeopleScore(name="stars", rubric="qa", pass_at=4))
    await people.tick()
    assert table(people) == (1, 1, 1, 2)
    assert people.snapshot().passed_over["unreadable"] == 1


async def test_without_such_a_number_stars_say_neither_pass_nor_failure(scene):
    scene.ours(1, True)
    scene.label(1, 5.0, "stars")
    people = await scene.people(PeopleScore(name="stars", rubric="qa"))
    await people.tick()
    assert table(people) is None
    assert people.snapshot().passed_over["unreadable"] == 1


@pytest.mark.parametrize(
    ("stated", "field"),
    [({"metric": QA.criteria[0].metric.id, "pass_at": 4}, "pass_at"), ({"passes": ["good"], "pass_at": 4}, "pass_at"),
     ({"pass_at": float("nan")}, "pass_at")],
)  # fmt: skip
def test_a_mapping_that_cannot_be_meant_is_refused(stated, field):
    with pytest.raises(ValidationError, match=field):
        PeopleScore.model_validate({"name": "stars", "rubric": "qa", **stated})


METRIC = QA.criteria[0].metric.id


async def test_metrics_are_compared_by_value_or_by_rating(scene):
    name = f"qa_{METRIC}"
    for number, (stated, ours) in enumerate([(1.0, 1.0), (0.0, 0.0), (0.0, 1.0)]):
        scene.ours(number, True, **{name: ours})
        scene.label(number, stated, name)
    scene.ours(9, True)
    scene.label(9, 1.0, name)
    people = await scene.people()
    await people.tick()
    found = next(each for each in people.snapshot().measured if each.metric == METRIC)
    assert (found.n, found.undecided) == (3, 1)
    assert found.figures["raw_agreement"].value == pytest.approx(2 / 3)
    assert people.agreements() == []


@pytest.mark.parametrize(("stated", "why"), [(0.5, "unreadable"), ("maybe", "unreadable")])
async def test_what_says_neither_pass_nor_failure_is_no_label(scene, stated, why):
    scene.ours(1, True)
    scene.label(1, stated)
    people = await scene.people()
    await people.tick()
    assert table(people) is None
    assert people.snapshot().passed_over[why] == 1


@pytest.mark.parametrize("other", [{"version": "qa@old"}, {"judge": OLD_JUDGE}])
async def test_a_verdict_of_another_version_of_the_rubric_or_of_another_judge_is_not_this_judge(scene, other):
    scene.ours(1, True, **other)
    scene.ours(2, True, judge=JUDGE)
    scene.ours(3, True, judge=None)
    for number in (1, 2, 3):
        scene.label(number, False)
    people = await scene.people()
    await people.tick()
    assert table(people) == (0, 0, 2, 0)
    assert people.snapshot().passed_over["other_version"] == 1


async def test_a_trace_that_may_teach_the_judge_measures_nothing_where_it_is_shown_labels(scene):
    numbers = range(1, 60)
    for number in numbers:
        scene.ours(number, True)
        scene.label(number, True)
    criteria = tuple(replace(each, metric=replace(each.metric, taught=True)) for each in QA.criteria)
    people = await scene.people(rubrics=[replace(QA, criteria=criteria)])
    await people.tick()
    teaching = sum(teaches(trace(number)) for number in numbers)
    assert 5 < teaching == people.snapshot().passed_over["taught"]
    assert table(people)[0] == len(numbers) - teaching


async def test_an_incomplete_verdict_is_counted_and_compared_with_nothing(scene):
    scene.ours(1, None)
    scene.label(1, True)
    people = await scene.people()
    await people.tick()
    (found,) = people.snapshot().measured
    assert (found.n, found.undecided) == (0, 1)


async def test_a_label_that_comes_before_its_verdict_waits_for_it(scene):
    scene.label(1, True)
    people = await scene.people()
    await people.tick()
    assert people.snapshot().passed_over["unmet"] == 1
    scene.ours(1, True)
    await people.tick()
    assert table(people) == (1, 0, 0, 0)
    assert people.snapshot().passed_over["unmet"] == 0


async def test_what_a_person_made_of_our_own_score_is_not_compared_with_itself(scene):
    name, edit = f"qa_{METRIC}", scene.bench.fake.scores.edit
    held = {"rubric_version": QA.version, "metrics": json.dumps({METRIC: [1.0, "pass"]})}
    for number in (1, 2):
        scene.ours(number, True, **{name: 1.0})
        edit(score_id(trace(number), "qa_pass"), source="API", authorUserId=None, metadata=held)
    edit(score_id(trace(1), "qa_pass"), value=0.0)
    edit(score_id(trace(2), name), value=0.0)
    scene.label(1, False, by="bob")
    scene.label(2, 1.0, name, by="bob")
    people = await scene.people()
    await people.tick()
    (found,) = people.snapshot().measured
    assert (found.metric, found.n, found.figures["raw_agreement"].value) == (METRIC, 2, 0.5)
    assert people.snapshot().passed_over["unmet"] == 2, "what we had said of the answer is there no more"


async def test_a_change_of_mind_replaces_what_was_said(scene):
    scene.ours(1, True)
    scene.label(1, False)
    people = await scene.people()
    await people.tick()
    assert table(people) == (0, 0, 1, 0)
    scene.label(1, True)
    await people.tick()
    assert table(people) == (1, 0, 0, 0)


async def test_a_revised_verdict_is_noticed_within_the_hour(scene):
    scene.ours(1, True)
    scene.label(1, False)
    people = await scene.people()
    await people.tick()
    scene.ours(1, False)
    scene.bench.now_ns += 2 * HOUR_NS
    await people.tick()
    assert table(people) == (0, 0, 0, 1)


async def test_two_people_are_two_labels_and_a_label_on_an_observation_is_one_of_its_trace(scene):
    scene.ours(1, True)
    scene.label(1, True, by="ann")
    scene.label(1, False, by="bob", observationId="o7")
    people = await scene.people()
    await people.tick()
    assert table(people) == (1, 0, 1, 0)


async def test_a_session_has_labels_of_its_own(scene):
    scene.ours(1, True, of="sessionId")
    scene.label(1, True, of="sessionId")
    people = await scene.people()
    await people.tick()
    assert table(people) == (1, 0, 0, 0)


async def test_corrections_are_counted_and_those_of_what_we_had_passed_apart(scene):
    for number, passed in ((1, True), (2, False), (3, None)):
        scene.ours(number, passed)
    for number in (1, 2, 3, 4):
        scene.label(number, "what it should have said", "output", dataType="CORRECTION")
    people = await scene.people()
    await people.tick()
    reported = people.snapshot()
    assert (reported.corrections, reported.corrected_passes, reported.measured) == ({"qa": 3}, {"qa": 1}, [])


def correct(scene, number, *, by="ann", **more) -> None:
    scene.label(number, "what it should have said", "output", dataType="CORRECTION", by=by, **more)


async def test_corrections_are_labels_only_where_the_configuration_says_so(scene):
    for number, passed in ((1, True), (2, False), (3, None)):
        scene.ours(number, passed)
        correct(scene, number)
    correct(scene, 4)
    people = await scene.people(corrections_fail=["qa"])
    await people.tick()
    reported = people.snapshot()
    assert table(people) == (0, 0, 1, 1)
    assert reported.measured[0].undecided == 1
    assert (reported.corrections, reported.corrected_passes) == ({"qa": 3}, {"qa": 1})
    assert reported.passed_over["unmet"] == 1


@pytest.mark.parametrize("first", ["correction", "label"])
async def test_what_somebody_says_of_the_verdict_goes_before_their_correction_whichever_came_first(scene, first):
    scene.ours(1, True)
    people = await scene.people(corrections_fail=["qa"])
    for what in ("correction", "label") if first == "correction" else ("label", "correction"):
        if what == "label":
            scene.label(1, True)
        else:
            correct(scene, 1)
        await people.tick()
    assert table(people) == (1, 0, 0, 0)
    correct(scene, 1, by="bob")
    await people.tick()
    assert table(people) == (1, 0, 1, 0)


async def test_a_correction_of_what_was_put_before_people_or_of_another_judge_is_no_label(scene):
    scene.ours(1, True)
    scene.ours(2, True, version="qa@old")
    correct(scene, 1)
    correct(scene, 2)
    people = await scene.people(corrections_fail=["qa"], requested_for=lambda given: given.subject == trace(1))
    await people.tick()
    assert table(people) is None
    assert people.snapshot().corrections == {"qa": 2}
    assert people.snapshot().passed_over["other_version"] == 1


async def test_another_process_goes_on_where_one_ended_and_reads_only_what_may_be_new(scene):
    scene.ours(1, True)
    scene.label(1, True, ago_ns=20 * 24 * HOUR_NS)
    scene.label(2, "corrected", "output", dataType="CORRECTION", ago_ns=20 * 24 * HOUR_NS)
    scene.ours(2, True)
    people = await scene.people()
    await people.tick()
    again = await scene.people()
    assert table(again) == table(people) == (1, 0, 0, 0)
    assert again.snapshot().corrections == {"qa": 1}
    before = len(scene.bench.fake.requested("GET", "/v3/scores"))
    await again.tick()
    first = scene.bench.fake.requested("GET", "/v3/scores")[before]
    since = datetime.fromisoformat(first.params["fromTimestamp"]).timestamp()
    assert scene.bench.now_ns / 1e9 - since == pytest.approx(AGAIN_NS / 1e9, abs=60)
    assert table(again) == (1, 0, 0, 0)


@pytest.mark.parametrize("now", [{"rubrics": [QA.with_overrides(pass_mark=0.123)]}, {"judges": (OLD_JUDGE,)}])
async def test_pairs_of_another_version_of_the_rubric_or_of_another_judge_are_let_go_at_the_start(scene, now):
    scene.ours(1, True, judge=JUDGE)
    scene.label(1, True)
    await (await scene.people()).tick()
    assert table(await scene.people()) == (1, 0, 0, 0)
    people = await scene.people(**now)
    assert people.snapshot().measured == []
    await people.tick()
    assert people.snapshot().measured == []


@pytest.mark.parametrize("restarts", [False, True])
async def test_after_a_clock_was_set_back_labels_are_read_until_now_and_not_until_a_time_to_come(scene, restarts):
    scene.ours(1, True)
    scene.label(1, True)
    people = await scene.people()
    scene.bench.now_ns += 25 * HOUR_NS
    await people.tick()
    scene.bench.now_ns -= 24 * HOUR_NS
    people = await scene.people() if restarts else people
    scene.label(2, False)
    scene.ours(2, True)
    now_s = scene.bench.now_ns / 1e9  # which the requests' waits put forward
    await people.tick()
    assert table(people) == (1, 0, 1, 0)
    assert people.snapshot().read_s == now_s


async def test_another_project_is_read_from_its_beginning(scene):
    people = await scene.people()
    await people.tick()
    scene.bench.fake.project = {"id": "another", "name": "Another"}
    scene.ours(1, True)
    scene.label(1, True, ago_ns=20 * 24 * HOUR_NS)
    other = await scene.people()
    await other.tick()
    assert table(other) == (1, 0, 0, 0)


async def test_where_too_much_is_asked_for_less_is_asked_for(scene):
    def grudging(request):
        if "fromTimestamp" not in request.params:
            return None
        times = [datetime.fromisoformat(request.params[name]) for name in ("fromTimestamp", "toTimestamp")]
        return faults.resources()(request) if (times[1] - times[0]).total_seconds() > 5 * 24 * 3600 else None

    scene.ours(1, True)
    scene.label(1, True, ago_ns=FIRST_NS - HOUR_NS)
    scene.ours(2, True)
    scene.label(2, False)
    people = await scene.people()
    scene.bench.fake.standing_fault = grudging
    await people.tick()
    assert people.snapshot().reason == ""
    assert table(people) == (1, 0, 1, 0)


@pytest.mark.parametrize("fault", [faults.proxy_page(), faults.database_away(), faults.resets(), faults.error(403)])
async def test_an_outage_is_told_and_loses_no_label(scene, fault):
    scene.ours(1, True)
    scene.label(1, True)
    people = await scene.people()
    scene.bench.fake.standing_fault = fault
    await people.tick()
    assert people.snapshot().reason
    assert people.snapshot().read_s is None
    scene.bench.fake.standing_fault = None
    await people.tick()
    assert people.snapshot().reason == ""
    assert table(people) == (1, 0, 0, 0)


async def test_what_is_settled_is_not_compared_again(scene):
    for number in range(40):
        scene.ours(number, True)
        scene.label(number, True)
    people = await scene.people()
    await people.tick()
    before = len(scene.bench.fake.requests)
    await people.tick()
    # The last day, and one day of the month before it.
    assert [r.path for r in scene.bench.fake.requests[before:]] == ["/v3/scores", "/v3/scores"]
    assert table(people) == (40, 0, 0, 0)


STRICTER = QA.with_overrides(pass_mark=0.99)


@pytest.mark.parametrize(("changed", "judge"), [({"qa": STRICTER}, JUDGE), ({}, OLD_JUDGE)])
async def test_after_a_reload_only_verdicts_by_the_changed_rubric_or_judge_are_compared(scene, changed, judge):
    people = await scene.people()
    for number in range(1, 5):
        scene.ours(number, True, judge=JUDGE)
        scene.label(number, 1.0)
    await people.tick()
    people.take_rubrics({}, {"qa": (JUDGE,)})
    assert [each.n for each in people.snapshot().measured] == [4]
    people.take_rubrics(changed, {"qa": (judge,)})
    assert people.snapshot().measured == []
    scene.ours(7, True, version=changed.get("qa", QA).version, judge=judge)
    scene.label(7, 1.0)
    scene.bench.now_ns += 2 * HOUR_NS
    await people.tick()
    assert [each.n for each in people.snapshot().measured] == [1]
    assert people.snapshot().passed_over["other_version"] == 4


DAY_NS = 24 * 3600 * 10**9


async def test_what_a_name_no_longer_means_is_no_label_after_a_restart(scene):
    for number in range(4):
        scene.ours(number, True)
        scene.ours(number, True, rubric="answer", version=RUBRICS["answer"].version)
        scene.label(number, "good", "verdict")
    both = (QA, RUBRICS["answer"])
    people = await scene.people(PeopleScore(name="verdict", rubric="qa", passes=("good",)), rubrics=both)
    await people.tick()
    assert [each.rubric for each in people.snapshot().measured] == ["qa"]
    people = await scene.people(PeopleScore(name="verdict", rubric="answer", passes=("good",)), rubrics=both)
    await people.tick()
    assert [(each.rubric, each.n) for each in people.snapshot().measured] == [("answer", 4)]


@pytest.mark.parametrize("ago", [0, 20 * DAY_NS, 29 * DAY_NS], ids=["recent", "weeks ago", "listed no more"])
@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("by", ["ann", "bob"], ids=["by its author", "by another"])
async def test_an_edit_that_leaves_no_trace_and_a_deletion_are_seen(scene, ago, restarts, by):
    for number in range(8):
        scene.ours(number, True)
        scene.label(number, True, ago_ns=ago)
    people = await scene.people()
    await people.tick()
    assert table(people) == (8, 0, 0, 0)
    if ago > 28 * DAY_NS:
        scene.bench.now_ns += 200 * DAY_NS
        await people.tick()
    if restarts:
        people = await scene.people()
    for number in (1, 2, 3):
        scene.bench.fake.scores.edit(f"qa_pass-{number}-ann", value=0.0, authorUserId=by)
    for number in (6, 7):
        scene.bench.fake.scores.remove(f"qa_pass-{number}-ann")
    for _ in range(31 if ago else 1):
        await people.tick()
    assert table(people) == (3, 0, 3, 0)


async def test_the_month_is_read_again_and_again_while_time_goes_on(scene):
    for number in range(4):
        scene.ours(number, True)
        scene.label(number, True, ago_ns=10 * DAY_NS)
    people = await scene.people()
    for changed in (1, 2):
        for _ in range(40):
            scene.bench.now_ns += 300 * 10**9
            await people.tick()
        assert table(people) == (5 - changed, 0, changed - 1, 0)
        scene.bench.fake.scores.edit(f"qa_pass-{changed}-ann", value=0.0, authorUserId="ann")
    scene.bench.fake.scores.remove("qa_pass-0-ann")
    for _ in range(40):
        scene.bench.now_ns += 300 * 10**9
        await people.tick()
    assert table(people) == (1, 0, 2, 0)


async def test_of_several_labels_on_one_trace_the_latest_counts_whichever_was_read_last(scene):
    scene.ours(1, True)
    scene.label(1, True, ago_ns=10 * DAY_NS)
    scene.label(1, False, ago_ns=2 * DAY_NS, id="changed mind")
    scene.ours(2, True)
    scene.label(2, True, ago_ns=10 * DAY_NS)
    scene.label(2, False, by="bob", ago_ns=2 * DAY_NS)
    people = await scene.people()
    for restarts in (False, True, False):
        people = await scene.people() if restarts else people
        for _ in range(31):
            await people.tick()
            assert table(people) == (1, 0, 2, 0)
            assert people.snapshot().labels["qa"].judge_only == 2.0, "one label for each trace: the latest"
    scene.bench.fake.scores.remove("qa_pass-1-ann")
    for _ in range(31):
        await people.tick()
        assert table(people) == (1, 0, 2, 0), "the earlier one of hers counted no more"
    scene.bench.fake.scores.remove("changed mind")
    for _ in range(62):
        await people.tick()
    assert table(people) == (1, 0, 1, 0)


async def test_the_labels_of_one_person_go_and_those_of_another_stay(scene):
    scene.ours(1, True)
    scene.label(1, True, by="ann")
    scene.label(1, False, by="bob")
    people = await scene.people()
    await people.tick()
    assert table(people) == (1, 0, 1, 0)
    scene.bench.fake.scores.remove("qa_pass-1-bob")
    await people.tick()
    assert table(people) == (1, 0, 0, 0)


@pytest.mark.parametrize(("mode", "ids"), [(Mode.DUAL, "id"), (Mode.V3, "scoreIds"), (Mode.NEW, "id")])
async def test_old_labels_are_asked_for_some_at_a_time_and_all_of_them_in_the_end(scene, monkeypatch, mode, ids):
    scene.bench.fake.mode = mode
    if ids == "scoreIds":
        scene.bench.fake.standing_fault = faults.only("GET", "/v3/scores", lambda _: faults.page())
    monkeypatch.setattr(human_labels, "ASKED_AT_ONCE", 3)
    for number in range(8):
        scene.ours(number, True)
        scene.label(number, True)
    people = await scene.people()
    await people.tick()
    scene.bench.now_ns += 100 * DAY_NS
    await people.tick()
    for number in range(8):
        scene.bench.fake.scores.remove(f"qa_pass-{number}-ann")
    left, asked = [], []
    for _ in range(4):
        people = await scene.people()  # a restart begins no new round
        before = len(scene.bench.fake.requests)
        await people.tick()
        left.append(table(people) and table(people)[0])
        requests = [r.params for r in scene.bench.fake.requests[before:]]
        asked.append(sum(len(params[ids].split(",")) for params in requests if ids in params))
    assert (left, asked) == ([5, 3, None, None], [3, 2, 3, 0]), "the first round had begun"


@pytest.mark.parametrize("mode", [Mode.V3, Mode.NEW])
async def test_labels_that_are_older_than_what_a_plan_shows_still_count(scene, mode):
    bench = scene.bench
    people = await scene.people()
    for number in range(4):
        scene.ours(number, True)
        scene.label(number, True)
    bench.fake.mode = mode
    people = await scene.people()
    await people.tick()
    bench.now_ns += 20 * DAY_NS
    scene.ours(8, True)
    scene.label(8, True)
    await people.tick()

    def shown(request):
        answered = bench.fake._act(request)
        if not request.path.endswith("/scores") or request.method != "GET":
            return answered
        body, since = json.loads(answered.body), stamp(datetime.fromtimestamp(bench.now_ns / 1e9 - 30 * 86_400, UTC))
        return faults.answer({**body, "data": [row for row in body["data"] if row["timestamp"] >= since]})

    bench.fake.standing_fault = shown
    for _ in range(40):
        bench.now_ns += DAY_NS
        await people.tick()
    assert table(people) == (5, 0, 0, 0)
    bench.fake.standing_fault = None  # another plan
    bench.fake.scores.remove("qa_pass-2-ann")
    await people.tick()
    assert table(people) == (4, 0, 0, 0)


async def test_a_list_whose_pages_shift_while_it_is_read_deletes_no_label(scene):
    for number in range(4):
        scene.ours(number, True)
        scene.label(number, True)
    people = await scene.people()
    await people.tick()

    def shifted(request):
        answered = scene.bench.fake._act(request)
        if "fromTimestamp" not in request.params:
            return answered
        body = json.loads(answered.body)
        return faults.answer({**body, "data": body["data"][:1]})

    scene.bench.fake.standing_fault = shifted
    await people.tick()
    assert table(people) == (4, 0, 0, 0)


async def test_more_labels_than_are_remembered_are_read_and_the_latest_count(scene, monkeypatch):
    monkeypatch.setattr(human_labels, "MOST_LABELS", 5)
    for number in range(9):
        scene.ours(number, True)
        scene.label(number, number > 3, ago_ns=(9 - number) * HOUR_NS)
        scene.label(number, 1.0, "mood", ago_ns=(9 - number) * HOUR_NS)
    people = await scene.people()
    for _ in range(3):
        await people.tick()
        assert (people.snapshot().reason, table(people)) == ("", (5, 0, 0, 0))
        assert people.snapshot().passed_over["unmapped"] == 9
    for number in range(4, 9):
        scene.bench.fake.scores.remove(f"qa_pass-{number}-ann")
    await people.tick()
    await people.tick()
    assert table(people) == (0, 0, 4, 0), "those before them are the latest now"


async def test_labels_of_one_moment_are_all_read_whatever_the_order_of_their_pages(scene):
    for number in range(130):
        scene.ours(number, True)
        scene.label(number, True, ago_ns=HOUR_NS)
    people = await scene.people()
    await people.tick()
    assert table(people) == (130, 0, 0, 0)


async def test_labels_of_a_project_are_let_go_when_the_keys_come_to_belong_to_another(scene):
    scene.ours(1, True)
    scene.label(1, True, ago_ns=20 * DAY_NS)
    people = await scene.people()
    await people.tick()
    scene.bench.now_ns += 100 * DAY_NS
    await people.tick()
    scene.bench.fake.project = {"id": "another", "name": "Another"}
    scene.bench.fake.scores.clear()
    for _ in range(2):
        other = await scene.people()
        await other.tick()
        assert table(other) is None
