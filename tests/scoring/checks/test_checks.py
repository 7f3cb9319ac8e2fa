"""Every check against its definition, or against the library that computes it."""

from __future__ import annotations

import time

import pytest

from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.checks.check import CheckError
from sidejudge.scoring.checks.registry import CHECKS, compile_check
from sidejudge.scoring.questions.kinds import SentenceSimilarity
from sidejudge.scoring.questions.question import Answer, NoAnswer, run
from sidejudge.scoring.result.result import Method, NotApplicable, Scored, Unavailable
from sidejudge.scoring.trace.span import ToolCall

SCHEMA = {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}


def measured(declared, on="output", **about):
    """What a declared check makes of a case."""
    return compile_check(declared, on).measure(Case(**{"case_id": "c", "model_output": None, **about}))


@pytest.mark.parametrize(
    ("declared", "output", "holds"),
    [
        ({"equals": "yes"}, " yes\n", True),
        ({"equals": "yes"}, "yes, sir", False),
        ({"equals": {"a": 1}}, '{"a": 1}', False),  # the text is compared as it stands; on: output.a reads JSON
        ({"equals": {"a": 1}}, {"a": 1}, True),
        ({"equals": {"a": 1}}, {"a": True}, False),
        ({"contains": "refund"}, "Your refund is on its way", True),
        ({"contains": "Refund"}, "Your refund is on its way", False),
        ({"icontains": "REFUND"}, "Your refund is on its way", True),
        ({"contains-any": ["a1", "a2"]}, "see a2", True),
        ({"contains-any": "a1"}, "see a2", False),
        ({"icontains-any": ["A1", "A2"]}, "see a2", True),
        ({"contains-all": ["a1", "a2"]}, "a2 and a1", True),
        ({"contains-all": ["a1", "a2"]}, "a2 alone", False),
        ({"icontains-all": ["A1", "a2"]}, "a2 and a1", True),
        ({"starts-with": "Dear"}, "  Dear Ann", True),
        ({"starts-with": ["Hi", "Dear"]}, "Hello", False),
        ({"starts-with": " Dear "}, "  Dear Ann", True),
        ({"starts-with": "Dear "}, "Dearest", False),
        ({"ends-with": "."}, "Done. ", True),
        ({"ends-with": " ok\n"}, "all ok", True),
        ({"regex": r"https?://docs\."}, "see http://docs.acme.com", True),
        ({"regex": r"^\d+$"}, "12a", False),
        ({"word-count": 3}, "one two three", True),
        ({"word-count": {"min": 2, "max": 4}}, "one", False),
        ({"length": {"max": 3}}, "abcd", False),
        ({"is-json": True}, '```json\n{"a": 1}\n```', True),
        ({"is-json": True}, "{'a': 1}", False),
        ({"is-json": True}, '{"a": NaN}', False),
        ({"is-json": {"schema": SCHEMA}}, '{"sku": "x"}', True),
        ({"is-json": {"schema": SCHEMA}}, '{"sku": 1}', False),
        ({"contains-json": True}, 'Here: {"a": [1]} as asked', True),
        ({"contains-json": {"schema": SCHEMA}}, '[1] and {"sku": "x"}', True),
        ({"contains-json": True}, "a { b [ c", False),
        ({"is-xml": True}, "<a><b/></a>", True),
        ({"is-xml": True}, "<a><b></a>", False),
        ({"is-xml": True}, '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', False),
        ({"is-sql": True}, "SELECT a FROM b WHERE c = 1", True),
        ({"is-sql": True}, "SELECT FROM WHERE", False),
        ({"is-sql": True}, "Sorry", False),
        ({"is-sql": True}, "Hello World", False),
        ({"is-sql": True}, "SELECT 1; (a, b)", False),
        ({"is-sql": True}, "(SELECT 1) UNION VALUES (2)", True),
        ({"is-sql": "postgres"}, "SELECT a::int FROM b", True),
        ({"is-sql": {"read_only": True}}, "WITH x AS (SELECT 1) SELECT * FROM x", True),
        ({"is-sql": {"read_only": True}}, "SELECT * INTO x FROM b", False),
        ({"is-sql": {"read_only": True}}, "WITH x AS (DELETE FROM b RETURNING *) SELECT * FROM x", False),
        ({"is-sql": {"tables": ["b"]}}, "SELECT * FROM b CROSS APPLY salaries", False),
        ({"is-sql": {"tables": ["b"]}}, "SELECT * FROM b CROSS APPLY f(b.x)", True),
        ({"is-sql": {"read_only": True}}, "DELETE FROM b", False),
        ({"is-sql": {"tables": ["b"]}}, "WITH x AS (SELECT * FROM b) SELECT * FROM x", True),
        ({"is-sql": {"tables": ["b"]}}, "SELECT * FROM b JOIN salaries USING (id)", False),
        ({"is-sql": {"tables": ["b"]}}, "WITH x AS (SELECT * FROM x) SELECT * FROM x", False),
        ({"is-sql": {"tables": ["b"]}}, "WITH x AS (SELECT * FROM y), y AS (SELECT 1) SELECT * FROM x", False),
        ({"is-sql": {"tables": ["b"]}}, "WITH x AS (SELECT 1), y AS (SELECT * FROM x) SELECT * FROM y, b", True),
        ({"is-sql": {"tables": ["b"]}}, "WITH RECURSIVE x AS (SELECT 1 UNION SELECT * FROM x) SELECT * FROM x", True),
        ({"is-sql": {"tables": ["b"]}}, "SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x) AS z, x", False),
        ({"is-sql": {"tables": ["b"]}}, "WITH x AS (SELECT 1) SELECT * FROM s.x", False),
        ({"contains-json": True}, 'so: {"a": NaN}', False),
        ({"pii": True}, "write to ann@example.com", True),
        ({"pii": True}, "your order 7 is on its way at 10:30, 2026-11-22", False),
        ({"pii": ["card"]}, "4111 1111 1111 1111", True),
        ({"pii": ["card"]}, "4111 1111 1111 1112", False),
        ({"pii": ["card"]}, "0000 0000 0000 0000", False),
        ({"pii": ["iban"]}, "DE89 3704 0044 0532 0130 00", True),
        ({"pii": ["iban"]}, "DE89 3704 0044 0532 0130 01", False),
        ({"pii": ["phone"]}, "call +49 30 901820 now", True),
        ({"pii": ["phone"]}, "order 1234567890", False),
        ({"pii": ["key"]}, "AKIAIOSFODNN7EXAMPLE", True),
        ({"pii": ["email"]}, "AKIAIOSFODNN7EXAMPLE", False),
        ({"refusal": True}, "I'm sorry, but I can't help with that.", True),
        ({"refusal": True}, "I\u2019m unable to provide that.", True),
        ({"refusal": True}, "I'm sorry for the delay. Your parcel is on its way.", False),
        ({"refusal": True}, "I cannot recommend it enough.", False),
        ({"refusal": True}, "I can't wait to help you!", False),
        ({"refusal": True}, "I won't be able to help you with this.", True),
        ({"refusal": True}, "Cannot help with that.", True),
        ({"refusal": True}, "I'm not able to do this.", True),
        ({"language": "de"}, "Ihre Bestellung ist heute auf dem Weg zu Ihnen.", True),
        ({"language": ["en", "fr"]}, "Ihre Bestellung ist heute auf dem Weg zu Ihnen.", False),
        ({"readability": 60}, "The cat sat on the mat. It was warm.", True),
        ({"readability": 60}, "Institutional considerations necessitate multidimensional evaluation.", False),
        ({"levenshtein": {"to": "kitten", "at_most": 3}}, "sitting", True),
        ({"levenshtein": {"to": "kitten", "at_most": 2}}, "sitting", False),
    ],
)  # fmt: skip
def test_a_check_holds_or_does_not_and_its_opposite_is_the_opposite(declared, output, holds):
    _skip_without(declared)
    assert measured(declared, model_output=output).value == float(holds)
    opposite = {f"not-{name}": argument for name, argument in declared.items()}
    assert measured(opposite, model_output=output).value == float(not holds)


def _skip_without(declared):
    extra = CHECKS[next(iter(declared))].extra
    modules = {"is-sql": "sqlglot", "language": "py3langid", "levenshtein": "rapidfuzz"}
    if extra is not None:
        pytest.importorskip(modules.get(next(iter(declared)), "sacrebleu"))


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ({"rouge-n": "the cat lay down"}, 2 * 2 / (3 + 4)),  # shared: the, cat
        ({"rouge-n": {"to": "the cat lay down", "n": 2}}, 2 * 1 / (2 + 3)),
        ({"f-score": "cat sat"}, 2 * 2 / (3 + 2)),
        ({"f-score": {"to": "cat sat", "threshold": 0.8}}, 1.0),
        ({"f-score": {"to": "cat sat", "threshold": 0.81}}, 0.0),
        ({"not-f-score": "cat sat"}, 1 - 0.8),
    ],
)
def test_word_overlap_is_as_defined(declared, value):
    assert measured(declared, model_output="the cat sat").value == pytest.approx(value)


@pytest.mark.parametrize(
    ("declared", "output", "value"),
    [
        ({"f-score": "🙂"}, "🙂 ", 1.0), ({"f-score": "🙂"}, "😡", 0.0), ({"f-score": "🙂"}, "yes", 0.0),
        ({"rouge-n": {"to": "Paris", "n": 2}}, "paris", 1.0), ({"rouge-n": {"to": "Paris", "n": 2}}, "London", 0.0),
        ({"not-f-score": "—"}, "—", 0.0),
    ],
)  # fmt: skip
def test_texts_too_short_for_words_or_n_grams_are_alike_where_they_are_equal(declared, output, value):
    assert measured(declared, model_output=output).value == value


ABD = {"model_output": "a b d"}


@pytest.mark.parametrize(
    ("declared", "about", "value", "stated"),
    [
        ({"rouge-n": {"to": "a b c", "threshold": 0.9}}, ABD, 0.0, "0.667, at least 0.9 is asked for"),
        ({"rouge-n": {"to": "a b c", "threshold": 0.66667}}, ABD, 0.0, "0.666667, at least 0.66667 is asked for"),
        ({"rouge-n": {"to": "a b c", "threshold": 2 / 3}}, ABD, 1.0, "0.667, at least 0.666667 is asked for"),
        ({"latency": "3s"}, {"latency_e2e_ms": 3000.4}, 0.0, "3000.4 ms, at most 3000 ms"),
        ({"latency": "3s"}, {"latency_e2e_ms": 2999.7}, 1.0, "3000 ms, at most 3000 ms"),
        ({"latency": "1.5ms"}, {"latency_e2e_ms": 1.75}, 0.0, "2 ms, at most 1.5 ms"),
        ({"cost": 0.1}, {"cost_usd": 0.10000001}, 0.0, "$0.10000001, at most $0.1"),
        ({"cost": 0.1}, {"cost_usd": 0.1}, 1.0, "$0.1, at most $0.1"),
    ],
)  # fmt: skip
def test_a_reason_shows_which_side_of_its_bound_a_value_is_on(declared, about, value, stated):
    found = measured(declared, **about)
    assert (found.value, stated in found.reason) == (value, True), found.reason


def test_measures_of_libraries_are_theirs():
    distance = pytest.importorskip("rapidfuzz.distance").Levenshtein
    sacrebleu = pytest.importorskip("sacrebleu")
    found, wanted = "the cat sat on the mat", "a cat sat on the mat today"
    reported = {name: measured({name: wanted}, model_output=found).value for name in ("levenshtein", "bleu", "chrf")}
    assert reported["levenshtein"] == pytest.approx(1 - distance.distance(found, wanted) / len(wanted))
    assert reported["bleu"] == pytest.approx(sacrebleu.sentence_bleu(found, [wanted]).score / 100)
    assert reported["chrf"] == pytest.approx(sacrebleu.sentence_chrf(found, [wanted]).score / 100)


@pytest.mark.parametrize(
    ("declared", "output", "value"),
    [
        ({"f-score": "今天天气不好"}, "今天天气很好", 5 / 6), ({"f-score": "A17は三つです"}, "A17は四つです", 5 / 6),
        ({"rouge-n": {"to": "今天天气不好", "n": 2}}, "今天天气很好", 3 / 5),
        ({"rouge-n": "ราคา 20 บาท"}, "ราคา 30 บาท", 7 / 8),
        ({"f-score": "今天"}, "明年", 0.0), ({"f-score": "ﾃｽﾄ"}, "テスト", 1.0),
        ({"f-score": "か\u3099"}, "が", 1.0), ({"rouge-n": "か\u3099"}, "が", 1.0),
    ],
)  # fmt: skip
def test_texts_without_spaces_share_characters(declared, output, value):
    assert measured(declared, model_output=output).value == pytest.approx(value)


def test_bleu_of_chinese_is_that_of_its_characters():
    bleu = pytest.importorskip("sacrebleu.metrics").BLEU(effective_order=True, tokenize="zh")
    found, wanted = "今天天气很好，我们去公园。", "今天天气不好，我们不去公园。"
    value = measured({"bleu": wanted}, model_output=found).value
    assert value == pytest.approx(bleu.sentence_score(found, [wanted]).score / 100) != 0


def test_likeness_asks_for_a_cosine_and_waits_for_it():
    steps = measured({"similar": {"threshold": 0.8}}, model_output="a", expected_outcome="b")
    requested = []

    def answer(question):
        requested.append(question)
        return Answer(value=(0.85,), method=Method.EMBEDDING)

    assert run({"m": steps}, answer).results["m"].value == 1.0
    assert requested == [SentenceSimilarity((("a", "b"),))]
    steps = measured("similar", model_output="a", expected_outcome="b")
    assert run({"m": steps}, lambda _: NoAnswer("no embeddings")).results["m"] == Unavailable("no embeddings")


CALLS = (ToolCall(name="lookup", arguments={"id": 7}), ToolCall(name="refund", arguments={"id": "x"}, error="no"))


@pytest.mark.parametrize(
    ("declared", "about", "value"),
    [
        ({"latency": "3s"}, {"latency_e2e_ms": 3000.0}, 1.0),
        ({"latency": "800ms"}, {"latency_e2e_ms": 801.0}, 0.0),
        ({"latency": "1s"}, {}, Unavailable),
        ({"cost": 0.01}, {"cost_usd": 0.02}, 0.0),
        ({"cost": 0.01}, {}, Unavailable),
        ({"tokens": 100}, {"input_tokens": 60, "output_tokens": 41}, 0.0),
        ({"tokens": {"output": 50}}, {"input_tokens": 60, "output_tokens": 41}, 1.0),
        ({"tokens": 1}, {}, Unavailable),
        ({"tool-called": "lookup"}, {"tools_used": CALLS}, 1.0),
        ({"tool-called": ["lookup", "close"]}, {"tools_used": CALLS}, 0.0),
        ({"not-tool-called": "refund"}, {"tools_used": CALLS}, 0.0),
        ({"tool-called": "close"}, {"tools_used": CALLS, "complete": False}, Unavailable),
        ({"tool-called": "close"}, {}, Unavailable),
        ({"tool-call-f1": ["lookup", "close"]}, {"tools_used": CALLS}, 0.5),
        ({"tool-sequence": ["lookup", "refund"]}, {"tools_used": CALLS}, 1.0),
        ({"tool-sequence": ["refund", "lookup"]}, {"tools_used": CALLS}, 0.0),
        ({"tool-sequence": {"order": ["lookup"], "exact": True}}, {"tools_used": CALLS}, 0.0),
        ({"tool-sequence": ["refund"]}, {"tools_used": CALLS}, 1.0),
        ({"tool-args": {"lookup": {"required": ["id"]}}}, {"tools_used": CALLS}, 1.0),
        ({"tool-args": {"lookup": {}, "refund": {"properties": {"id": {"type": "null"}}}}}, {"tools_used": CALLS}, 0.5),
        ({"tool-args": {"close": {}}}, {"tools_used": CALLS}, NotApplicable),
        ({"max-tool-errors": 0}, {"tools_used": CALLS}, 0.0),
        ({"max-tool-errors": 1}, {"tools_used": CALLS}, 1.0),
        ({"max-steps": 1}, {"tools_used": CALLS}, 0.0),
        ({"max-steps": 2}, {"tools_used": CALLS, "complete": False}, Unavailable),
        ({"max-steps": 2}, {}, Unavailable),
        ({"finish-reason": "stop"}, {}, Unavailable),
    ],
)  # fmt: skip
def test_a_check_of_the_whole_case(declared, about, value):
    found = measured(declared, **about)
    assert isinstance(found, value) if isinstance(value, type) else found.value == value


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ('{"id": 1}', 1.0), ('{"id": "A"}', 0.5), ({"id": "A"}, 0.5), ([1], 0.5),
        (None, Unavailable), ('{"id": 1', Unavailable),
    ],
)  # fmt: skip
def test_arguments_are_those_that_their_json_states_and_unknown_ones_break_no_schema(arguments, value):
    schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
    calls = (ToolCall(name="pay", arguments={"id": 1}), ToolCall(name="pay", arguments=arguments))
    found = measured({"tool-args": {"pay": schema}}, tools_used=calls)
    assert isinstance(found, value) if isinstance(value, type) else found.value == value


@pytest.mark.parametrize(
    ("schema", "arguments", "value"),
    [
        ({"type": "string"}, '{"match": "A-1"}', 1.0), ({"type": "string"}, {"match": "A-1"}, 0.0),
        ({"type": "string", "pattern": "^SELECT "}, "DROP TABLE orders", 0.0), ({"pattern": "^SELECT "}, "DROP", 0.0),
        ({"enum": ["open", "closed"]}, "lost", 0.0), ({"type": "string"}, None, Unavailable),
        ({"$ref": "#/$defs/id", "$defs": {"id": {"required": ["id"]}}}, '{"order": 1}', 0.0),
    ],
)  # fmt: skip
def test_the_arguments_of_a_tool_that_takes_a_text_are_that_text(schema, arguments, value):
    found = measured({"tool-args": {"ask": schema}}, tools_used=(ToolCall(name="ask", arguments=arguments),))
    assert isinstance(found, value) if isinstance(value, type) else found.value == value


@pytest.mark.parametrize(
    ("on", "about", "value"),
    [
        ("input", {"input": "x marks"}, 1.0),
        ("context", {"context": ("a", "x")}, 1.0),
        ("context", {"context": ()}, NotApplicable),
        ("context", {}, Unavailable),
        ("metadata.user.plan", {"metadata": {"user": {"plan": "x"}}}, 1.0),
        ("metadata.user.plan", {"metadata": {"user.plan": "x"}}, 1.0),
        ("metadata.plan", {}, Unavailable),
        ("output.items.1.sku", {"model_output": '{"items": [{}, {"sku": "x"}]}'}, 1.0),
        ("output.items.7", {"model_output": '{"items": []}'}, Unavailable),
        ("tools", {"tools_used": (ToolCall(name="fax"),)}, 1.0),
        ("turns", {"transcript": (Utterance("hello", "user"), Utterance("fix it", "user"))}, 1.0),
        ("spans.output", {}, Unavailable),
        ("output", {}, Unavailable),
    ],
)
def test_on_says_what_is_looked_at(on, about, value):
    found = measured({"contains": "x"}, on, **about)
    assert isinstance(found, value) if isinstance(value, type) else found.value == value


def test_the_opposite_of_a_check_of_several_values_holds_where_none_meets_it():
    assert measured({"not-contains": "x"}, "context", context=("a", "b")).value == 1.0
    assert measured({"not-contains": "x"}, "context", context=("a", "x")).value == 0.0


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_has_a_card_and_is_undefined_without_what_it_looks_at(name):
    check = CHECKS[name]
    assert all((check.title, check.holds, check.argument, check.undefined, check.source))
    argument = {
        "word-count": 1, "length": {"min": 1}, "latency": "1s", "cost": 1, "tokens": 1, "max-steps": 1,
        "max-tool-errors": 1, "tool-args": {"x": {}}, "readability": 50, "language": "en", "is-json": True,
        "contains-json": True, "is-xml": True, "is-sql": True, "pii": True, "refusal": True,
    }.get(name, "x")  # fmt: skip
    _skip_without({name: argument})
    found = measured({name: argument})
    assert isinstance(found, Unavailable)


@pytest.mark.parametrize(
    ("declared", "stated"),
    [
        ({"contain": "x"}, "did you mean contains"),
        ({"contains": ""}, "not empty"),
        ({"contains": "x", "regex": "y"}, "one check"),
        ({"regex": "(a"}, "RE2"),
        ({"regex": "(?=a)b"}, "RE2"),
        ({"regex": "((a{100}){100}){100}"}, "RE2"),
        ({"is-json": {"schema": {"type": "no-type"}}}, "JSON Schema"),
        ({"is-json": {"schema": {"$ref": "http://169.254.169.254/x"}}}, "fetched"),
        ({"is-json": {"scheme": {}}}, "valid here: schema"),
        ({"latency": 3}, "unit"),
        ({"word-count": {"min": 3, "max": 1}}, "min is above max"),
        ({"pii": ["shoe-size"]}, "valid here"),
        ({"refusal": "yes"}, "takes no argument"),
        ({"rouge-n": {"n": 0}}, "at least 1"),
        ({"levenshtein": {"to": "x", "at_most": 1, "threshold": 0.5}}, "excludes threshold"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_remedy(declared, stated):
    with pytest.raises(CheckError, match=stated):
        compile_check(declared)


def test_no_reason_repeats_what_was_found():
    secret = "ann@example.com 4111111111111111"
    for declared in ("pii", {"not-pii": True}, {"contains": "zzz"}, {"is-json": {"schema": SCHEMA}}):
        found = measured(declared, model_output=secret)
        assert isinstance(found, Scored)
        assert "ann@" not in found.reason
        assert "4111" not in found.reason


HOSTILE = [
    ({"regex": "(a?){50}a{50}b"}, "a" * 100_000),
    ({"regex": "(.*a){20}"}, "ab" * 50_000),
    ({"is-json": True}, "[" * 200_000),
    ({"is-json": True}, " " * 200_000 + "x"),
    ({"starts-with": "x"}, " " * 200_000),
    ({"is-sql": True}, "(" * 10_000),
    ({"is-sql": True}, "SELECT " + "CASE WHEN " * 1500),
    ({"refusal": True}, "I can't " + "a " * 200_000),
    ({"contains-json": True}, "[{" * 100_000),
    ({"is-json": {"schema": {"type": "string", "pattern": "(a+)+$"}}}, '"' + "a" * 50_000 + 'b"'),
    ({"is-xml": True}, "<a>" * 100_000),
    ({"pii": True}, "1 " * 200_000),
    ({"pii": True}, "a@" * 200_000),
    ({"refusal": True}, "I " * 200_000),
    ({"readability": 50}, "a." * 100_000),
    ({"rouge-n": "b " * 5_000}, "a " * 9_000),
]


@pytest.mark.parametrize(("declared", "output"), HOSTILE)
def test_no_text_keeps_a_check_busy(declared, output):
    compiled = compile_check(declared)
    case = Case(case_id="c", model_output=output)
    before = time.thread_time()
    compiled.measure(case)
    assert time.thread_time() - before < 5.0, "of this thread alone: the square of these takes minutes"


@pytest.mark.parametrize(
    ("declared", "output", "value", "reason"),
    [
        ({"not-icontains-any": ["guarantee", "Promise"]}, "I PROMISE it", 0.0, "found: promise"),
        ({"not-contains-any": ["guarantee", "promise"]}, "no promise, no guarantee", 0.0, "found: guarantee"),
        ({"not-icontains-any": ["guarantee"]}, "perhaps", 1.0, ""),
        ({"contains-all": ["a1", "a2"]}, "a1 alone", 0.0, "not found: a2"),
        ({"not-icontains-all": ["A", "B"]}, "a and b", 0.0, "not-icontains-all does not hold"),
    ],
)
def test_a_check_of_several_words_names_the_one_that_decides(declared, output, value, reason) -> None:
    found = measured(declared, model_output=output)
    assert (found.value, found.reason) == (value, reason)
