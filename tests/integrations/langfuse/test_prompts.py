"""Questions whose text lies in Langfuse: read with its version, and never in the way of a start."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from sidejudge.monitor.config import load, resolve
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.runtime.reload import Reload
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.kinds import AskDeclared
from sidejudge.scoring.result.result import Unavailable

PROMPTS = {
    ("complete", "production"): {"prompt": "How complete is {{output}}?", "version": 3, "type": "text"},
    ("complete", "staging"): {"prompt": "Is {{outputs}} fine?", "version": 4, "type": "text"},
    ("chat", "production"): {"prompt": [{"role": "user", "content": "x"}], "version": 1, "type": "chat"},
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        parts = urlsplit(self.path)
        found = PROMPTS.get((parts.path.rpartition("/")[2], parse_qs(parts.query).get("label", ["production"])[0]))
        body = json.dumps(found or {"error": "NotFound"}).encode()
        self.send_response(200 if found else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def langfuse():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def metric(tmp_path, url, ask):
    path = tmp_path / "sidejudge.yaml"
    sink = f"sinks: {{langfuse: {{base_url: '{url}', public_key: pk-lf-x, secret_key: sk-lf-x}}}}\n" if url else ""
    path.write_text(f"{sink}rubrics: {{own: {{metrics: [{{id: m, ask: {ask}}}]}}}}\n")
    return configured(load(path, {}))["own"].criteria[0].metric


def test_the_text_is_the_question_and_its_version_is_on_the_card(tmp_path, langfuse):
    found = metric(tmp_path, langfuse, "{langfuse_prompt: complete, label: production}")
    (question,) = next(found.measure(Case(case_id="c", model_output="x")))
    assert isinstance(question, AskDeclared)
    assert 'How complete is "model_output"?' in question.instructions
    assert found.source == "Langfuse prompt complete v3"


@pytest.mark.parametrize(
    ("ask", "stated"),
    [("{langfuse_prompt: gone}", "there is no such prompt"), ("{langfuse_prompt: chat}", "it is no text prompt")],
)
def test_a_prompt_that_cannot_be_used_leaves_the_metric_unavailable(tmp_path, langfuse, ask, stated):
    found = metric(tmp_path, langfuse, ask).measure(Case(case_id="c", model_output="x"))
    assert isinstance(found, Unavailable)
    assert stated in found.reason


def test_without_langfuse_or_with_one_that_is_away_the_metric_is_unavailable_and_everything_else_starts(tmp_path):
    for url, stated in (("", "says which"), ("http://127.0.0.1:9", "cannot be reached")):
        found = metric(tmp_path, url, "{langfuse_prompt: complete}").measure(Case(case_id="c", model_output="x"))
        assert isinstance(found, Unavailable)
        assert stated in found.reason


def test_a_prompt_that_cannot_be_read_is_named_with_the_cause(tmp_path, langfuse, caplog):
    metric(tmp_path, langfuse, "{langfuse_prompt: gone}")
    assert caplog.messages == ["the prompt gone cannot be read: there is no such prompt, version or label"]


def test_a_prompt_with_a_name_that_is_no_variable_is_refused(tmp_path, langfuse):
    with pytest.raises(Exception, match="not a variable"):
        metric(tmp_path, langfuse, "{langfuse_prompt: complete, label: staging}")


OWN = "{langfuse_prompt: complete, label: production}"


def written(tmp_path, url, ask=OWN):
    path = tmp_path / "sidejudge.yaml"
    path.write_text(
        f"sinks: {{langfuse: {{base_url: '{url}', public_key: pk-lf-x, secret_key: sk-lf-x}}}}\n"
        f"rubrics: {{own: {{metrics: [{{id: m, ask: {ask}}}]}}}}\n"
    )
    return path


def card(loaded):
    return configured(loaded.config)["own"].criteria[0].metric.source


NEXT = {"prompt": "How whole is {{output}}?", "version": 5, "type": "text"}


def test_a_new_version_is_seen_and_a_langfuse_that_is_away_is_no_change(tmp_path, langfuse, monkeypatch):
    loaded = resolve(written(tmp_path, langfuse), {})
    assert loaded.prompts.changed() == []
    monkeypatch.setitem(PROMPTS, ("complete", "production"), NEXT)
    assert loaded.prompts.changed() == ["complete"]
    monkeypatch.delitem(PROMPTS, ("complete", "production"))
    assert loaded.prompts.changed() == []
    again = resolve(written(tmp_path, langfuse), {}, loaded.prompts)
    assert card(again) == "Langfuse prompt complete v3"


def test_a_fixed_version_is_read_once_and_one_that_was_missing_until_it_is_there(tmp_path, langfuse, monkeypatch):
    fixed = resolve(written(tmp_path, langfuse, "{langfuse_prompt: complete, version: 3}"), {})
    missing = resolve(written(tmp_path, langfuse, "{langfuse_prompt: later}"), {})
    monkeypatch.setitem(PROMPTS, ("complete", "production"), NEXT)
    monkeypatch.setitem(PROMPTS, ("later", "production"), NEXT)
    assert fixed.prompts.changed() == []
    assert missing.prompts.changed() == ["later"]


async def test_a_changed_prompt_is_put_into_force_by_a_reload(tmp_path, langfuse, monkeypatch):
    path, taken = written(tmp_path, langfuse), []
    first = resolve(path, {})

    class Monitor:
        config, rubrics = first.config, configured(first.config)

        def take_config(self, config, changed):
            taken.append(changed)

        def reloaded(self, *, successful):
            assert successful

    reload = Reload(Monitor(), first, lambda before: resolve(path, {}, before.prompts))
    assert await reload.look_at_prompts() is None
    monkeypatch.setitem(PROMPTS, ("complete", "production"), NEXT)
    assert (await reload.look_at_prompts()).changed == ("own",)
    assert taken[0]["own"].criteria[0].metric.source == "Langfuse prompt complete v5"
    assert await reload.look_at_prompts() is None
