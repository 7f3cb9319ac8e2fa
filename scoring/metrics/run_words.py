"""What an agent reports of itself: that it assumes, makes up or cannot find something, or comes no further.

Words of English decide only in English texts. The progress report of an orchestrator (``"is_in_loop": …``) is read in
any language, and that a sub-agent returns the same text again needs no words at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import written
from sidejudge.scoring.lexical.label import label
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.result.bands import at_least
from sidejudge.scoring.result.reason import Reason, part, together
from sidejudge.scoring.result.result import Method, NotApplicable, Result, Scored
from sidejudge.scoring.trace import usage
from sidejudge.scoring.trace.span import Span, SpanKind

from .answer_failure import sole_text
from .run_ending import SOURCE, no_run, top
from .run_steps import MOST_CALLS, signs

_READ: Final = 6_000
"""Characters of one answer of a model that are read."""
_LEAST_OUTPUT: Final = 40
"""Characters from which equal outputs of a sub-agent are no coincidence."""
_ENGLISH: Final = frozenset(
    [
        "the",
        "a",
        "an",
        "is",
        "are",
        "was",
        "i",
        "to",
        "of",
        "and",
        "in",
        "that",
        "it",
        "for",
        "not",
        "this",
        "with",
        "be",
        "on",
        "we",
        "you",
        "have",
    ]
)
_LEAST_ENGLISH: Final = 0.12
"""Of the words of an English text, the share of these few, at the least."""
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
_ENGLISH_SIGNS: Final = (
    (_STUCK, Reason("states that it comes no further")),
    (_ASSUMES, Reason("states that it assumes or makes up something")),
    (_MISSES, Reason("states that it cannot find something")),
)
_NO_WORDS: Final = NotApplicable(Reason("no model answered, or none in words that are read"))


def _no_stated_trouble(case: Case) -> Result:
    if (gap := no_run(case)) is not None:
        return gap
    if case.trace is None:
        return NotApplicable(Reason("the case is not a trace"))
    answers = [span for span in usage.model_calls(case.trace)[:MOST_CALLS] if span.output_messages or span.output]
    judged = [(span, sign) for span in answers if (sign := _stated(_words(span))) is not None]
    again = list(_again(case))
    if not judged and not again:
        return _NO_WORDS
    found = [(span.span_id, sign) for span, sign in judged if sign] + again
    return Scored(
        value=max(0.0, 1.0 - len(found) / max(1, len(judged))),
        method=Method.LEXICAL,
        reason=Reason(
            "{n} of {all} steps: {signs}",
            n=len(found),
            all=max(len(judged), len(found)),
            signs=together(dict.fromkeys(sign for _, sign in found), ", "),
        )
        if found
        else "",
        details=signs(found),
    )


def _words(span: Span) -> str:
    text = "\n".join(message.text for message in span.output_messages if message.text)
    if not text and span.output is not None:
        text = sole_text(span.output) or written(span.output)
    return text[:_READ]


def _stated(text: str) -> Reason | None:
    """What a text reports of its speaker; empty for nothing, None where it is in words that are not read."""
    if _PROGRESS.search(text):
        return _ENGLISH_SIGNS[0][1]
    words = re.findall(r"[^\W\d_]+", text.lower())
    if words and sum(word in _ENGLISH for word in words) < _LEAST_ENGLISH * len(words):
        return Reason("") if '"is_in_loop"' in text else None
    return next((sign for pattern, sign in _ENGLISH_SIGNS if pattern.search(text)), Reason(""))


def _again(case: Case) -> Iterator[tuple[str | None, Reason]]:
    """The runs of sub-agents that return what an earlier one of theirs did."""
    if case.trace is None:
        return
    first, seen = top(case.trace), set[tuple[str, str]]()
    for span in case.trace.spans:
        if span.kind is SpanKind.AGENT and span is not first and len(text := sole_text(span.output)) >= _LEAST_OUTPUT:
            key = (span.agent or span.name, text)
            if key in seen:
                yield span.span_id, Reason("{agent} returns the same again", agent=part(label(key[0])))
            seen.add(key)


no_stated_trouble = Metric(
    id="no_stated_trouble",
    title="No stated trouble",
    meaning="How free the run is of steps at which the agent itself reports that it assumes, makes up or cannot find "
    "something or comes no further, or at which a sub-agent returns the same again. A sign by words, without weight.",
    formula="1 − such steps / answers of models in English, with a progress report, or without a word",
    source=SOURCE,
    measure=_no_stated_trouble,
    bands=at_least(good=1.0, acceptable=0.8),
    methods=(Method.LEXICAL,),
    undefined="not applicable where no model answered in English, nor any sub-agent twice",
)
