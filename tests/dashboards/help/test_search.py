"""Search of the documentation: what people type finds its page."""

from __future__ import annotations

import pytest

from sidejudge.dashboards.help.search import MOST_WORDS, search
from sidejudge.dashboards.help.site import files
from sidejudge.dashboards.pages.plain_pages import search_page
from sidejudge.integrations.prometheus.families import FAMILIES
from sidejudge.monitor.config.validation_messages import walk
from sidejudge.scoring.rubrics import RUBRICS


def first(words, among=1):
    return [each.address.partition("#")[0] for each in search(words)[:among]]


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("change threshold", "/help/how-to/thresholds"),
        ("langchian", "/help/tutorials/langchain"),
        ("kubernets", "/help/tutorials/kubernetes"),
        ("upgrading", "/help/how-to/upgrade"),
        ("How do I silence an alert?", "/help/how-to/silence"),
        ("missing traces", "/help/how-to/missing-trace"),
        ("SidejudgePassRateCritical", "/help/dashboards/runbooks/pass-rate-critical"),
        ("pass_rate_critical", "/help/dashboards/runbooks/pass-rate-critical"),
        ("error: sampling.rate (e.yaml, line 1): must be a number, got '5%'", "/help/reference/configuration"),
        ("error: sampling.rate (e.yaml, line 1): must be a number; exit code 2", "/help/reference/configuration"),
        ("PYTEST", "/help/how-to/pytest"),
        ("dataframes", "/help/how-to/score-dataframe"),
        ("jupyter", "/help/how-to/score-dataframe"),
        ("error: no monitor answers at http://127.0.0.1:8790: Connection refused", "/help/how-to/debug"),
    ],
)
def test_what_somebody_types_finds_its_page_first(words, page):
    assert first(words) == [page]


def test_a_word_that_stands_in_code_alone_is_found_behind_pages_that_speak_of_it():
    assert "/help/how-to/notify" in first("slack", 3)


def test_where_few_pages_have_all_words_those_that_have_some_follow():
    page, *others = first("gdpr delete user", 4)
    assert page == "/help/how-to/forget", "the one that has all"
    assert len(others) == 3


def test_every_key_of_the_configuration_finds_the_page_that_declares_it():
    lost = [".".join(path) for path, _ in walk() if "/help/reference/configuration" not in first(".".join(path), 3)]
    assert lost == []


def test_every_metric_every_family_and_every_alert_finds_its_page():
    metrics = {each for rubric in RUBRICS.values() for each in rubric.metric_ids}
    assert [each for each in metrics if "/help/reference/metrics" not in first(each, 2)] == []
    families = [each.name for each in FAMILIES]
    assert [each for each in families if "/help/reference/families" not in first(each, 2)] == []
    runbooks = {path.rpartition("/")[2][:-3] for path in files() if "/runbooks/" in path} - {"README"}
    assert len(runbooks) > 10
    found = {name: first(name.replace("-", "_")) for name in runbooks}
    assert {name: at for name, at in found.items() if at != [f"/help/dashboards/runbooks/{name}"]} == {}


@pytest.mark.parametrize(
    "words", ["", "   ", "???", '"', "zzzzqqqq", "\\", "' OR 1=1 --", "a* NEAR(b", "\x00", "𝔘𝔫𝔦", "x" * 200]
)
def test_no_words_are_too_odd(words):
    assert len(search(words)) <= 40
    assert "<article" in search_page(words)


def test_of_a_long_text_only_so_many_words_are_compared_with_all_there_are(monkeypatch):
    unknown = [f"{a}{b}qzx" for a in "bcdfg" for b in "hjklm"]
    search("judge")
    compared = []
    monkeypatch.setattr(
        "sidejudge.dashboards.help.search.get_close_matches", lambda word, *_, **__: compared.append(word) or []
    )
    search(" ".join(unknown))
    assert len(compared) == MOST_WORDS
    compared.clear()
    search(".".join(unknown))
    assert len(compared) == MOST_WORDS


def test_what_is_shown_of_a_page_is_words_and_no_markdown():
    shown = " ".join(each.words for words in ("threshold", "judge", "langfuse", "status") for each in search(words))
    assert len(shown) > 1000
    assert not any(sign in shown for sign in ("](", "| ---", "```", "**"))


def test_a_result_leads_to_the_passage():
    (found, *_) = search("sampling.rate")
    assert found.address == "/help/reference/configuration#sampling"
