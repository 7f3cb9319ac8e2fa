"""An agent's statements on itself: that it assumes, makes up or cannot find something, or makes no progress.

English words count only in English texts. The progress report of an orchestrator (``"is_in_loop": …``) is read in any
language.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.result.reason import Reason
from sidejudge.scoring.result.result import Method, NotApplicable, Result, at_least
from sidejudge.scoring.trace import usage
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.trace.span import Span

from .answer_failure import sole_text
from .run_ending import no_run, run_metric
from .run_steps import MOST_CALLS, share_without

_READ: Final = 6_000
"""Most characters of one model answer that are read."""
_ENGLISH: Final = frozenset({
    "the", "a", "an", "is", "are", "was", "i", "to", "of", "and", "in", "that", "it", "for", "not", "this", "with",
    "be", "on", "we", "you", "have",
})  # fmt: skip
_LEAST_ENGLISH: Final = 0.12
"""The smallest share of these few words in an English text."""
_WE: Final = (
    r"(?:i|we|let['’]?s|let\s+us|let\s+me)"
    r"(?:['’](?:ll|m|re)|\s+(?:will|can|must|have\s+to|need\s+to|am|are|could|should|now))?(?:\s+going\s+to)?"
)
_ASSUMES: Final = re.compile(
    rf"""\b{_WE}\s+(?:just\s+|simply\s+|therefore\s+|now\s+|also\s+)?(?:assum(?:e|ed|ing)|simulat(?:e|ed|ing)|pretend(?:ing)?|guess(?:ing)?
        |fabricat(?:e|ing)|make\s+up|recall|remember)\b
      |\b(?:assuming|supposing)\s+(?:that\s+)?(?:the|it|this|these|we|a|an|no|there)\b
      |\b(?:simulated|placeholder|made-up|mocked?|dummy|fictional|fictitious|fabricated|invented)\s+(?:data|values?|results?|outputs?|answers?|responses?|figures?|numbers?|content|tool)\b
      |\b(?:educated|best|reasonable|wild)\s+guess\b
      |\b(?:from|on|using)\s+(?:my\s+)?(?:own\s+)?(?:memory|general\s+knowledge|prior\s+knowledge|background\s+knowledge|training\s+data)\b
      |\bas\s+(?:far\s+as\s+)?i\s+(?:recall|remember)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_MISSES: Final = re.compile(
    r"""\b(?:i|we)\s+(?:(?:was|am|were|are)\s+(?:not\s+able|unable)\s+to|wasn['’]t\s+able\s+to|can\s?not|can['’]t|could\s+not|couldn['’]t|did\s+not|didn['’]t)
        \s+(?:directly\s+|yet\s+|actually\s+|manage\s+to\s+)?(?:find|locate|access|determine|retrieve|verify|open|view|identify|obtain|confirm)\b
      |\b(?:is|was|were|are)\s+not\s+(?:explicitly\s+)?(?:available|provided|accessible)\s+in\s+the\s+(?:search\s+results|page|document|data|transcript|text)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_STUCK: Final = re.compile(
    r"""\b(?:stuck|caught|trapped|going|running)\s+(?:in|into)\s+(?:a\s+|an\s+|the\s+same\s+)?(?:infinite\s+|repetitive\s+|endless\s+)?(?:loop|cycle|circles)\b
      |\b(?:no|not\s+making\s+(?:any\s+)?|without\s+(?:any\s+)?|lack\s+of|little)\s*(?:real\s+|further\s+|meaningful\s+|significant\s+|forward\s+)?progress\b
      |\bkeep(?:s)?\s+(?:repeating|failing|getting\s+the\s+same|running\s+into\s+the\s+same)\b
      |\brepeat(?:ing|ed|edly)?\s+the\s+same\s+(?:steps?|actions?|requests?|mistakes?|quer(?:y|ies)|search(?:es)?|errors?)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_PROGRESS: Final = re.compile(
    r'"is_in_loop"\s*:\s*(?:\{[^{}]{0,2000}?"answer"\s*:\s*)?true|"is_progress_being_made"\s*:\s*(?:\{[^{}]{0,2000}?"answer"\s*:\s*)?false'
)
_REPORT: Final = re.compile(r'"is_(?:in_loop|progress_being_made)"')
_COMES_NO_FURTHER: Final = Reason("states that it comes no further")
_ASSUMED: Final = (
    (_ASSUMES, Reason("states that it assumes or makes up something")),
    (_MISSES, Reason("states that it cannot find something")),
)
_NO_WORDS: Final = NotApplicable(Reason("no model answered, or none in words that are read"))


@record(frozen=True, slots=True, kw_only=True)
class _Statement:
    """The statement of one model answer on its speaker. ``english``: whether its words are read at all."""

    span_id: str
    english: bool
    reports: bool
    stuck: bool
    assumed: Reason | None


def _statements(case: Case) -> tuple[_Statement, ...]:
    """The statements of all model answers. Call by ``case.once``."""
    if case.trace is None:
        return ()
    answers = ((span, _words(span)) for span in usage.model_calls(case.trace)[:MOST_CALLS])
    return tuple([_statement(span, text) for span, text in answers if text])


def _words(span: Span) -> str:
    text = "\n".join(message.text for message in span.output_messages if message.text)
    if not text and span.output is not None:
        text = sole_text(span.output) or text_or_json(span.output)
    return text[:_READ]


def _statement(span: Span, text: str) -> _Statement:
    english = is_english(text)
    reports = _REPORT.search(text) is not None
    return _Statement(
        span_id=span.span_id, english=english, reports=reports,
        stuck=(reports and _PROGRESS.search(text) is not None) or (english and _STUCK.search(text) is not None),
        assumed=next((sign for pattern, sign in _ASSUMED if pattern.search(text)), None) if english else None,
    )  # fmt: skip


def is_english(text: str) -> bool:
    """Whether the most frequent English words are as common in a text as in English."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    return sum(word in _ENGLISH for word in words) >= _LEAST_ENGLISH * len(words)


@run_metric(
    meaning="The share of the models' answers in which the model does not say that it assumes, simulates, guesses or "
    "recalls something, or cannot find it. A sign by English words.",
    formula="1 − answers that say so / answers in English",
    bands=at_least(good=1.0, acceptable=0.8),
    methods=(Method.LEXICAL,),
    undefined="not applicable where no model answered in English, or contents were not captured",
)
def no_stated_trouble(case: Case) -> Result:  # noqa: D103  # its card documents it
    found = [(each.span_id, each.assumed) for each in case.once(_statements) if each.english]
    return _share(case, found)


@run_metric(
    formula="1 − answers that say so / answers in English or with a progress report",
    bands=at_least(good=1.0, acceptable=0.8),
    methods=(Method.LEXICAL,),
    undefined="not applicable where no model answered in English or with such a report, or contents were not captured",
)
def not_stuck(case: Case) -> Result:
    """The share of the models' answers in which the model does not say that it is in a loop or makes no progress.

    A sign by English words, and by the progress report of an orchestrator in any language.
    """
    read = [each for each in case.once(_statements) if each.english or each.reports]
    return _share(case, [(each.span_id, _COMES_NO_FURTHER if each.stuck else None) for each in read])


def _share(case: Case, read: Sequence[tuple[str, Reason | None]]) -> Result:
    """The share of the answers that were read and show no sign."""
    if (gap := case.once(no_run)) is not None:
        return gap
    if not read:
        return _NO_WORDS
    found = [(span_id, sign) for span_id, sign in read if sign is not None]
    return share_without(found, len(read), "steps", method=Method.LEXICAL)
