"""Lexical answers to the questions of the text rubric, where words and figures decide.

*Yes* when both state the same in the same words and figures, or when the transcript holds all of it together; *no* when
a figure, date or name is nowhere, when figures contradict the reference, or when both texts are understood word by word
and are about different things. Anything else may be a paraphrase, and is left open.

Words alone prove no fabrication: a summary adds common knowledge, rounds, and counts. Proof is a clause that the
transcript holds nearly word by word, but with another number for the same thing or with a name that is nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.claims import Claim, claims, stems
from sidejudge.scoring.lexical.facts import NumberInText, names
from sidejudge.scoring.lexical.known_figures import Account, account
from sidejudge.scoring.lexical.lexicon import STOPWORDS, word_list
from sidejudge.scoring.lexical.numerals import CURRENCIES, NUMBER_WORDS
from sidejudge.scoring.lexical.statement import (
    MAX_STATEMENT,
    Statement,
    contradicts,
    covers,
    read_statement,
    root,
    states_the_same,
)
from sidejudge.scoring.lexical.text import normalise, tokens
from sidejudge.scoring.lexical.topics import read_topics
from sidejudge.scoring.lexical.transcript_index import TranscriptIndex
from sidejudge.scoring.metrics.stated import stated
from sidejudge.scoring.metrics.summary import MAX_FACTS
from sidejudge.scoring.questions.kinds import CorrectHighlight, SameHighlight, SameIntent, SummaryClaims, Supported
from sidejudge.scoring.questions.question import Answer, NoAnswer, Question, Reply
from sidejudge.scoring.result.reason import Reason, own, quoted
from sidejudge.scoring.result.result import Method

QUESTIONS = (SameIntent, SameHighlight, CorrectHighlight, SummaryClaims, Supported)

_MOST_NUMBERS = 20
"""Most numbers of one claim that are looked up."""
_OPEN = NoAnswer(Reason("words alone cannot tell: it needs a judge"))
_NAME_ENDINGS = ("name", "names", "nombre", "नाम")
"""Endings of the names of fields that hold a name (``customer_name``)."""
_DEMONYMS = ("man", "men", "woman", "women", "ish", "ese", "ian", "ians", "ean", "eans", "ican", "icans")
_CALENDAR = word_list(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august",
    "september october november december christmas easter ok okay tv online english german spanish",
    "french dutch swiss danish irish welsh greek british american european",
    "street avenue road lane square park lake river mount island bridge county state city airport station hotel",
    "harbour museum university college school hospital church bank restaurant bar theatre theater cinema club company",
    "court",
    "north south east west northern southern eastern western god mum mom dad grandma grandpa internet facebook google",
)
"""Capitalised words that name no party: a writer may know them without the transcript."""
_OF_TITLES = word_list(
    "prime minister president chancellor king queen prince princess emperor pope bishop senator governor mayor",
    "general captain colonel major sergeant officer judge justice secretary director chairman chief doctor",
    "professor sir lord lady saint white black red blue green gold golden silver grey gray brown pink purple",
    "orange big little great grand high low new old young first second third upper lower central middle main",
    "royal national international federal united global world state public free open modern ancient holy sacred",
    "common civil social democratic republic republican party union league cup championship champions series",
    "premier olympic olympics games festival award prize day week house hall palace castle tower temple cathedral",
    "abbey gate wall market centre center office department ministry committee council congress parliament senate",
    "court assembly commission agency authority board bureau institute academy foundation association society",
    "federation organisation organization group corporation limited army navy air force guard police fire service",
    "act law bill treaty agreement constitution amendment war battle revolution empire kingdom dynasty age era",
    "century ocean sea bay gulf valley desert forest hill hills mountains rock beach coast river falls spring",
    "springs street post times news journal magazine press radio television channel network online web app apple",
    "amazon windows facebook twitter instagram youtube netflix uber whatsapp microsoft sony samsung android",
    "iphone ipad bluetooth wifi",
)
"""Everyday words that occur in names of offices, places, institutions and products: *Prime*, *White House*."""
_PHRASE = re.compile(r"[A-Z][\w'’-]+(?:\s+(?:(?:of|the|for|and|de|der|des|la|in|on)\s+){0,2}[A-Z][\w'’-]+)+")
_CALLED = (
    "mr", "mrs", "ms", "miss", "dr", "prof", "herr", "frau", "señor", "señora", "sr", "sra", "uncle", "aunt", "cousin",
    "brother", "sister", "onkel", "tante", "tío", "tía",
)  # fmt: skip
"""Words that precede a person's name."""
_TITLES = frozenset(("mr", "mrs", "ms", "miss", "dr", "herr", "frau", "señor", "señora", "sr", "sra", "श्री", "श्रीमती"))


def answer(case: Case, question: Question, *, proven: bool = False) -> Reply:
    """The lexical answer to a question of the text rubric, or none.

    Args:
        case: the case that the question is about.
        question: any.
        proven: answer only where words are equal or figures and names contradict; no word list decides.
    """
    match question:
        case SameIntent(expected, found) if _short(expected, found):
            return _same_intent(read_statement(expected), read_statement(found), proven=proven)
        case SameHighlight(expected, found) if _short(expected, found):
            return _same_highlight(read_statement(expected), read_statement(found), proven=proven)
        case CorrectHighlight(highlight) if _short(highlight):
            return _is_correct(case, highlight, proven=proven)
        case Supported(claim, about) if _short(claim):
            return _is_supported(case, claim, about, proven=proven)
        case _:
            return _OPEN


def _short(*texts: str) -> bool:
    return all(len(text) <= MAX_STATEMENT for text in texts)


def _same_intent(expected: Statement, found: Statement, *, proven: bool) -> Reply:
    if states_the_same(expected, found):
        return answered(value=1.0, why=Reason("the same words"))
    if proven:
        return _OPEN
    wanted, given = read_topics(expected), read_topics(found)
    if not given.understood or not wanted.domains or not given.domains:
        return _OPEN
    if wanted.understood and wanted.domains.isdisjoint(given.domains):
        return answered(
            value=0.0,
            why=Reason(
                "about {given}, not {wanted}", given=own(_listed(given.domains)), wanted=own(_listed(wanted.domains))
            ),
        )
    only_domain = not given.particular and given.domains == wanted.domains and len(wanted.domains) == 1
    if only_domain and (wanted.particular or wanted.unknown):
        return answered(value=0.5, why=Reason("says no more than {given}", given=own(_listed(given.domains))))
    return _OPEN


def _same_highlight(expected: Statement, found: Statement, *, proven: bool) -> Reply:
    if covers(found, expected):
        return answered(value=True, why=Reason("the same words"))
    if _gives_another_amount(expected, found):
        return answered(value=False, why=Reason("another amount"))
    if proven:
        return _OPEN
    wanted, given = read_topics(expected), read_topics(found)
    if wanted.understood and given.understood and wanted.concepts.isdisjoint(given.concepts):
        return answered(value=False, why=Reason("about something else"))
    return _OPEN


def _gives_another_amount(expected: Statement, found: Statement) -> bool:
    """Whether both give one amount, the amounts differ, and half of the shorter's words are shared."""
    if len(expected.amounts) != 1 or len(found.amounts) != 1 or expected.amounts[0].agrees(found.amounts[0]):
        return False
    shared = len(expected.stated & found.stated)
    return 2 * shared >= min(len(expected.stated), len(found.stated)) > 0


def _is_correct(case: Case, highlight: str, *, proven: bool) -> Reply:
    stated = read_statement(highlight)
    known = case.once(_reference_statements)
    if _is_stated_by(known, stated, proven=proven):
        return answered(value=True, why=Reason("stands in the reference"))
    looked_up = _look_up(case, highlight)
    against = next((text for text, fact in known if contradicts(fact, stated)), None)
    if against is not None:
        held = isinstance(looked_up, Answer) and looked_up.value
        if proven and not held:
            return looked_up  # no, by a figure or a name that stands nowhere; else open
        if held:
            return _OPEN
        return answered(value=False, why=Reason("the reference says {text}", text=quoted(repr(against[:60]))))
    return looked_up


def _is_supported(case: Case, claim: str, about: str, *, proven: bool) -> Reply:
    stated = read_statement(claim)
    known = case.once(_reference_statements)
    if _is_stated_by(known, stated, proven=proven):
        return answered(value=True, why=Reason("stands in the reference"))
    if normalise(about).endswith(_NAME_ENDINGS):
        return _look_up_name(case, claim)
    looked_up = _look_up(case, claim)
    disputed = isinstance(looked_up, Answer) and looked_up.value and any(contradicts(fact, stated) for _, fact in known)
    return _OPEN if disputed else looked_up


def _is_stated_by(known: Sequence[tuple[str, Statement]], stated: Statement, *, proven: bool) -> bool:
    """Whether the reference states the text in the same words, or the text only names the domain of the call."""
    if any(covers(fact, stated) for _, fact in known):
        return True
    if proven:
        return False
    topics = read_topics(stated)
    if topics.particular or not topics.understood or stated.figures:
        return False
    return topics.domains <= frozenset().union(*(read_topics(fact).domains for _, fact in known))


def _look_up(case: Case, text: str) -> Reply:
    """Look a text up in transcript and reference: whether either holds its figures, and its words together."""
    indexes = _indexes(case)
    if not indexes or not all(index.can_read(text) for index in indexes):
        return _OPEN
    found = tuple(without_doubtful_names(claim, text) for claim in claims(text))
    if not found or not all(index.can_check(text, found) for index in indexes):
        return _OPEN
    for claim in found:
        fault = _made_up(claim, text, indexes)
        if fault is not None:
            return answered(value=False, why=fault)
    if any(index.assertions.state(text) for index in indexes):
        return answered(value=True, why=Reason("it is said with the same subject, relation and object"))
    return _OPEN


def _made_up(claim: Claim, text: str, indexes: tuple[TranscriptIndex, ...]) -> str | None:
    """The contradiction of a claim: another number for the same thing, another date, or a name that is nowhere.

    An absent count may be the writer's own, and an absent name common knowledge (*Portugal* for Lisbon). Both are a
    contradiction only where the transcript holds the rest of the claim together, or where a title marks a person.
    """
    figures = tuple(index.figures for index in indexes)
    for number in claim.numbers[:_MOST_NUMBERS]:
        found = account(number, text, figures)
        another = found is Account.OPEN and any(gives_another_number(i, claim, text, number) for i in indexes)
        if another or found is Account.AGAINST:
            return f"the number {number.text[:30]} stands neither in transcript nor in reference"
    for day in claim.dates:
        spoken = any(known.gives(float(reading[-2:])) for known in figures for reading in day)  # *the 2nd*
        if (
            not spoken
            and all(index.lacks_date(day) for index in indexes)
            and any(index.has_dates() for index in indexes)
        ):
            return f"the date {min(day)} stands neither in transcript nor in reference, which give another"
    strange = [name for name in claim.names if _is_strange(name, text, indexes)]
    for name in strange:
        titled = re.search(rf"\b(?:{'|'.join(_CALLED)})\.? {re.escape(name)}", text, re.IGNORECASE) is not None
        whole = any(f"{left} {right}" in text for left, right in pairwise(strange) if name in (left, right))
        if titled or any(restates(index, claim, whole_name=whole) for index in indexes):
            return f"the name {name[:40]} stands neither in transcript nor in reference"
    return None


def _is_strange(name: str, text: str, indexes: tuple[TranscriptIndex, ...]) -> bool:
    """Whether a name is nowhere in any form, and is no common knowledge."""
    words = [word for word in tokens(name) if len(word) > 1]
    known = not _CALENDAR.isdisjoint(words) or not _OF_TITLES.isdisjoint(words) or _describes(name, text)
    known = known or _spells_out(name, text, indexes)
    return not known and any(not any(index.names.may_hold(word) for index in indexes) for word in words)


def _spells_out(name: str, text: str, indexes: tuple[TranscriptIndex, ...]) -> bool:
    """Whether a name is part of a phrase whose initials are given: *World Health Organization* for *WHO*."""
    for phrase in (found.split() for found in _PHRASE.findall(text)):
        if name in phrase:
            initials = {
                "".join(word[0] for word in phrase if word[0].isupper()),
                "".join(word[0] for word in phrase).upper(),
            }
            if any(not index.names.abbreviations.isdisjoint(initials) for index in indexes):
                return True
    return False


def _describes(name: str, text: str) -> bool:
    """Whether a capitalised word describes and names no party: *an Englishman*, *in Portugal*, *Tolstoy's War*."""
    bare = re.escape(name)
    if re.search(rf"\b(?:in|from|to|near|of|aus|nach|de|en) (?:[A-Z]\w+ )?{bare}\b|{bare}['’]s? [A-Z]", text):
        return True
    word = name.casefold().removesuffix("'s").removesuffix("’s")
    return word.endswith(_DEMONYMS) or re.search(rf"\b(?:an?|any|eine?|una?) {re.escape(name)}\b", text) is not None


def _indexes(case: Case) -> tuple[TranscriptIndex, ...]:
    """Transcript and reference; none where either is missing or too long, because then absence proves nothing."""
    if case.transcript_index is None or case.reference_index is None:
        return ()
    return case.transcript_index, case.reference_index


def _look_up_name(case: Case, name: str) -> Reply:
    words = [word for word in tokens(name) if word not in _TITLES]
    indexes = _indexes(case)
    if not indexes or not words:
        return _OPEN
    strange = [word for word in words if not any(index.has_word(word) for index in indexes)]
    if not strange:
        return answered(value=True, why=Reason("the name stands in transcript or reference"))
    if not all(indexes[0].uses_script_of(word) for word in strange):
        return _OPEN
    return answered(
        value=False,
        why=Reason("the name {name} stands neither in transcript nor in reference", name=quoted(repr(strange[0][:40]))),
    )


def without_doubtful_names(claim: Claim, text: str) -> Claim:
    """The claim, without names where most words are capitalised, as in a title: there capitals mark no names."""
    plain = sum(word[:1].islower() and len(word) > 3 for word in text.split())
    return claim if len(names(text)) <= plain else replace(claim, names=())


def _reference_statements(case: Case) -> list[tuple[str, Statement]]:
    """The statements of the reference; none where it is too long to be compared."""
    facts = islice(stated(case.expected_content), MAX_FACTS)
    return [(fact.text, read_statement(fact.text)) for fact in facts if _short(fact.text)]


def _listed(domains: frozenset[str]) -> str:
    return " and ".join(sorted(domains))


def answered(*, value: object, why: str) -> Answer:
    """An answer by words alone."""
    return Answer(value=value, method=Method.LEXICAL, reason=why)


_SHARE, _SHARE_OF_NAMES = 0.6, 0.75
"""Share of the claim's content words, without names, that must stand together around a number or a name."""
_LEAST: Final = 1
_REACH: Final = 3
"""Words on either side of a number that are searched for the thing that it counts or measures."""


def restates(index: TranscriptIndex, claim: Claim, *, whole_name: bool) -> bool:
    """Whether the words of a claim, without its names and numbers, stand together in the transcript.

    Fewer of them suffice with a ``whole_name`` (*Amit Verma*), which names a party more often than a single word does.
    """
    return _place(index, claim, _SHARE if whole_name else _SHARE_OF_NAMES) is not None


def gives_another_number(index: TranscriptIndex, claim: Claim, text: str, number: NumberInText) -> bool:
    """Whether the transcript holds the claim's words with another number for the same thing or in the same currency."""
    said = _place(index, claim, _SHARE)
    if said is None:
        return False
    about = set().union(*(_beside(words, at) for words in [tokens(text)] for at in _places_of(words, number)))
    own = {value for each in claim.numbers for value in each.values}
    for words in said:
        for at, word in enumerate(words):
            if not (word.isdigit() or word in NUMBER_WORDS) or str(NUMBER_WORDS.get(word, word)) in own:
                continue
            near = _beside(words, at)
            money = number.currency is not None and any(CURRENCIES.get(one) == number.currency for one in near)
            if money or not about.isdisjoint(near):
                return True
    return False


def _place(index: TranscriptIndex, claim: Claim, least: float) -> list[list[str]] | None:
    content = _content(claim)
    if len(content) < _LEAST:
        return None
    found, share = index.together(content)
    return found if share >= least else None


def _content(claim: Claim) -> frozenset[str]:
    named = {stem for name in claim.names for stem in stems(tokens(name))}
    return frozenset(stem for stem in claim.content - named if not stem[:1].isdigit())


def _places_of(words: list[str], number: NumberInText) -> list[int]:
    values = {number.text, *number.values}
    return [at for at, word in enumerate(words) if word in values or str(NUMBER_WORDS.get(word, "")) in values]


def _beside(words: list[str], at: int) -> set[str]:
    """Roots of the words beside a number, and its currency."""
    near = words[max(0, at - _REACH) : at] + words[at + 1 : at + 1 + _REACH]
    return {word if word in CURRENCIES else root(word) for word in near if word not in STOPWORDS and not word.isdigit()}
