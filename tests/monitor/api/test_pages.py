"""Pages over a real view: what each address answers, to whom, and when it has nothing new to say."""

from __future__ import annotations

import pytest

from sidejudge.scoring.status.service_status import UNKNOWN_ENVIRONMENT, UNKNOWN_SERVICE
from tests.monitor.api.still import SAID
from tests.otlp_requests import HIGH, LOW, trace


def page(number, tail=HIGH) -> str:
    return f"/traces/{trace(number, tail).hex()}"


async def test_a_page_has_a_tag_that_only_news_change(still):
    s = still()
    first = await s.get("/")
    assert first.status_code == 200
    s.now += 5_000_000_000
    again = await s.get("/", if_none_match=first.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["date"] > first.headers["date"], "its hour is told nevertheless"
    await s.take(1)
    fresh = await s.get("/", if_none_match=first.headers["etag"])
    assert fresh.status_code == 200
    assert fresh.headers["etag"] != first.headers["etag"]


async def test_a_failing_trace_links_to_its_story_which_shows_what_was_expected(still):
    s = still()
    await s.take(1)
    await s.judge()
    for path in ("/", "/verdicts", "/verdicts?passed=false&rubric=workflow&service=shop"):
        text = (await s.get(path)).text
        assert f'href="{page(1)}"' in text, path
        assert "expected, not called" in text, path
    story = (await s.get(page(1))).text
    assert "Tomorrow." in story
    assert "lookup" in story
    assert "it ended as scored" in story


async def test_what_was_said_is_for_those_who_may_see_it(still):
    s = still()
    await s.take(1)
    await s.judge()
    story = (await s.get(page(1), caller="10.0.0.1")).text
    assert "Tomorrow." not in story
    assert "api.contents" in story
    assert "it ended as scored" in story


async def test_when_the_spans_are_gone_the_page_says_so_and_keeps_the_verdicts(still):
    s = still()
    await s.take(1)
    await s.judge()
    await s.monitor.store.purge(0, chunks_before_ns=s.now + 1)
    story = (await s.get(page(1))).text
    assert "Tomorrow." not in story
    assert "let go of" in story
    assert "expected, not called" in story


async def test_open_traces_and_traces_that_were_not_drawn_have_stories_too(still):
    s = still(sampling={"rate": 0.5})
    await s.take(1)
    await s.take(2, LOW)
    opened = (await s.get(page(1))).text
    assert "it is still open" in opened
    not_drawn = (await s.get(page(2, LOW))).text
    assert "below the base rate" in not_drawn
    assert "so counts" not in not_drawn
    assert "never kept" in not_drawn


@pytest.mark.parametrize(
    ("path", "code", "stated"),
    [
        (page(77), 404, "nothing is known of trace"),
        (page(77), 404, "was shed under load"),
        ("/traces/xyz", 422, "32 hex digits"),
        ("/traces?id=<b>", 422, "32 hex digits"),
        ("/traces?reason=<b>", 422, "no such reason"),
        ("/traces?cursor=<b>", 422, "is not a cursor"),
        ("/verdicts?rubric=<b>", 422, "no such rubric"),
        ("/verdicts?cursor=<b>", 422, "is not a cursor"),
        ("/verdicts?passed=<b>", 422, "no such passed"),
    ],
)
async def test_what_is_asked_in_vain_is_answered_by_a_page_with_cause_and_remedy(still, path, code, stated):
    answer = await still().get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (code, "text/html; charset=utf-8")
    assert stated in answer.text
    assert "<b>" not in answer.text.partition("</style>")[2]


async def test_a_trace_is_found_by_its_id_however_it_is_written(still):
    answer = await still().get(f"/traces?id=%20{trace(1).hex().upper()}%20")
    assert (answer.status_code, answer.headers["location"]) == (303, page(1))


async def test_the_pages_of_verdicts_follow_each_other(still):
    s = still()
    for number in range(1, 61):
        await s.take(number)
    await s.judge()
    first = (await s.get("/verdicts?service=shop&passed=false")).text
    assert first.count("<tr>") == 51
    assert 'rel="first"' not in first
    older = first.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
    assert "service=shop" in older
    assert "passed=false" in older
    second = (await s.get(older)).text
    assert second.count("<tr>") == 11
    assert 'rel="next"' not in second
    assert 'href="/verdicts?service=shop&amp;passed=false" rel="first"' in second


async def test_the_configuration_shows_what_was_given_and_no_secret(still):
    s = still(
        sources={
            "otlp": {"http": "127.0.0.1:0", "auth": {"bearer": ["s3cret-bearer"], "basic": {"anna": "s3cret-basic"}}}
        },
        sinks={"langfuse": {"base_url": "http://127.0.0.1:9", "public_key": "pk-s3cret", "secret_key": "sk-s3cret"}},
        alerts={"notify": [{"name": "hook", "slack": {"url": "https://hooks.example/s3cret"}}], "min_samples": 77},
    )
    text = (await s.get("/configuration")).text
    assert "s3cret" not in text
    assert "<b>77</b>" in text
    assert "alerts.min_failures" in text
    assert "set, not shown" in text


async def test_anomalies_stand_on_the_page(still):
    s = still()
    from sidejudge.scoring.status.snapshots import Anomaly, AnomalyKind  # noqa: PLC0415  # only this test needs it

    skewed = Anomaly(
        kind=AnomalyKind.SKEWED_SAMPLING, service="<b>shop", cause="low ids only", remedy="sampling.randomness: hashed"
    )
    s.monitor.traffic.others = [lambda: [skewed]]
    text = (await s.get("/")).text
    for stated in ("Anomalies", "skewed sampling", "&lt;b&gt;shop", "low ids only", "sampling.randomness: hashed"):
        assert stated in text


async def test_what_names_no_service_is_found_under_the_name_that_the_page_gives_it(still):
    s = still()
    await s.take(1, service="")
    await s.judge()
    home = (await s.get("/")).text
    where = f"service={UNKNOWN_SERVICE}&amp;environment={UNKNOWN_ENVIRONMENT}"
    link = f"/verdicts?{where}&amp;rubric=workflow&amp;passed=false"
    assert f'href="{link}"' in home
    found = (await s.get(link.replace("&amp;", "&"))).text
    assert f'href="{page(1)}"' in found


async def test_what_a_monitor_tells_of_itself_has_a_story_that_says_so(still):
    s = still()
    s.monitor.outcomes.excluded("sidejudge", {trace(5)})
    story = (await s.get(page(5))).text
    assert "it is a trace of a monitor itself" in story
    assert "never kept" in story


async def test_the_documentation_is_served_searched_and_answers_404_where_there_is_no_page(still):
    still = still()
    overview = await still.get("/help")
    assert overview.status_code == 200
    assert 'href="/help/how-to/missing-trace"' in overview.text
    page = await still.get("/help/reference/configuration")
    assert "<h1" in page.text
    assert "sampling.rate" in page.text
    assert "/help/how-to/missing-trace" in (await still.get("/help?q=missing+trace")).text
    gone = await still.get("/help/../monitor/config/model.py")
    assert gone.status_code == 404


async def test_verdicts_are_found_by_what_they_hold_counted_and_given_as_a_file(still):
    still = still()
    for number in (1, 5):
        await still.take(number, name="Refund", service="shop")
    await still.judge()
    page = (await still.get("/verdicts?passed=false&metric=tools&text=refund&last=1h&below=0.9")).text
    assert page.count('<tr><th scope="row" class="id"') == 2
    assert "2 match" in page
    assert '<option value="tools" selected>tools (2)</option>' in page
    assert '<option value="false" selected>failed (2)</option>' in page
    assert 'href="/verdicts.csv?passed=false&amp;last=1h&amp;metric=tools&amp;below=0.9&amp;text=refund"' in page
    assert "No verdict matches" in (await still.get("/verdicts?text=lookup", caller="10.0.0.1")).text
    assert "No verdict matches" not in (await still.get("/verdicts?text=lookup")).text
    file = await still.get("/verdicts.csv?text=refund")
    assert file.headers["content-type"].startswith("text/csv")
    assert len(file.text.splitlines()) == 3
    for query in ("last=soon", "below=2", "below=x", "state=bad", "rubric=none"):
        assert (await still.get(f"/verdicts?{query}")).status_code == 422, query


async def test_the_page_of_verdicts_quotes_the_input_to_those_who_see_contents(still):
    still = still()
    await still.take(1)
    await still.judge()
    for path in ("/verdicts", "/verdicts.csv"):
        assert "When?" in (await still.get(path)).text, path
        assert "When?" not in (await still.get(path, caller="10.0.0.1")).text, path


async def test_a_service_has_a_page_which_the_status_page_links_to(still):
    still = still()
    await still.take(1, service="shop")
    await still.judge()
    at = "/services?service=shop&amp;environment=unknown&amp;rubric=workflow"
    assert f'href="{at}"' in (await still.get("/")).text
    page = (await still.get(at.replace("&amp;", "&"))).text
    assert page.partition('id="worst"')[2].count(f'href="/traces/{trace(1, HIGH).hex()}') == 1
    assert "tools" in page
    assert (await still.get("/services?service=shop&environment=unknown&rubric=none")).status_code == 422
    assert (await still.get("/services?service=shop&environment=x&rubric=workflow&last=soon")).status_code == 422
    moved = await still.get("/services")
    assert (moved.status_code, moved.headers["location"]) == (307, "/")
    assert "No verdict in this time" in (await still.get("/services?service=x&environment=x&rubric=workflow")).text


@pytest.mark.parametrize("since", ["0060-11-15T17:00:08Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
async def test_an_instant_of_any_year_is_a_bound(still, since):
    s = still()
    for path in ("/v1/traces", "/v1/verdicts", "/v1/compare"):
        assert (await s.get(f"{path}?since={since}")).status_code == 200


@pytest.mark.parametrize("span", ["99999d", "999999999d", "9999999999999999999d"])
async def test_a_time_of_any_length_is_all_there_is(still, span):
    s = still()
    await s.take(1, service="shop")
    await s.judge()
    at = "service=shop&environment=unknown&rubric=workflow"
    for path in (f"/verdicts?last={span}", f"/services?{at}&last={span}", f"/compare?{at}&last={span}",
                 f"/compare?last={span}"):  # fmt: skip
        assert (await s.get(path)).status_code == 200, path
    assert trace(1, HIGH).hex() in (await s.get(f"/verdicts.csv?last={span}")).text
    for since in ("", "&since=0001-01-01"):
        assert (await s.get(f"/v1/compare?before={span}{since}")).status_code == 200


async def test_a_rubric_of_ones_own_has_a_page_with_a_card_for_each_metric(still):
    metrics = [{"id": "polite", "check": {"icontains": "please"}, "title": "Says <please>"}]
    s = still(rubrics={"own-tone": {"metrics": metrics}}, routes=[{"rubrics": ["own-tone"]}])
    await s.take(1)
    await s.judge()
    page = (await s.get("/services?service=shop&environment=unknown&rubric=own-tone&metric=polite")).text
    assert 'href="/rubrics/own-tone#polite"' in page
    card = (await s.get("/rubrics/own-tone")).text
    assert 'id="polite"' in card
    assert "Says &lt;please&gt;" in card
    assert (await s.get("/rubrics/run_health")).status_code == 200
    missing = await s.get("/rubrics/none-such")
    assert (missing.status_code, "no such rubric" in missing.text) == (404, True)


async def test_two_versions_are_compared_through_the_front_door(still):
    s = still()
    for first, release in ((1, "1.0"), (21, "2.0")):
        for number in range(first, first + 20):
            await s.take(number, service="shop", attributes={**SAID, "langfuse.release": release})
        await s.judge()
    s.now += 1
    page = await s.get("/compare?service=shop&environment=unknown&rubric=workflow")
    assert page.status_code == 200
    assert "1.0 (20)" in page.text
    assert "2.0 (20)" in page.text
    assert "No difference is shown" in page.text
    at = page.text.partition('href="/v1/compare')[2].partition('"')[0].replace("&amp;", "&")
    (found,) = (await s.get(f"/v1/compare{at}")).json()["comparisons"]
    assert (found["before"]["label"], found["after"]["label"]) == ("1.0", "2.0")
    failed = (await s.get("/verdicts?release=2.0&passed=false")).text
    assert "20 match" in failed
    for wrong, stated in (("by=colour", "no such choice"), ("last=x", "cannot be read"), ("at=x&by=time", "cannot be")):
        refused = await s.get(f"/compare?service=shop&environment=unknown&rubric=workflow&{wrong}")
        assert (refused.status_code, stated in refused.text) == (422, True), wrong
    listed = (await s.get("/compare")).text
    assert "1.0 → 2.0" in listed
    offered = listed.partition('href="/compare?')[2].partition('"')[0].replace("&amp;", "&")
    assert "2.0 (20)" in (await s.get(f"/compare?{offered}")).text
    assert (await s.get("/compare?rubric=none")).status_code == 422
