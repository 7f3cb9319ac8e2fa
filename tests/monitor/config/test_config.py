"""What the corpus cannot show: values, the environment, origins, the fingerprint, the schema."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidejudge.monitor.config import ConfigError, load, resolve
from sidejudge.monitor.config.document import plain_value, read_document
from sidejudge.monitor.config.environment import name_of, read_environment
from sidejudge.monitor.config.summary import json_schema, summary
from sidejudge.monitor.config.units import Address, Duration, parse_address, parse_duration, parse_size, size_text
from sidejudge.monitor.config.validation_messages import walk


def problems(path: Path | None, environ: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigError) as refusal:
        load(path, environ)
    return [str(problem) for problem in refusal.value.problems]


def written(folder: Path, text: str) -> Path:
    path = folder / "sidejudge.yaml"
    path.write_text(text)
    return path


def test_no_file_is_needed() -> None:
    config = load(None, {})
    assert (config.sampling.rate, config.sampling.traces_per_hour) == (None, 1000)
    assert config.api.listen == Address("0.0.0.0", 8790)
    assert config.sources.otlp.http.port == 4318
    assert config.sources.otlp.max_request_bytes == 16 * 2**20
    assert config.store.path == Path("state/sidejudge.sqlite")
    assert config.store.retention == Duration(24 * 3600 * 10**9)
    assert (config.assembly.grace.seconds, config.assembly.idle.seconds) == (2, 30)
    assert (config.assembly.deadline.seconds, config.assembly.late.seconds) == (600, 600)
    assert (config.assembly.max_open_traces, config.assembly.max_open_bytes) == (10_000, 128 * 2**20)
    assert (config.alerts.thresholds.warning, config.alerts.thresholds.critical) == (0.85, 0.70)
    assert (config.alerts.window.seconds, config.alerts.min_samples, config.alerts.min_failures) == (3600, 30, 3)
    assert (config.alerts.mode, config.metrics.label_cap) == ("adaptive", 50)
    assert config.reference_keys == ("expected_outcome",)
    assert config.sinks.jsonl is None


def test_the_whole_of_it_is_immutable() -> None:
    config = load(None, {})
    with pytest.raises(ValueError, match="frozen"):
        config.sampling.rate = 1.0


def test_scenarios_of_a_file_are_found_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "calls.yaml").write_text("call: {tools_should_include: [search]}")
    config = load(written(tmp_path, "scenarios: calls.yaml"), {})
    assert config.scenarios == {"call": {"tools_should_include": ["search"]}}


def test_a_mistake_in_a_scenario_file_names_that_file_and_its_line(tmp_path: Path) -> None:
    (tmp_path / "calls.yaml").write_text("call:\n  tools_shuld_include: [search]\n")
    (stated,) = problems(written(tmp_path, "scenarios: calls.yaml"), {})
    assert stated.startswith(f"call.tools_shuld_include ({tmp_path / 'calls.yaml'}, line 2): ")
    assert "tools_should_include" in stated


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "sampling: {rate: 0.1, rules: [{name: a, match: {}, rate: 0.5}]}")
    config = load(path, {"SIDEJUDGE_SAMPLING__RATE": "0.25", "UNRELATED": "x"})
    assert config.sampling.rate == 0.25
    assert config.sampling.rules[0].name == "a"


def test_lists_maps_and_texts_come_from_the_environment_as_yaml() -> None:
    config = load(
        None,
        {
            "SIDEJUDGE_SAMPLING__RULES": "[{name: errors, match: {level: error}, rate: 1.0}]",
            "SIDEJUDGE_SCENARIOS": "{call: {tools_should_include: [search]}}",
            "SIDEJUDGE_ALERTS": "{window: 5m, min_samples: 5}",
            "SIDEJUDGE_ALERTS__MIN_SAMPLES": "7",
            "SIDEJUDGE_RUBRICS__QA__PASS_MARK": "0.5",
            "SIDEJUDGE_SOURCES__OTLP__HTTP": ":4319",
        },
    )
    assert config.sampling.rules[0].match.level == "error"
    assert list(config.scenarios) == ["call"]
    assert (config.alerts.window.seconds, config.alerts.min_samples) == (300, 7)
    assert config.rubrics["qa"].pass_mark == 0.5
    assert config.sources.otlp.http == Address("0.0.0.0", 4319)


def test_a_variable_that_can_only_be_text_needs_no_quotes() -> None:
    config = load(
        None,
        {
            "SIDEJUDGE_API__LISTEN": "[::1]:8790",
            "SIDEJUDGE_STORE__PATH": "/data: here #1/s.sqlite",
            "SIDEJUDGE_SINKS__JSONL__PATH": "'123'",
            "SIDEJUDGE_LOG__LEVEL": " debug\n",
        },
    )
    assert config.api.listen == Address("::1", 8790)
    assert config.store.path == Path("/data: here #1/s.sqlite")
    assert config.sinks.jsonl is not None
    assert config.sinks.jsonl.path == Path("123")
    assert config.log.level == "debug"


def test_a_variable_that_is_not_utf_8_is_a_mistake(tmp_path: Path) -> None:
    latin = b"p\xe4ss".decode("utf-8", "surrogateescape")
    file = written(tmp_path, 'api: {auth: {bearer: ["${TOKEN}"]}}\n')
    (stated,) = problems(file, {"TOKEN": latin})
    assert stated.startswith("api.auth.bearer[0]")
    assert stated.endswith("needs the environment variable TOKEN, which is not UTF-8")
    assert problems(None, {"SIDEJUDGE_ROUTES": f"[{latin}]"}) == ["SIDEJUDGE_ROUTES: is not UTF-8"]


def test_a_variable_that_sets_nothing_is_a_mistake() -> None:
    stated = problems(
        None,
        {
            "SIDEJUDGE_SAMPLNG__RATE": "0.5",
            "SIDEJUDGE_SAMPLING__RATE__DEEPER": "1",
            "SIDEJUDGE_ROUTES__0__RUBRICS": "[qa]",
            "SIDEJUDGE_LOG__LEVEL": "",
            "SIDEJUDGE_LOG__FORMAT": "[",
            "SIDEJUDGE_STORE__RETENTION": "soon",
        },
    )
    assert len(stated) == 6
    assert "SIDEJUDGE_SAMPLNG__RATE: sets no key of the configuration; did you mean SIDEJUDGE_SAMPLING__RATE?" in stated
    assert "SIDEJUDGE_ROUTES__0__RUBRICS: goes too deep; give the whole value, as YAML, in SIDEJUDGE_ROUTES" in stated
    assert "SIDEJUDGE_LOG__LEVEL: is empty; give it a value, or unset it" in stated
    assert any(text.startswith("store.retention (SIDEJUDGE_STORE__RETENTION): must be a duration") for text in stated)


@pytest.mark.parametrize(
    "name",
    [
        "SIDEJUDGE_SERVICE_HOST",
        "SIDEJUDGE_SERVICE_PORT",
        "SIDEJUDGE_SERVICE_PORT_OTLP_HTTP",
        "SIDEJUDGE_PORT",
        "SIDEJUDGE_PORT_8790_TCP",
        "SIDEJUDGE_PORT_4318_TCP_ADDR",
        "SIDEJUDGE_GATEWAY_PORT_4318_TCP_PROTO",
        "SIDEJUDGE_GATEWAY_SERVICE_HOST",
        "SIDEJUDGE_CONFIG",
        "SIDEJUDGE_URL",
    ],
)
def test_variables_that_kubernetes_or_we_put_there_are_no_mistakes(name: str) -> None:
    assert read_environment({name: "tcp://10.0.0.1:8790"}).problems == []


def test_every_key_outside_of_lists_has_its_variable() -> None:
    for path, _ in walk():
        assert not [p for p in read_environment({name_of(path): "{}"}).problems if "sets no key" in str(p)], path


def test_where_each_value_comes_from_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, "log:\n  level: debug\nsampling: {rate: 0.5}\n")
    rows = {key: (value, origin) for key, value, origin in summary(resolve(path, {"SIDEJUDGE_LOG__FORMAT": "json"}))}
    assert rows["log.level"] == ("debug", "line 2")
    assert rows["log.format"] == ("json", "SIDEJUDGE_LOG__FORMAT")
    assert rows["sampling.rate"] == ("0.5", "line 3")
    assert rows["alerts.window"] == ("1h", "default")


def test_the_fingerprint_is_of_what_is_in_force_and_not_of_who_said_it(tmp_path: Path) -> None:
    by_file = load(written(tmp_path, "# by file\nsampling: {rate: 0.5}\nalerts: {window: 60m}"), {})
    by_environment = load(None, {"SIDEJUDGE_SAMPLING__RATE": "0.5", "SIDEJUDGE_ALERTS__WINDOW": "1h"})
    assert by_file.fingerprint == by_environment.fingerprint
    assert len(by_file.fingerprint) == 64
    assert by_file.fingerprint != load(None, {}).fingerprint


def test_a_file_that_is_missing_or_not_text_is_a_problem_and_no_traceback(tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory" in problems(tmp_path / "nowhere.yaml", {})[0]
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"log: \xff\xfe")
    assert "is not UTF-8" in problems(binary, {})[0]
    assert "cannot be read" in problems(tmp_path, {})[0]
    assert problems(written(tmp_path, "[" * 100_000), {})
    assert problems(written(tmp_path, "a: \x07"), {})


@pytest.mark.parametrize("text", ["scenarios: /dev/zero\n", None])
def test_a_file_without_end_is_refused(tmp_path: Path, text: str | None) -> None:
    path = Path("/dev/zero") if text is None else written(tmp_path, text)
    assert any("cannot be read: " in line and "larger than 4 MiB" in line for line in problems(path, {}))


def test_the_schema_knows_every_key_and_its_default() -> None:
    schema = json_schema()
    text = json.dumps(schema)
    assert all(path[-1] in text for path, _ in walk())
    assert schema["$defs"]["AlertsSection"]["properties"]["window"]["default"] == "1h"
    assert schema["additionalProperties"] is False


@given(st.integers(min_value=0, max_value=10**15).map(lambda ms: Duration(ms * 10**6)))
def test_a_duration_reads_back_what_it_writes(duration: Duration) -> None:
    assert parse_duration(str(duration)) == duration


@given(st.integers(min_value=0, max_value=2**50))
def test_a_size_reads_back_what_it_writes(size: int) -> None:
    text = size_text(size)
    assert parse_size(int(text) if text.isdigit() else text) == size


@pytest.mark.parametrize("text", ["0.0.0.0:4318", "[::1]:80", "localhost:0"])
def test_an_address_reads_back_what_it_writes(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize("text", ["4318", "host:", "host:http", "host:70000", "::1:80", "host:-1", "host:٤"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        parse_address(text)


def test_unquoted_text_follows_yaml_1_2() -> None:
    assert [plain_value(text) for text in ("yes", "12:30", "1e-3", "0x10", "null", "True", "1_000", "2024-01-01")] == [
        "yes", "12:30", 0.001, 16, None, True, "1_000", "2024-01-01",
    ]  # fmt: skip


@given(st.text(max_size=200))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    document = read_document(text, {}, "fuzz")
    assert document.problems or document.value is None or isinstance(document.value, str | int | float | list | dict)


@pytest.mark.parametrize("name", ["sampling", "routes", "scenarios", "alerts", "rubrics", "sinks"])
@settings(max_examples=10)
@given(st.dictionaries(st.text(max_size=8), st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists)))
def test_no_map_makes_loading_raise_anything_but_its_problems(name: str, data: dict[str, object]) -> None:
    with contextlib.suppress(ConfigError):
        load(None, {f"SIDEJUDGE_{name.upper()}": json.dumps(data)})


@pytest.mark.parametrize(
    "key", ["sampling.rate", "store.retention", "sources.otlp.http", "sources.otlp.max_connections"]
)
def test_a_number_of_thousands_of_digits_is_refused_with_its_place(tmp_path: Path, key: str) -> None:
    sections, _, name = key.rpartition(".")
    digits = "1" * 5_000
    value = f'"a:{digits}"' if name == "http" else digits
    text = f"{name}: {value}"
    for section in reversed(sections.split(".")):
        text = f"{section}: {{{text}}}"
    [problem] = problems(written(tmp_path, text), {})
    assert problem.startswith(f"{key} ({tmp_path / 'sidejudge.yaml'}, line 1): must ")


def test_a_message_repeats_no_more_than_is_read(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(f"reload: {{every: {'x' * 100_000}}}\n")
    with pytest.raises(ConfigError) as refused:
        load(tmp_path / "c.yaml", {})
    (problem,) = refused.value.problems
    assert len(str(problem)) < 1_500


def test_a_key_names_variables_as_a_value_does(tmp_path: Path) -> None:
    users = 'basic: {${USER}: "${PASSWORD}", "$${USER}": "of a name with a dollar", "team-${TEAM:-one}": x}'
    path = written(tmp_path, f"sources: {{otlp: {{auth: {{{users}}}}}}}")
    auth = load(path, {"USER": "pk-1", "PASSWORD": "sk-1"}).sources.otlp.auth
    assert auth is not None
    assert {name: password.get_secret_value() for name, password in auth.basic.items()} == {
        "pk-1": "sk-1", "${USER}": "of a name with a dollar", "team-one": "x",
    }  # fmt: skip
    assert any("needs the environment variable USER" in each for each in problems(path, {"PASSWORD": "sk-1"}))
    twice = written(tmp_path, "scenarios:\n  a: {}\n  ${NAME}: {}\n")
    assert any("line 3): stands twice; first on line 2" in each for each in problems(twice, {"NAME": "a"}))


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (f"alerts: {{metrics: [{{metric: latency_p95, warning: 1{'0' * 400}d}}]}}", "must be at most 36500d"),
        ('scenarios: "a\\0b"', "holds a NUL character"),
        ('store: {path: "a\\0b.sqlite"}', "holds a NUL character"),
        ('sinks: {parquet: {path: "a\\0b"}}', "holds a NUL character"),
        ('sources: {otlp: {http: "a\\0b:4318"}}', "holds a NUL character"),
    ],
)
def test_what_no_number_and_no_path_can_be_is_refused_with_its_place(tmp_path: Path, text: str, mistake: str) -> None:
    with pytest.raises(ConfigError, match=rf"line 1\): {mistake}"):
        load(written(tmp_path, text), {})
