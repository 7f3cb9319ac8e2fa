"""A route that matches nothing says so, and names what arrives instead; a rare one that matched once does not."""

from __future__ import annotations

from sidejudge.monitor.config.model import RouteSection
from sidejudge.monitor.route.silent_routes import ENOUGH, SilentRoutes, silent_in

SUPPORT = {"name": "invoke_agent support", "service": "desk", "environment": None}


def routes(*sections):
    return [RouteSection.model_validate(each) for each in sections]


def lines(declared, *traces):
    watched = SilentRoutes(declared)
    for trace in traces:
        watched.observe(trace)
    return list(watched.lines())


def test_a_route_that_matches_nothing_names_what_was_seen_of_each_thing_that_it_asks_for():
    declared = routes({"match": {"name": "support-*", "environment": "production"}, "rubrics": ["qa"]})
    (line,) = lines(declared, *[SUPPORT] * 60)
    asked, _, arrived = line.partition("; ")
    assert asked == "routes[0] (name: support-*, environment: production) matched 0 of 60 traces"
    assert arrived == "name seen: 'invoke_agent support' (60); environment seen: unknown (60)"


def test_few_traces_prove_nothing_and_one_match_is_enough():
    declared = routes({"match": {"service": "billing"}, "rubrics": ["qa"]})
    assert lines(declared, *[SUPPORT] * (ENOUGH - 1)) == []
    assert len(lines(declared, *[SUPPORT] * ENOUGH)) == 1
    assert lines(declared, {**SUPPORT, "service": "billing"}, *[SUPPORT] * 500) == []


def test_how_rare_a_tag_or_an_error_is_nobody_knows():
    declared = routes({"match": {"level": "error"}, "rubrics": ["qa"]}, {"match": {"tags": ["x"]}, "rubrics": []})
    assert lines(declared, *[SUPPORT] * 60) == []
    both = routes({"match": {"level": "error", "service": "billing"}, "rubrics": ["qa"], "name": "failures"})
    assert lines(both, *[SUPPORT] * 60)[0].startswith("failures (service: billing, level: error) matched 0 of 60")


def test_a_match_counts_though_there_are_too_many_names_to_keep():
    declared = routes({"match": {"name": "last"}, "rubrics": ["qa"]})
    many = [{**SUPPORT, "name": f"order {n}"} for n in range(1_500)]
    assert lines(declared, *many, {**SUPPORT, "name": "last"}) == []
    (line,) = lines(declared, *many)
    assert "matched 0 of 1500 traces" in line
    assert "and 997 more" in line


def test_sessions_excluded_traces_and_those_of_which_nothing_is_known_are_not_counted():
    declared = routes({"match": {"name": "support-*"}, "rubrics": ["qa"]})
    others = ({"kind": "session", **SUPPORT}, {"excluded": "evaluator", **SUPPORT}, {"reason": "sampled_out"})
    assert lines(declared, *others * 60) == []


def test_what_a_stranger_names_is_shown_without_its_control_characters():
    declared = routes({"match": {"name": "support-*"}, "rubrics": ["qa"]})
    (line,) = lines(declared, *[{**SUPPORT, "name": "a\x1b[2J\u202eb" + "x" * 10_000}] * 30)
    assert line.isprintable()
    assert len(line) < 300


def test_other_routes_are_held_against_what_arrived_before():
    watched = SilentRoutes(routes({"match": {"name": "support-*"}, "rubrics": ["qa"]}))
    for _ in range(30):
        watched.observe(SUPPORT)
    assert [each.kind.value for each in watched.anomalies()] == ["silent_routes"]
    watched.take_routes(routes({"match": {"name": "*support"}, "rubrics": ["qa"]}))
    assert list(watched.anomalies()) == []
    watched.take_routes(routes({"match": {"service": "billing"}, "rubrics": ["qa"]}))
    assert len(list(watched.anomalies())) == 1


def test_past_traces_are_held_against_routes_in_one_call():
    declared = routes({"match": {"name": "support-*"}, "rubrics": ["qa"]})
    assert len(silent_in(declared, [SUPPORT] * 30)) == 1
    assert silent_in(declared, [{**SUPPORT, "name": "support-1"}] * 30) == []


def test_a_route_that_excludes_is_not_silent_where_it_excludes():
    declared = routes({"match": {"name": "health-*"}, "rubrics": []}, {"rubrics": ["qa"]})
    probe = {**SUPPORT, "name": "health-check", "excluded": "routes[0] excludes it"}
    assert len(lines(declared, *[SUPPORT] * 60)) == 1
    assert lines(declared, probe, *[SUPPORT] * 60) == []
    watched = SilentRoutes(declared)
    for trace in (probe, *[SUPPORT] * 60):
        watched.observe(trace)
    watched.take_routes(declared)
    assert list(watched.lines()) == [], "nor is it after a reload, before the next one comes"
    watched.take_routes(routes({"match": {"name": "support-*"}, "rubrics": ["qa"]}))
    assert list(watched.lines()) == [
        "routes[0] (name: support-*) matched 0 of 60 traces; name seen: 'invoke_agent support' (60)"
    ]


def test_what_an_earlier_route_takes_is_said_whatever_it_is_called():
    everything = {"rubrics": ["run_health"], "name": "all"}
    desk = {"match": {"service": "desk"}, "rubrics": ["qa"]}
    (line,) = lines(routes(everything, desk), *[SUPPORT] * 60)
    assert line == "routes[1] (service: desk) matched 0 of 60 traces; what it is for goes to all before it"
    assert lines(routes(desk, everything), SUPPORT, *[{**SUPPORT, "service": "bank"}] * 60) == []
    assert len(lines(routes({**everything, "rubrics": []}, desk), *[{**SUPPORT, "excluded": "all"}, SUPPORT] * 60)) == 1


def test_a_route_for_what_is_left_over_is_not_silent_where_nothing_is():
    assert lines(routes({"match": {"service": "desk"}, "rubrics": ["qa"]}, {"rubrics": ["qa"]}), *[SUPPORT] * 60) == []


def test_a_route_for_the_rest_of_a_service_is_not_silent_where_nothing_is_left_and_a_narrower_one_behind_it_is():
    named = {"match": {"name": "invoke_agent *", "service": "desk"}, "rubrics": ["qa"]}
    rest = {"match": {"service": "desk"}, "rubrics": ["qa"]}
    assert lines(routes(named, rest), *[SUPPORT] * 60) == []
    (line,) = lines(routes(rest, named), *[SUPPORT] * 60)
    assert line.endswith("what it is for goes to routes[0] before it")
    assert len(lines(routes(rest, rest), *[SUPPORT] * 60)) == 1


def test_an_earlier_route_that_asks_for_more_than_names_leaves_the_rest():
    failures = {"match": {"service": "desk", "level": "error"}, "rubrics": ["qa"]}
    desk = {"match": {"service": "desk"}, "rubrics": ["qa"]}
    assert lines(routes(failures, desk), *[SUPPORT] * 60) == []


def test_who_asks_is_told_by_the_first_trace():
    declared = routes({"match": {"service": "billing"}, "rubrics": ["qa"]})
    assert silent_in(declared, [SUPPORT]) == [
        "routes[0] (service: billing) matched 0 of 1 trace; service seen: 'desk' (1)"
    ]
    assert silent_in(declared, []) == []
