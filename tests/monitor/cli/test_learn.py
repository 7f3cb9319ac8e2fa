"""``sidejudge learn``, from files of cases and of recorded requests to scenarios that ``score`` takes."""

from __future__ import annotations

import json

import pytest
import yaml

from sidejudge.monitor.config.match import MatchSection
from sidejudge.scoring.case.case import Case
from tests.scoring.learning.simulated_shop import runs


@pytest.fixture
def shop(tmp_path):
    def write(name: str, seed: int, count: int, bad: float):
        path = tmp_path / name
        with path.open("w") as file:
            for case, good in runs(seed, count, bad=bad):
                tools = [{"name": t.name, "arguments": t.arguments, "result": t.result} for t in case.tools_used]
                line = {
                    "case_id": case.case_id, "name": "shop", "input": case.input, "model_output": case.model_output,
                    "tools_used": tools, "agents_called": list(case.agents_called),
                    "metadata": {"reward": 1.0 if good else 0.0}, "scenario": "shop", "task": "workflow",
                }  # fmt: skip
                file.write(json.dumps(line) + "\n")
        return path

    return write


def test_what_is_learned_is_written_and_taken_by_score(call, shop, tmp_path):
    out = tmp_path / "scenarios.yaml"
    done = call(
        "learn", str(shop("runs.jsonl", 1, 250, 0.3)), "--good", "labels", "--reward", "reward", "--out", str(out),
        "--most-false", "0.05",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    learned = yaml.safe_load(out.read_text())["shop"]
    assert learned["tools_should_include"] == ["find_user", "get_order"]
    stated = yaml.safe_load(done.stderr.partition("add to the configuration:")[2])
    (tmp_path / "live.yaml").write_text(yaml.safe_dump(stated))
    assert call("check", "--config", str(tmp_path / "live.yaml")).exit_code == 0, "what learn says to add is valid"
    assert stated["routes"] == [{"match": {"name": "shop"}, "rubrics": ["run_health", "workflow"], "scenario": "shop"}]
    config = tmp_path / "sidejudge.yaml"
    config.write_text(yaml.safe_dump({"scenarios": "scenarios.yaml"}))
    verdicts = tmp_path / "verdicts.jsonl"
    fresh = shop("fresh.jsonl", 99, 100, 0.5)
    done = call("score", str(fresh), "--rubric", "workflow", "--out", str(verdicts), "--config", str(config))
    assert done.exit_code in (0, 1), done.output
    passed = {v["case_id"]: v["passed"] for v in map(json.loads, verdicts.read_text().splitlines())}
    truth = {c["case_id"]: c["metadata"]["reward"] == 1.0 for c in map(json.loads, fresh.read_text().splitlines())}
    assert sum(passed[name] == good for name, good in truth.items()) >= 0.92 * len(truth)


@pytest.mark.parametrize("named", ["runs.jsonl", "link.jsonl", "labels.jsonl"])
def test_what_is_learned_replaces_no_file_that_it_is_learned_from(call, shop, tmp_path, named):
    runs, labels = shop("runs.jsonl", 1, 60, 0.0), tmp_path / "labels.jsonl"
    labels.write_text('{"case_id": "1", "rubric": "workflow", "label": true, "by": "ann"}\n')
    (tmp_path / "link.jsonl").symlink_to(runs)
    before = (tmp_path / named).read_bytes()
    done = call("learn", runs, "--labels", labels, "--out", tmp_path / named)
    assert (done.exit_code, "a file that is learned from" in done.stderr) == (2, True), done.output
    assert (tmp_path / named).read_bytes() == before


@pytest.mark.parametrize("command", ["learn", "init"])
def test_a_table_that_cannot_be_read_ends_the_command_with_its_remedy(call, tmp_path, command):
    table, out = tmp_path / "runs.csv", tmp_path / "out.yaml"
    table.write_text("id;answer\n1;yes\n")
    done = call(command, *([] if command == "learn" else ["--from-traces"]), table, "--out", out)
    assert (done.exit_code, out.exists()) == (2, False)
    assert done.stderr.splitlines()[-2:] == [
        f"error: {table}: its cells are parted by ';', not ','",
        "remedy: write it with commas, or with tabs and the ending .tsv",
    ]


def test_a_line_that_is_refused_in_the_review_is_not_learned(call, shop, tmp_path):
    runs = shop("runs.jsonl", 1, 60, 0.0)
    every, some = tmp_path / "every.yaml", tmp_path / "some.yaml"
    assert call("learn", runs, "--out", every).exit_code == 0
    done = call("learn", runs, "--review", "--out", some, input="n\n" + "\n" * 100)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("tools_should_include: find_user: find_user [Y/n]: n\n")
    learned, kept = (yaml.safe_load(path.read_text())["shop"]["signs"] for path in (every, some))
    assert learned == {**kept, "tools_should_include": ["find_user", *kept["tools_should_include"]]}


def test_against_shows_what_changed_since(call, shop, tmp_path):
    out = tmp_path / "scenarios.yaml"
    old = shop("old.jsonl", 1, 60, 0.0)
    assert call("learn", str(old), "--out", str(out)).exit_code == 0
    assert call("learn", str(old), "--against", str(out)).exit_code == 0
    new = tmp_path / "new.jsonl"
    new.write_text(old.read_text().replace('"get_policy"', '"read_policy"'))
    done = call("learn", str(new), "--against", str(out))
    assert done.exit_code == 1
    assert "+ shop: signs: tools_may_include: read_policy" in done.output
    assert "- shop: signs: tools_may_include: get_policy" in done.output


def written(path, cases):
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return str(path)


def run(number, name="desk", tokens=100, **more):
    return {
        "case_id": f"{name}-{number}", "name": name, "input": f"Where is A-{number}?", "model_output": "ok",
        "tools_used": [{"name": "find", "arguments": {"order": f"A-{number}"}}], "agents_called": ["desk"],
        "input_tokens": tokens, "output_tokens": 0, **more,
    }  # fmt: skip


def test_against_shows_a_limit_of_tokens_that_changed(call, tmp_path):
    out = tmp_path / "scenarios.yaml"
    assert call("learn", written(tmp_path / "old.jsonl", map(run, range(20))), "--out", str(out)).exit_code == 0
    done = call(
        "learn", written(tmp_path / "new.jsonl", (run(n, tokens=1000) for n in range(20))), "--against", str(out)
    )
    assert (done.exit_code, done.stdout) == (1, "~ desk: signs: max_tokens: 1500, was 150\n")
    done = call(
        "learn", written(tmp_path / "none.jsonl", (run(n, tokens=None) for n in range(20))), "--against", str(out)
    )
    assert (done.exit_code, done.stdout) == (1, "- desk: signs: max_tokens: 150\n")


def test_every_route_that_learn_writes_is_reached(call, tmp_path):
    cases = [run(n, name) for name in ("a[1]", "zeta") for n in range(20)]
    cases += [{**run(n, "none"), "name": None} for n in range(20)]
    out = tmp_path / "scenarios.yaml"
    done = call("learn", written(tmp_path / "runs.jsonl", cases), "--out", str(out))
    assert done.exit_code == 0, done.output
    routes = yaml.safe_load(done.stderr.partition("add to the configuration:")[2])["routes"]
    matches = [MatchSection.model_validate(route.get("match", {})) for route in routes]
    chosen = {
        name: next(r["scenario"] for r, match in zip(routes, matches, strict=True) if match.matches(case))
        for name in ("a[1]", "zeta", None)
        for case in [Case(case_id="1", model_output="ok", name=name)]
    }
    assert chosen == {"a[1]": "a[1]", "zeta": "zeta", None: "all"}


@pytest.mark.parametrize("good", [1, 1.0, True, "1.0", "true", " Yes "])
def test_runs_without_a_mark_are_neither_good_nor_bad(call, tmp_path, good):
    cases = [run(n, metadata={"reward": good} if n < 12 else {}) for n in range(30)]
    done = call("learn", written(tmp_path / "runs.jsonl", cases), "--good", "labels", "--reward", "reward")
    assert "desk: 12 good runs" in done.stderr
    none = call("learn", str(tmp_path / "runs.jsonl"), "--good", "labels", "--reward", "other")
    assert (none.exit_code, "of which the calls are known, and whether it is good" in none.stderr) == (2, True)


def test_a_run_is_good_where_all_its_labels_pass_it_in_any_order(call, tmp_path):
    cases = [run(n, trace_id=f"t{n}") for n in range(30)]
    names = [each["case_id"] for each in cases]
    labels = [{"case_id": name, "rubric": "qa", "by": "ann", "label": True} for name in names[:20]]
    labels += [{"case_id": names[0], "rubric": "tone", "by": "ann", "label": False}]
    labels += [{"case_id": names[1], "rubric": "qa", "by": "bob", "label": False}]
    labels += [{"trace_id": "t2", "rubric": "tone", "by": "ann", "label": False}]
    labels += [{"trace_id": "t20", "rubric": "tone", "by": "ann", "label": True}]
    for given in (labels, labels[::-1]):
        listed = written(tmp_path / "labels.jsonl", given)
        done = call("learn", written(tmp_path / "runs.jsonl", cases), "--good", "labels", "--labels", listed)
        assert "desk: 18 good runs" in done.stderr


def test_several_values_of_one_key_are_a_list_as_in_a_route(call, tmp_path):
    cases = written(tmp_path / "runs.jsonl", [run(n, name) for name in ("a", "b", "c") for n in range(6)])
    done = call("learn", cases, "--match", "name=a", "--match", "name=b")
    assert [line for line in ("a: 6", "b: 6", "c: 6") if line in done.stderr] == ["a: 6", "b: 6"]
    done = call("learn", cases, "--match", "level=error", "--match", "level=error")
    assert (done.exit_code, "--match: level: Input should be 'error'" in done.stderr) == (2, True)


def test_with_few_runs_all_is_signs_that_fail_none_and_show_what_departs(call, shop, tmp_path):
    out, verdicts, config = tmp_path / "scenarios.yaml", tmp_path / "verdicts.jsonl", tmp_path / "sidejudge.yaml"
    done = call("learn", str(shop("runs.jsonl", 1, 120, 0.0)), "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "every line is a sign and fails no run: 120 good runs are too few to judge by" in done.stderr
    assert "with about 189 good runs more" in done.stderr
    assert list(yaml.safe_load(out.read_text())["shop"]) == ["signs"]
    config.write_text(yaml.safe_dump({"scenarios": "scenarios.yaml"}))
    fresh = shop("fresh.jsonl", 99, 100, 0.5)
    scored = call("score", str(fresh), "--rubric", "workflow", "--out", str(verdicts), "--config", str(config))
    assert scored.exit_code in (0, 1), scored.output
    found = {v["case_id"]: v for v in map(json.loads, verdicts.read_text().splitlines())}
    truth = {c["case_id"]: c["metadata"]["reward"] == 1.0 for c in map(json.loads, fresh.read_text().splitlines())}
    assert not any(verdict["passed"] is False for verdict in found.values())
    values = {name: {s["metric"]: s.get("value") for s in verdict["scores"]} for name, verdict in found.items()}
    shown = {name: each["habits"] == 0.0 for name, each in values.items()}
    assert sum(shown[name] is not good for name, good in truth.items()) >= 0.9 * len(truth)


def test_tasks_by_request_become_routes_that_the_monitor_takes(call, tmp_path):
    runs, out = tmp_path / "runs.jsonl", tmp_path / "scenarios.yaml"
    with runs.open("w") as file:
        for n in range(120):
            word, tool = ("cancel", "cancel_order") if n % 2 else ("track", "ship_status")
            line = {
                "case_id": str(n), "name": "desk", "input": f"Please {word} order {n}", "model_output": "ok",
                "tools_used": [{"name": tool, "arguments": {"order": str(n)}}], "agents_called": ["desk"],
            }  # fmt: skip
            file.write(json.dumps(line) + "\n")
    done = call("learn", str(runs), "--by-request", "--most-false", "0.1", "--out", str(out))
    assert done.exit_code == 0, done.output
    stated = yaml.safe_load(done.stderr.partition("add to the configuration:")[2])
    (tmp_path / "live.yaml").write_text(yaml.safe_dump(stated))
    assert call("check", "--config", str(tmp_path / "live.yaml")).exit_code == 0
    assert {route["scenario"] for route in stated["routes"]} == set(yaml.safe_load(out.read_text()))
    assert [route["match"] for route in stated["routes"]] in (
        [{"name": "desk", "asked": "cancel"}, {"name": "desk"}], [{"name": "desk", "asked": "track"}, {"name": "desk"}],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--good", "labels"], "it is unknown which runs are good"),
        (["--match", "name"], "--match: 'name' is not KEY=GLOB"),
        (["--match", "name=absent"], "no run was read"),
    ],
)
def test_a_mistake_has_a_cause_and_a_remedy(call, shop, arguments, cause):
    done = call("learn", str(shop("runs.jsonl", 1, 20, 0.0)), *arguments)
    assert done.exit_code == 2
    assert cause in done.output
    assert "remedy:" in done.output


def test_a_folder_of_recordings_is_read_and_an_address_or_an_empty_folder_is_named(call, shop, tmp_path):
    shop("runs.jsonl", 1, 4, 0.0)
    assert "4 runs, too few to learn from" in call("learn", str(tmp_path)).output
    (tmp_path / "none").mkdir()
    empty = call("learn", str(tmp_path / "none"))
    assert (empty.exit_code, "holds no cases, requests or history" in empty.output) == (2, True)
    monitor = call("learn", "http://127.0.0.1:8790")
    assert (monitor.exit_code, "the runs of a monitor are read from its store" in monitor.output) == (2, True)


def test_too_few_runs_are_said_to_be_too_few(call, shop):
    done = call("learn", str(shop("runs.jsonl", 1, 4, 0.0)))
    assert done.exit_code == 2
    assert "too few to learn from" in done.output


def test_recorded_requests_are_read_too(call, shared):
    files = sorted((shared / "corpus" / "otlp" / "openinference-openai" / "s2_agents").glob("*.pb"))
    done = call("learn", *map(str, files))
    assert "too few to learn from" in done.output
