"""What a verdict quotes is redacted where contents stand, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.result.reason import Reason, part, quoted
from sidejudge.scoring.result.result import Judgement, Scored, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.redacted import redacted_verdict
from sidejudge.scoring.verdict.score import Score
from sidejudge.scoring.verdict.verdict import Verdict


def verdict(reason: str, details: dict[str, object]) -> Verdict:
    found = score(Case(case_id="c", input="When?", model_output="1932"), RUBRICS["run_health"], created_at="t")
    quoting = Scored(value=1.0, reason=reason, details=details)
    return replace(found, scores=(Score("calls_valid", 0.1, quoting, None), *found.scores))


def test_contents_names_and_details_are_redacted_and_our_words_are_not() -> None:
    why = Reason("secret of {tool}: {error}", tool=part("secret tool"), error=quoted("the secret is out"))
    shown = redacted_verdict(
        verdict(why, {"quotes": ["a secret", {"secret": 1}], "n": 2}), lambda text: text.replace("secret", "[key]")
    )
    stated = shown.to_json()["scores"][0]
    assert stated["reason"] == "secret of [key] tool: the [key] is out"
    assert stated["reason_parts"] == ["secret of ", {"name": "[key] tool"}, ": ", None]
    assert stated["details"] == {"quotes": ["a [key]", {"[key]": 1}], "n": 2}


def test_a_verdict_that_quotes_nothing_to_replace_and_ids_of_steps_stay_as_they_are() -> None:
    steps = verdict(Reason("fine"), {"spans": 2, "matching": 1, "lowest": {"b7ad6b7169203331": 0.0}})
    assert redacted_verdict(steps, lambda text: text.replace("b7ad", "[card]")) is steps


def test_what_the_members_of_a_panel_answered_is_redacted_with_or_without_a_decision() -> None:
    asked = (Judgement("panel", "p", call="c", votes=(("a", '["secret"]'), ("b", "0.75"))), Judgement("one", "p"))
    found = verdict("fine", {})
    decided = Score("calls_valid", 0.1, Scored(value=1.0, judgements=asked), None)
    split = Score("agents_match", 0.1, Unavailable("split"), None, asked)
    shown = redacted_verdict(replace(found, scores=(decided, split)), lambda text: text.replace("secret", "[key]"))
    for each in shown.scores:
        assert each.requested[0].votes == (("a", '["[key]"]'), ("b", "0.75"))
        assert each.requested[1] is asked[1]
    assert redacted_verdict(replace(found, scores=(decided, split)), str).scores == (decided, split)
