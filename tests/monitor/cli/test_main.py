from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sidejudge.monitor.cli import COMMANDS, GROUPS, main
from sidejudge.monitor.config import resolve
from sidejudge.monitor.config.evaluators import EmbeddingSection
from sidejudge.monitor.config.extras import EMBEDDINGS, installed, missing
from tests.forked import sidejudge

CORPUS = Path(__file__).parents[1] / "config"
ENTRY = Path(sys.executable).with_name("sidejudge")
HEAVY = ("pydantic", "fastapi", "rich", "google.protobuf", "prometheus_client", "yaml", "asyncio", "orjson")


def test_help_lists_every_command_and_exits_well() -> None:
    reported = subprocess.run([str(ENTRY), "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert (reported.returncode, reported.stderr) == (0, "")
    for title, group in GROUPS.items():
        section = reported.stdout.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines()] == list(group)
    assert max(map(len, reported.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "call", [["--help"], *([name, "--help"] for name in ("status", "tail", "explain", "compare"))],
    ids=" ".join,
)  # fmt: skip
def test_what_asks_a_monitor_or_is_help_imports_nothing_heavy(call) -> None:
    program = (
        "import sys\nfrom sidejudge.monitor.cli import main\n"
        f"try:\n    main({call!r})\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    reported = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert reported.stderr.strip() == "[]"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in {"serve", "demo"}])
def test_every_command_has_help_and_its_line_in_the_overview(call, name) -> None:
    reported = call(name, "--help")
    assert reported.exit_code == 0
    assert name in reported.stdout


def test_an_address_that_is_none_ends_the_demonstration_with_a_remedy(call) -> None:
    reported = call("demo", "--otlp", "x")
    assert reported.exit_code == 2
    assert reported.stderr.endswith("remedy: give --otlp and --api addresses such as 127.0.0.1:14318\n")


def test_an_option_without_its_value_names_the_help_of_its_command(call) -> None:
    reported = call("forget", "--user")
    assert reported.exit_code == 2
    assert reported.stderr.endswith("remedy: see 'sidejudge forget --help'\n")


def test_what_a_locale_has_no_character_for_is_written_out() -> None:
    reported = subprocess.run(
        [sys.executable, "-P", "-m", "sidejudge", "help", "thresholds"], capture_output=True, check=False, timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )  # fmt: skip
    assert reported.returncode == 0
    assert b"\\u2026" in reported.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_output_that_a_full_disk_does_not_take_is_an_error_of_the_call() -> None:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        reported = subprocess.run(
            [str(ENTRY), "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
            env=clean,
        )
    assert reported.returncode == 2
    assert reported.stderr == "error: No space left on device\nremedy: free space on that volume\n"


def test_the_module_is_the_command() -> None:
    reported = subprocess.run(
        [sys.executable, "-P", "-m", "sidejudge", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert reported.stdout.startswith("sidejudge ")


def test_a_wrong_call_is_two_lines_and_exit_2() -> None:
    for arguments, cause, remedy in (
        (("chek",), "there is no command 'chek'", "did you mean 'check'?"),
        (("check", "--nonsense"), "--nonsense", "sidejudge check --help"),
        (("score",), "Missing argument", "sidejudge score --help"),
        (("explain", "no_such_metric"), "neither a trace id", "sidejudge metrics"),
    ):
        reported = sidejudge(*arguments)
        assert reported.returncode == 2
        assert reported.stdout == ""
        first, second = reported.stderr.splitlines()
        assert first.startswith("error: ")
        assert cause in first
        assert second.startswith("remedy: ")
        assert remedy in second


def test_what_click_writes_over_several_lines_is_one_cause(call) -> None:
    done = call("completion")
    assert (done.exit_code, done.stderr.count("error:"), "\t" in done.stderr) == (2, 1, False)
    assert "bash, zsh, fish" in done.stderr


def test_without_a_command_the_help_is_shown(call) -> None:
    reported = call()
    assert (reported.exit_code, reported.stdout) == (2, "")
    assert reported.stderr.startswith("Usage: sidejudge")


def test_debug_shows_the_traceback() -> None:
    assert "Traceback" in sidejudge("--debug", "check", "/no/such/file.yaml").stderr
    assert "Traceback" in sidejudge("check", "/no/such/file.yaml", "--debug").stderr
    assert "Traceback" not in sidejudge("check", "/no/such/file.yaml").stderr


def test_check_shows_what_is_in_force() -> None:
    reported = sidejudge(
        "check",
        "--all",
        str(CORPUS / "flow_variables.good.yaml"),
        env={"RATE": "0.25", "FOLDER": "/x", "SIDEJUDGE_LOG__FORMAT": "json"},
    )
    assert reported.returncode == 0
    rows = {line.split()[0]: line.split()[1:] for line in reported.stdout.splitlines() if line.strip()}
    assert rows["sampling.rate"] == ["0.25", "line", "3"]
    assert rows["log.format"] == ["json", "SIDEJUDGE_LOG__FORMAT"]
    assert rows["alerts.window"] == ["1h", "default"]


def test_check_reports_all_five_mistakes_at_once_and_exits_2() -> None:
    reported = sidejudge("check", str(CORPUS / "five_mistakes.bad.yaml"))
    assert reported.returncode == 2
    causes = [line for line in reported.stderr.splitlines() if line.startswith("error: ")]
    assert len(causes) == 5
    assert [cause.split()[1] for cause in causes] == [
        "sampling.rte", "alerts.thresholds.critcal", "alerts.window", "routes[0].rubrics[1]", "log.level",
    ]  # fmt: skip
    assert reported.stderr.splitlines()[-1].startswith("remedy: ")


def test_a_file_that_is_not_there_is_named_plainly_and_the_remedy_is_the_path(tmp_path: Path) -> None:
    checked, examined = sidejudge("check", "nofile.yaml"), sidejudge("doctor", "--config", "nofile.yaml")
    for reported in (checked, examined):
        assert "(nofile.yaml)" not in reported.stderr + reported.stdout
    assert checked.stderr.splitlines() == [
        "error: nofile.yaml: cannot be read: No such file or directory",
        "remedy: check the path and the permissions",
    ]


def test_check_warns_of_a_route_whose_rubric_needs_a_judge(call, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("routes: [{match: {service: desk}, rubrics: [qa, entity]}, {rubrics: [qa, answer]}]")
    reported = call("check", path)
    assert reported.exit_code == 0
    (cause, remedy) = reported.stderr.splitlines()
    assert cause.startswith("warning: routes[1].rubrics: answer: accuracy_score and faithfulness_score need a judge")
    assert "incomplete" in cause
    assert remedy.startswith("remedy: ")
    path.write_text("routes: [{rubrics: [qa]}]")
    assert call("check", path).stderr == ""


def test_check_says_of_a_judge_what_will_drift_and_what_has_no_limit_and_never_its_key(call, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    judge = "model: openai/gpt-4.1, api_key: sk-very-secret"
    path.write_text(f"routes: [{{rubrics: [qa, answer]}}]\nevaluators: {{judge: {{{judge}}}}}")
    reported = call("check", path)
    assert reported.exit_code == 0
    assert [line for line in reported.stderr.splitlines() if line.startswith("warning: ")] == [
        (
            "warning: evaluators.judge.model: openai/gpt-4.1 names no version, "
            "so that the provider may change the judge unseen"
        ),
        "warning: evaluators.judge: no budget is set, so that whatever is sampled is judged, whatever it costs",
    ]
    assert "sk-very-secret" not in reported.stdout + reported.stderr
    assert "set, not shown" in reported.stdout
    path.write_text("evaluators: {judge: {model: openai/gpt-4.1-2025-04-14, budget_usd_per_day: 1}}")
    assert call("check", path).stderr == ""


def test_check_refuses_what_needs_a_part_that_is_not_installed(call, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("evaluators: {judge: {model: openai/gpt-4.1-2025-04-14}, embedding: {}}")
    config = resolve(path, {}).config
    assert list(missing(config, has=lambda _: True)) == []
    assert list(missing(config, has=lambda extra: extra.name != "judge")) == [
        (
            "evaluators.judge: needs the extra 'judge' (litellm), which is not installed",
            "install it: pip install 'sidejudge[judge]'",
        )
    ]
    remote = config.evaluators.model_copy(
        update={"judge": None, "embedding": EmbeddingSection(remote=True, model="a/b")}
    )
    ((cause, _),) = missing(
        config.model_copy(update={"evaluators": remote}), has=lambda extra: extra.name == "embeddings"
    )
    assert cause.startswith("evaluators.embedding: needs the extra 'judge'")


def test_check_refuses_a_folder_in_which_there_is_no_model(call, tmp_path: Path) -> None:
    path, folder = tmp_path / "c.yaml", tmp_path / "model"
    path.write_text(f"evaluators: {{embedding: {{model: {folder}}}}}")
    for cause in ("there is no folder", "the folder"):
        ((found, remedy),) = missing(resolve(path, {}).config, has=lambda _: True)
        assert found.startswith(f"evaluators.embedding.model: {cause} {folder}")
        assert remedy.startswith("set evaluators.embedding.model to a folder")
        folder.mkdir(exist_ok=True)
    (folder / "modules.json").write_text("[]")
    assert list(missing(resolve(path, {}).config, has=lambda _: True)) == []
    if installed(EMBEDDINGS):
        (folder / "modules.json").unlink()
        reported = call("check", path)
        assert (reported.exit_code, "holds no model" in reported.stderr) == (2, True)


@pytest.mark.parametrize("rubric", ["agent", "quality", "dimensions"])
def test_check_warns_of_every_rubric_that_only_a_judge_can_tell(call, tmp_path: Path, rubric: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(f"routes: [{{rubrics: [{rubric}]}}]")
    (cause, _) = call("check", path).stderr.splitlines()
    assert cause.startswith(f"warning: routes[0].rubrics: {rubric}: ")
    assert cause.endswith("so that these verdicts are incomplete")


def test_check_takes_the_file_from_the_environment(call) -> None:
    reported = call("check", env={"SIDEJUDGE_CONFIG": str(CORPUS / "five_mistakes.bad.yaml")})
    assert reported.exit_code == 2


def test_schema_is_json(call) -> None:
    reported = call("schema")
    assert reported.exit_code == 0
    assert json.loads(reported.stdout)["title"] == "sidejudge configuration"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    reported = subprocess.run(
        f"{ENTRY} schema | head -c 10", shell=True, capture_output=True, text=True, check=False, timeout=60
    )
    assert reported.stderr == ""


def test_a_gate_that_nobody_reads_is_not_passed() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([ENTRY, "schema"], stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_check_takes_its_file_as_an_argument_and_as_the_option_of_all_commands(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("sampling: {rate: 0.5}\n")
    argument, option = (
        CliRunner().invoke(main, ["check", *stated]) for stated in ([str(path)], ["--config", str(path)])
    )
    assert argument.output == option.output
    assert (argument.exit_code, "0.5" in argument.output) == (0, True)
