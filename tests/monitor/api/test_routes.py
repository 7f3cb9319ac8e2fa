from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from sidejudge.dashboards.pages.plain_pages import ConfigurationPage, Setting
from sidejudge.dashboards.pages.status_page import MonitorReport
from sidejudge.dashboards.pages.trace_page import TracePage
from sidejudge.integrations.store.errors import StoreUnavailable, changed
from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.monitor.api.access import AccessRules
from sidejudge.monitor.api.schemas import AvailableMetricsBody, StatusBody
from sidejudge.monitor.api.verdict_schemas import TraceBody, VerdictsBody
from sidejudge.monitor.api.view import Position, VerdictPage
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.status.snapshots import JudgeModelSnapshot, JudgeSnapshot, Spending
from sidejudge.scoring.status.status import Policy
from sidejudge.scoring.verdict.verdict import Score, State, Verdict
from tests.monitor.api.still import api

TRACE = "0af7651916cd43dd8448eb211c80319c"
NOW = 1_790_000_000_000_000_000
HOSTILE = "<script>alert(1)</script>\"'&\u202e\ud800"


def verdict(number: int = 0, **changes) -> dict:
    fields = {
        "case_id": TRACE, "trace_id": TRACE, "rubric": "qa", "rubric_version": "qa@1", "composite": 0.5,
        "composite_norm": 0.5, "coverage": 1.0, "state": State.VALID, "passed": False, "rating": "fail", "blockers": (),
        "pass_mark": 0.87, "sampling_probability": 0.25, "created_at": f"2026-01-01T00:00:{number:02}Z",
        "service": "shop", "environment": "prod",
        "scores": (Score(metric="a", weight=1.0, result=Scored(value=0.5), rating=None),),
    }  # fmt: skip
    return Verdict(**{**fields, **changes}).to_json()


class View:
    """A monitor that stands still."""

    def __init__(self):
        self.up, self.requested, self.page, self.stories = True, [], VerdictPage(), {}
        self.windows = Windows(3600 * 10**9)
        self.rubrics = tuple(RUBRICS)
        self.reload = None
        self.report = MonitorReport(
            services=(), policy=Policy(), window_ns=3600 * 10**9, seen=10, open=1, ended={"scored": 7, "shed": 2},
            revisions=1, sampling_rate=0.05, otlp_port=4317, sampling_rules=("errors",),
            version="1.2.3", fingerprint="0123456789ab",
            started_ns=NOW - 90 * 10**9, now_ns=NOW,
        )  # fmt: skip

    def live(self):
        return self.up

    ready = started = live

    def clock_ns(self):
        return NOW

    def status(self):
        windows, policy = self.windows, self.report.policy
        services = [windows.status(key, NOW, policy) for key in windows.keys()]  # noqa: SIM118  # Windows is no mapping
        return replace(self.report, services=services)

    async def verdicts(self, query, *, contents=False):
        self.requested.append(query)
        return self.page

    async def search(self, query, *, contents, counted=True, fields=None):
        self.requested.append(query)
        return self.page

    async def trace(self, trace_id, *, contents):
        return self.stories.get(trace_id)

    async def spans(self, trace_id):
        return self.stories[trace_id].get("spans") if trace_id in self.stories else None

    async def judge_calls(self, trace_id):
        return {"off": None, "calls": [{"call": "c", "messages": []}]}

    async def trace_page(self, trace_id, *, contents):
        found = self.stories.get(trace_id)
        return TracePage(details=found, happened=["it ended"], absent="gone", now_ns=NOW) if found else None

    async def trends(self):
        return {}

    async def failure_groups(self, *, contents):
        return []

    def configuration(self):
        return ConfigurationPage(
            settings=[Setting(key="sampling.rate", value="0.5", given=True)], cautions=[("loose", "tighten")],
            version="1.2.3", fingerprint="0123456789ab",
        )  # fmt: skip

    async def metrics(self, accept, *, small=False):
        return accept.encode(), {"content-type": "text/plain; version=0.0.4; charset=utf-8", "x-small": str(small)}

    def verdict(self, service="shop", passes=20, failures=10):
        for number in range(passes + failures):
            seen = Observation(
                identity=f"{service}{number}", at_ns=NOW, passed=number < passes, weight=20.0, composite=0.5,
                metrics={"a": 0.25},
            )  # fmt: skip
            self.windows.add(Key(service, "prod", "qa"), seen)


@pytest.fixture
def view():
    return View()


@pytest.fixture
async def client(view):
    app = api(view, version="1.2.3")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://monitor") as client:
        yield client


@pytest.mark.parametrize("probe", ["/livez", "/readyz", "/startupz"])
async def test_probes_answer_in_text_and_with_their_status_code(client, view, probe):
    answer = await client.get(probe)
    assert (answer.status_code, answer.text) == (200, "ok\n")
    view.up = False
    answer = await client.get(probe)
    assert answer.status_code == 503
    assert answer.text.startswith("not ")
    assert answer.headers["content-type"].startswith("text/plain")


async def test_metrics_are_served_as_negotiated_and_with_their_own_content_type(client):
    answer = await client.get("/metrics", headers={"accept": "application/openmetrics-text"})
    assert answer.text == "application/openmetrics-text"
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


async def test_status_tells_where_every_service_stands_and_that_the_books_balance(client, view):
    view.verdict()
    answer = (await client.get("/v1/status")).json()
    StatusBody.model_validate(answer)
    (standing,) = answer["standings"]
    assert (standing["service"], standing["environment"], standing["rubric"]) == ("shop", "prod", "qa")
    assert (standing["status"], answer["status"]) == ("warning", "warning")
    assert "upper end of its 95 % interval" in standing["reason"]
    assert standing["pass_ratio"] == pytest.approx(2 / 3)
    assert standing["lower"] < standing["pass_ratio"] < standing["upper"] < 0.85
    assert (standing["n"], standing["failures"], standing["effective_n"], standing["traffic"]) == (30, 10, 30, 600)
    assert (standing["composite_mean"], standing["metric_means"]) == (0.5, {"a": 0.25})
    assert (standing["thresholds"], standing["window_s"]) == ({"warning": 0.85, "critical": 0.7}, 3600)
    outcomes = answer["outcomes"]
    assert answer["ledger"] == outcomes, "the old name, for a version"
    assert outcomes["seen"] == outcomes["open"] + sum(outcomes["ended"].values())
    assert (answer["open_traces"], answer["uptime_s"], answer["version"]) == (1, 90, "1.2.3")
    assert answer["config_fingerprint"] == "0123456789ab"
    assert answer["sampling"] == {"rate": 0.05, "rules": ["errors"], "begun_by_callers": 0, "disbelieved": {}}


async def test_status_and_page_tell_how_the_judge_stands(client, view):
    assert (await client.get("/v1/status")).json()["judge"] is None
    view.report = replace(view.report, judge=JudgeSnapshot(
        name="openai/m",
        models=(
            JudgeModelSnapshot(
                model="openai/m", circuit="open", reason="authentication failed", since_s=NOW / 1e9, next_probe_s=None
            ),
        ),
        outage="authentication failed",
        spending=(Spending(period="hour", spent_usd=0.5, limit_usd=2.0),),
        shares={"high": 1.0, "normal": 0.25, "low": 0.1}, under_way=3, waiting=7, oldest_s=NOW / 1e9 - 60,
    ))  # fmt: skip
    answer = (await client.get("/v1/status")).json()
    StatusBody.model_validate(answer)
    judge = answer["judge"]
    (model,) = judge["models"]
    assert (model["state"], model["reason"], model["next_probe"]) == ("open", "authentication failed", None)
    assert (judge["outage"], judge["in_flight"], judge["waiting"]) == ("authentication failed", 3, 7)
    assert judge["budgets"] == [{"period": "hour", "spent_usd": 0.5, "limit_usd": 2.0}]
    assert judge["shares"]["normal"] == 0.25
    assert judge["oldest_since"] < model["since"]
    assert "authentication failed" in (await client.get("/")).text


async def test_status_without_a_verdict_is_insufficient_data_and_null_not_zero(client, view):
    assert (await client.get("/v1/status")).json()["status"] == "insufficient_data"
    view.windows.add(Key("shop", "prod", "qa"), Observation(identity="a", at_ns=NOW, passed=None))
    (standing,) = (await client.get("/v1/status")).json()["standings"]
    assert (standing["status"], standing["pass_ratio"], standing["upper"], standing["incomplete"]) == (
        "insufficient_data", None, None, 1,
    )  # fmt: skip


async def test_a_name_that_is_no_unicode_does_not_cost_the_status(client, view):
    view.verdict("shop\ud800")
    answer = await client.get("/v1/status")
    assert (answer.status_code, answer.json()["standings"][0]["service"]) == (200, "shop?")


async def test_one_critical_service_makes_the_whole_critical(client, view):
    view.verdict("good", passes=100, failures=0)
    view.verdict("bad", passes=5, failures=95)
    assert (await client.get("/v1/status")).json()["status"] == "critical"


async def test_verdicts_are_asked_for_with_every_filter(client, view):
    view.page = VerdictPage(verdicts=[verdict()], next=Position(closed_ns=NOW, trace_id=TRACE, rubric="qa"))
    answer = await client.get(
        "/v1/verdicts",
        params={
            "rubric": "qa", "service": "shop", "environment": "prod", "passed": "false", "state": "valid",
            "trace_id": TRACE.upper(), "since": "2026-01-01T00:00:00.5", "limit": 7, "cursor": f"5-{TRACE}-qa",
        },
    )  # fmt: skip
    VerdictsBody.model_validate(answer.json())
    assert answer.json()["next_cursor"] == f"{NOW}-{TRACE}-qa"
    (query,) = view.requested
    assert (query.rubric, query.service, query.environment, query.passed) == ("qa", "shop", "prod", "false")
    assert (query.state, query.trace_id, query.limit) == (State.VALID, TRACE, 7)
    assert query.since_ns == 1_767_225_600_500_000_000
    assert query.after == Position(closed_ns=5, trace_id=TRACE, rubric="qa")


async def test_a_time_zone_is_heeded(client, view):
    await client.get("/v1/verdicts", params={"since": "2026-01-01T05:30:00+05:30"})
    assert view.requested[0].since_ns == 1_767_225_600_000_000_000


@pytest.mark.parametrize(
    ("query", "named"),
    [("limit=1001", "limit"), ("limit=0", "limit"), ("limit=x", "limit"), ("passed=maybe", "passed"),
     ("state=great", "state"), ("trace_id=xyz", "trace_id"), ("since=yesterday", "since"), ("cursor=12", "cursor"),
     ("cursor=99999999999999999999-0af7651916cd43dd8448eb211c80319c-qa", "cursor"),
     ("cursor=9999999999999999999-0af7651916cd43dd8448eb211c80319c-qa", "cursor")],
)  # fmt: skip
async def test_a_wrong_parameter_is_named_and_not_repeated_beyond_reason(client, view, query, named):
    answer = await client.get(f"/v1/verdicts?{query}")
    assert answer.status_code == 422
    assert set(answer.json()) == {"error", "remedy"}
    assert answer.json()["error"].startswith(f"{named}: ")
    assert view.requested == []


@pytest.mark.parametrize(
    ("query", "error", "remedy"),
    [("rubrik=qa", "rubrik: there is no such parameter", "did you mean rubric?"),
     ("rubric=qa&q=1", "q: there is no such parameter", "the parameters are rubric, service"),
     ("rubric=qas", "rubric: there is no such rubric", f"choose from {', '.join(RUBRICS)}")],
)  # fmt: skip
async def test_what_does_not_exist_is_refused_and_not_ignored(client, view, query, error, remedy):
    answer = await client.get(f"/v1/verdicts?{query}")
    assert answer.status_code == 422
    assert answer.json()["error"] == error
    assert answer.json()["remedy"].startswith(remedy)
    assert view.requested == []


@pytest.mark.parametrize(
    "path",
    ["/v1/status", "/v1/alerts", "/v1/verdicts", "/v1/traces", "/v1/compare", "/v1/fleet", "/v1/reported",
     f"/v1/traces/{TRACE}", f"/v1/traces/{TRACE}/spans", f"/v1/traces/{TRACE}/judge", "/config/available-metrics",
     "/verdicts.csv"],
)  # fmt: skip
async def test_every_route_for_programs_refuses_a_parameter_that_it_does_not_have(client, view, path):
    answer = await client.get(f"{path}?stauts=failed")
    assert (answer.status_code, answer.json()["error"]) == (422, "stauts: there is no such parameter")
    assert answer.json()["remedy"]
    assert view.requested == []


@pytest.mark.parametrize("path", ["/v1/verdicts", "/v1/traces", "/v1/compare", "/verdicts.csv"])
async def test_a_parameter_that_is_given_twice_is_refused(client, view, path):
    answer = await client.get(f"{path}?service=shop&service=web")
    assert (answer.status_code, answer.json()["error"]) == (422, "service: it is given 2 times")
    assert view.requested == []


async def test_old_links_to_pages_go_on(client):
    for path in ("/", "/verdicts"):
        assert (await client.get(f"{path}?utm_source=mail&service=shop&service=web")).status_code == 200


async def test_verdicts_that_are_hard_to_write_are_written(client, view):
    view.page = VerdictPage(verdicts=[verdict(service=HOSTILE, extra={"big": 2**80})])
    answer = await client.get("/v1/verdicts")
    assert json.loads(answer.content)["verdicts"][0]["big"] == 2**80
    assert json.loads(answer.content)["verdicts"][0]["service"] == HOSTILE


async def test_a_traces_story_is_told_whatever_the_case_of_its_id(client, view):
    view.stories[TRACE] = {"trace_id": TRACE, "reason": "scored", "spans": 4, "verdicts": [verdict()]}
    answer = await client.get(f"/v1/traces/{TRACE.upper()}")
    TraceBody.model_validate(answer.json())
    assert (answer.json()["reason"], answer.json()["spans"]) == ("scored", 4)


async def test_a_browser_is_shown_indented_json_and_a_program_compact(client, view):
    view.stories[TRACE] = {"trace_id": TRACE, "reason": "scored", "verdicts": []}
    for path in (f"/v1/traces/{TRACE}", "/v1/verdicts"):
        person = await client.get(path, headers={"accept": "text/html,*/*"})
        program = await client.get(path)
        assert person.json() == program.json()
        assert b"\n  " in person.content
        assert b"\n" not in program.content


async def test_an_unknown_trace_is_404_and_says_why_it_may_be(client):
    answer = await client.get(f"/v1/traces/{TRACE}")
    assert answer.status_code == 404
    assert "sampling" in answer.json()["remedy"]
    assert f"sidejudge explain {TRACE}" in answer.json()["remedy"]


@pytest.mark.parametrize("bad", ["xyz", "0" * 32, TRACE + "0", TRACE[:-1] + "é", "%00" * 32])
async def test_what_is_no_trace_id_is_422_with_a_clear_message(client, bad):
    answer = await client.get(f"/v1/traces/{bad}")
    assert answer.status_code == 422
    assert "32 hex digits" in answer.json()["error"]


async def test_unknown_paths_and_other_methods_are_problems_of_the_same_shape(client):
    answer = await client.get("/nowhere")
    assert (answer.status_code, set(answer.json())) == (404, {"error", "remedy"})
    answer = await client.post("/v1/status")
    assert (answer.status_code, answer.headers["allow"], set(answer.json())) == (405, "GET, HEAD", {"error", "remedy"})
    assert answer.json()["remedy"] == "this path answers GET, HEAD and nothing else"
    answer = await client.get("/-/reload")
    assert (answer.status_code, answer.json()["remedy"]) == (405, "this path answers POST and nothing else")


PATHS = [
    "/",
    "/docs",
    "/verdicts",
    "/configuration",
    "/traces?id=0",
    f"/traces/{TRACE}",
    "/openapi.json",
    "/livez",
    "/metrics",
    "/v1/status",
    "/v1/verdicts",
    "/nowhere",
]


@pytest.mark.parametrize("path", PATHS)
async def test_every_answer_carries_the_security_headers_and_no_permission_for_other_origins(client, path):
    answer = await client.get(path, headers={"origin": "http://elsewhere"})
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in answer.headers


async def test_the_landing_page_shows_status_failures_and_links_and_escapes_what_came_from_traces(client, view):
    view.verdict(HOSTILE)
    view.page = VerdictPage(verdicts=[verdict(service=HOSTILE, reason=HOSTILE)])
    answer = await client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text.count("<script") == 1, "its own"
    assert "&lt;script&gt;alert(1)" in answer.text
    assert f'href="/traces/{TRACE}"' in answer.text
    assert view.requested[0].passed == "false"
    for link in ("/v1/status", "/v1/verdicts", "/metrics", "/docs"):
        assert f'href="{link}"' in answer.text


async def test_openapi_describes_every_path_with_its_own_shape_of_errors(client):
    document = (await client.get("/openapi.json")).json()
    assert set(document["paths"]) == {
        "/livez", "/readyz", "/startupz", "/metrics", "/v1/status", "/v1/verdicts", "/v1/traces",
        "/v1/traces/{trace_id}", "/v1/traces/{trace_id}/spans", "/v1/traces/{trace_id}/judge",
        "/v1/alerts", "/v1/compare", "/v1/fleet", "/v1/reported",
        "/config/available-metrics",
    }  # fmt: skip
    assert "HTTPValidationError" not in json.dumps(document)
    assert document["info"]["version"] == "1.2.3"
    for path, methods in document["paths"].items():
        assert methods["get"]["description"], path


async def test_the_docs_page_lists_every_path_and_loads_nothing(client):
    page = (await client.get("/docs")).text
    for path in (
        "/livez",
        "/metrics",
        "/v1/status",
        "/v1/verdicts",
        "/v1/traces",
        "/v1/traces/{trace_id}",
        "ServiceStatusBody",
    ):
        assert path in page
    assert "src=" not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


async def test_the_available_metrics_are_served_in_the_seeds_shape(client):
    answer = await client.get("/config/available-metrics")
    assert answer.status_code == 200
    found = answer.json()
    assert found["count"] == len(found["data"]) == 9
    assert list(found["data"][0]) == [
        "name", "display_name", "description", "tier", "default_weight", "score_type", "rubric", "include_in_defaults",
    ]  # fmt: skip
    AvailableMetricsBody.model_validate(found)
    opt_in = [each["name"] for each in found["data"] if not each["include_in_defaults"]]
    assert opt_in == ["task_completion"]


@pytest.mark.parametrize(
    "path", ["/", "/verdicts", "/livez", "/readyz", "/startupz", "/v1/status", "/metrics", "/docs"]
)
async def test_head_is_answered_as_get_without_a_body(client, path):
    whole, head = await client.get(path), await client.head(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]


async def test_a_path_that_is_not_there_is_a_page_for_a_browser_and_json_for_a_program(client):
    page = await client.get("/nothing", headers={"accept": "text/html,*/*"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "there is nothing at this path" in page.text
    assert (await client.get("/nothing")).json()["error"] == "there is nothing at this path"


SERVICE_PAGE = "/services?service=shop&rubric=qa"


PAGES = ["/v1/verdicts", "/v1/traces/" + TRACE, "/verdicts", "/verdicts.csv", SERVICE_PAGE]


@pytest.mark.parametrize("path", PAGES)
async def test_a_store_that_cannot_be_read_is_503_and_its_path_stays_in_the_log(client, view, path):
    async def fails(*_, **__):
        raise StoreUnavailable("store /secret/state.sqlite: disk I/O error")

    view.verdicts = view.trace = view.trace_page = view.search = view.service = fails
    for accept in ("application/json", "text/html"):
        response = await client.get(path, headers={"accept": accept})
        assert (response.status_code, "secret" in response.text) == (503, False)
        assert "try again" in response.text


async def test_where_services_stand_is_shown_though_the_store_cannot_be_read(client, view, caplog):
    async def fails(*_, **__):
        raise changed(Path("/secret/state.sqlite"))

    view.verdicts = fails
    page = await client.get("/", headers={"accept": "text/html"})
    assert (page.status_code, "secret" in page.text) == (200, False)
    assert "The store cannot be read: the latest failures and trends are missing." in page.text
    assert "sidejudge store recover" in caplog.records[-1].cause
    damaged = await client.get("/v1/verdicts")
    assert (damaged.status_code, damaged.json()["error"]) == (503, "the store is damaged")


@pytest.mark.parametrize(("contents", "status"), [("always", 200), ("never", 403)])
async def test_spans_are_given_to_those_who_may_see_contents_while_they_are_held(view, contents, status):
    view.stories |= {TRACE: {"spans": b"\x0a\x00"}, "cd" * 16: {}}
    app = api(view, rules=AccessRules(contents=contents))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://monitor") as client:
        answer = await client.get(f"/v1/traces/{TRACE}/spans")
        assert answer.status_code == status
        if status == 200:
            assert (answer.content, answer.headers["content-type"]) == (b"\x0a\x00", "application/x-protobuf")
            gone = await client.get(f"/v1/traces/{'cd' * 16}/spans")
            assert (gone.status_code, "keep_contents" in gone.json()["remedy"]) == (404, True)


@pytest.mark.parametrize(("contents", "status"), [("always", 200), ("never", 403)])
async def test_calls_to_judges_are_shown_to_those_who_may_see_contents(view, contents, status):
    app = api(view, rules=AccessRules(contents=contents))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://monitor") as client:
        answer = await client.get(f"/v1/traces/{'ab' * 16}/judge")
        assert answer.status_code == status
        assert ("calls" in answer.json()) == (status == 200)
        assert (await client.get("/v1/traces/xyz/judge")).status_code in (403, 422)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200), ({"host": "127.0.0.1:8790"}, 200), ({"host": "sidejudge.ai.svc:8790"}, 200),
        ({"origin": "http://127.0.0.1:8790"}, 403), ({"origin": "null"}, 403), ({"sec-fetch-site": "cross-site"}, 403),
        ({"host": "evil.example.com"}, 403),
    ],
)  # fmt: skip
async def test_a_reload_is_not_for_web_pages(headers, status, client, view):
    asked = []

    async def reload():
        asked.append(1)
        return SimpleNamespace(mistakes=(), to_json=dict)

    view.reload = reload
    assert (await client.post("/-/reload", headers=headers)).status_code == status
    assert bool(asked) == (status == 200)


class Numbered(View):
    """A monitor with 130 verdicts, newest first."""

    async def verdicts(self, query, *, contents=False):
        self.requested.append(query.limit)
        first = 0 if query.after is None else 130 - query.after.closed_ns
        rows = [{**verdict(), "n": n, "text": "a\nb"} for n in range(first, min(130, first + query.limit))]
        at = rows[-1]["n"] if rows and rows[-1]["n"] < 129 else None
        following = None if at is None else Position(closed_ns=130 - at - 1, trace_id=TRACE, rubric="qa")
        return VerdictPage(verdicts=rows, next=following)


@pytest.mark.parametrize("accept", ["*/*", "text/html"])
@pytest.mark.parametrize(("limit", "count", "ends"), [(120, 120, False), (130, 130, True), (1000, 130, True)])
async def test_a_long_page_is_read_a_few_rows_at_a_time_and_is_one_answer(accept, limit, count, ends):
    view = Numbered()
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=api(view, version="1")), base_url="http://127.0.0.1"
    ) as client:
        answer = await client.get("/v1/verdicts", params={"limit": limit}, headers={"accept": accept})
    found = answer.json()
    assert [row["n"] for row in found["verdicts"]] == list(range(count))
    assert (found["next_cursor"] is None) is ends
    assert max(view.requested) <= 50
    written = json.dumps(found, indent=2) if accept == "text/html" else json.dumps(found, separators=(",", ":"))
    assert answer.text == written
