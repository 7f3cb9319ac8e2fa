"""benchmarks: eleven general quality checks, each passed or not (seed 000, Standard Benchmarks; rubrics §7).

A metric's value is the seed's binary; ``details.raw`` keeps the number that was compared with the threshold.
"""

from __future__ import annotations

from collections.abc import Callable

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.context_use import contextual_precision, contextual_recall, contextual_relevancy
from sidejudge.scoring.metrics.correctness import answer_correctness, answer_relevancy, exact_match
from sidejudge.scoring.metrics.grounding import faithfulness, hallucination_rate
from sidejudge.scoring.metrics.judged_benchmarks import argument_correctness, instruction_following
from sidejudge.scoring.metrics.metric import Metric, pass_or_fail
from sidejudge.scoring.questions.question import Steps
from sidejudge.scoring.result.reason import Reason, decided_number, own
from sidejudge.scoring.result.result import Bands, Failed, Method, Scored, Unavailable
from sidejudge.scoring.verdict.consistency import consistency
from sidejudge.scoring.verdict.rubric import Criterion, Rubric

from . import entity, qa, text, translation

SOURCE = "seed 000, Standard Benchmarks"
PASS_MARK = 0.80
"""The seed's recommended minimum."""

_NO_REFERENCE = "there is no expected outcome"
_CHECKED = (Method.EXACT, Method.LEXICAL, Method.JUDGE)
_EMBEDDED = (Method.EXACT, Method.EMBEDDING)
_JUDGED = (Method.JUDGE,)


def passes_from(bound: float) -> Bands:
    """Passed from the bound up."""
    return Bands((("pass", bound),), "fail")


def passes_up_to(bound: float) -> Bands:
    """Passed up to the bound."""
    return Bands((("pass", bound),), "fail", higher_is_better=False)


def binary(raw: Callable[[Case], Steps], threshold: Bands) -> Callable[[Case], Steps]:
    """The seed's binary of a raw measure: 1 when it is at the threshold or on its better side."""

    def measure(case: Case) -> Steps:
        result = yield from raw(case)
        passes = _passes(threshold)
        sign = ">=" if threshold.higher_is_better else "<="
        if isinstance(result, Unavailable | Failed) and result.proven is not None:
            best = result.proven.at_most if threshold.higher_is_better else result.proven.at_least
            if best is not None and threshold.rating(best) == "fail":
                return Scored(
                    value=0.0,
                    method=result.proven.method,
                    reason=Reason(
                        "{best} at best, passes {sign} {bound:g}: {why}",
                        best=decided_number(best, passes, 3),
                        sign=own(sign),
                        bound=threshold.acceptable,
                        why=result.reason,
                    ),
                    details={"best": best, "threshold": threshold.acceptable},
                    judgements=result.proven.judgements,
                )
        if not isinstance(result, Scored):
            return result
        return Scored(
            value=float(passes(result.value)),
            method=result.method,
            reason=Reason(
                "{value}, passes {sign} {bound:g}: {why}",
                value=decided_number(result.value, passes, 3),
                sign=own(sign),
                bound=threshold.acceptable,
                why=result.reason,
            ),
            details={"raw": result.value, "threshold": threshold.acceptable, **result.details},
            judgements=result.judgements,
        )

    return measure


def _passes(threshold: Bands) -> Callable[[float], bool]:
    return lambda value: threshold.rating(value) == "pass"


def _metric(
    name: str,
    title: str,
    *,
    meaning: str,
    formula: str,
    raw: Callable[[Case], Steps],
    threshold: Bands,
    methods: tuple[Method, ...],
    undefined: str,
) -> Metric:
    sign = ">=" if threshold.higher_is_better else "<="
    return pass_or_fail(
        id=name,
        title=title,
        meaning=meaning,
        formula=f"1 if raw {sign} {threshold.acceptable:g}, else 0; raw = {formula}",
        source=f"{SOURCE}, {title}; rubrics §7",
        measure=binary(raw, threshold),
        methods=methods,
        undefined=undefined,
    )


def _exact_match(case: Case) -> Steps:
    yield from ()
    return exact_match(case)


METRICS = (
    _metric(
        "faithfulness",
        "Faithfulness",
        meaning="Whether the output states only what the transcript or the expected outcome supports.",
        formula="claims_supported / total_claims; 1 when nothing is claimed",
        raw=faithfulness,
        threshold=passes_from(0.90),
        methods=_CHECKED,
        undefined="there is neither transcript nor expected outcome, or no evaluator decides if a claim is supported",
    ),
    _metric(
        "hallucination_rate",
        "Hallucination Rate",
        meaning="Whether hardly any fact of the output stands neither in the transcript nor in the expected outcome.",
        formula="hallucinated_facts / total_facts, a ratio; 0 when nothing is stated",
        raw=hallucination_rate,
        threshold=passes_up_to(0.02),
        methods=_CHECKED,
        undefined="there is neither transcript nor expected outcome, or no evaluator decides whether a fact is made up",
    ),
    _metric(
        "answer_relevancy",
        "Answer Relevancy",
        meaning="Whether the output speaks of what was asked: the input, of a conversation the user's last message.",
        formula="cosine_similarity(embedding(output), embedding(question)), clamped to [0, 1]",
        raw=answer_relevancy,
        threshold=passes_from(0.85),
        methods=_EMBEDDED,
        undefined="the question is not known, or there are no embeddings",
    ),
    _metric(
        "answer_correctness",
        "Answer Correctness",
        meaning="Whether the output's facts and its meaning are the expected outcome's.",
        formula="0.50 × F1 over facts matched one to one (by embeddings at cosine >= 0.80 where figures agree) + "
        "0.50 × semantic similarity (cosine of embeddings)",
        raw=answer_correctness,
        threshold=passes_from(0.85),
        methods=(Method.EXACT, Method.EMBEDDING, Method.JUDGE),
        undefined="there is no expected outcome or no embeddings, or no evaluator decides if two facts are the same",
    ),
    _metric(
        "contextual_precision",
        "Contextual Precision",
        meaning="Whether the context that the output draws on (documents, else turns of the transcript) was needed.",
        formula="relevant_pieces_used / total_pieces_referenced",
        raw=contextual_precision,
        threshold=passes_from(0.85),
        methods=(Method.LEXICAL, Method.JUDGE),
        undefined=f"{_NO_REFERENCE} or no piece of context, or no evaluator decides which pieces are used",
    ),
    _metric(
        "contextual_recall",
        "Contextual Recall",
        meaning="Whether the output draws on the context (documents, else turns of the transcript) that was needed.",
        formula="relevant_pieces_used / total_relevant_in_input",
        raw=contextual_recall,
        threshold=passes_from(0.85),
        methods=(Method.LEXICAL, Method.JUDGE),
        undefined=f"{_NO_REFERENCE} or no piece of context, or no evaluator decides which pieces are needed",
    ),
    _metric(
        "contextual_relevancy",
        "Contextual Relevancy",
        meaning="Whether the output draws on the context that was needed and on no other.",
        formula="(Precision + Recall) / 2, of their raw values",
        raw=contextual_relevancy,
        threshold=passes_from(0.85),
        methods=(Method.LEXICAL, Method.JUDGE),
        undefined=f"{_NO_REFERENCE} or no piece of context, or no evaluator decides which pieces are used and needed",
    ),
    _metric(
        "argument_correctness",
        "Argument Correctness",
        meaning="Whether the output's reasoning is sound, beside that of the expected outcome.",
        formula="mean(step_scores); per step 1.0 = sound, 0.5 = partial, 0.0 = wrong; "
        "0 when only the expected outcome reasons",
        raw=argument_correctness,
        threshold=passes_from(0.85),
        methods=_JUDGED,
        undefined=f"{_NO_REFERENCE} or no judge; not applicable when neither side reasons",
    ),
    _metric(
        "instruction_following",
        "Instruction Following",
        meaning="Whether the output follows the instructions: those of config.instructions, else of the system prompt.",
        formula="instructions_followed / total_instructions",
        raw=instruction_following,
        threshold=passes_from(0.95),
        methods=_JUDGED,
        undefined="there are neither instructions nor a system prompt, or no judge; not applicable when none is given",
    ),
    _metric(
        "exact_match",
        "Exact Match",
        meaning="Whether closed-form fields (labels, scores, ids, texts of three words at most) are the reference's.",
        formula="exact_matches / total_predictions, over all such fields that either side has",
        raw=_exact_match,
        threshold=passes_from(0.90),
        methods=(Method.EXACT,),
        undefined=f"{_NO_REFERENCE}; not applicable when it has no closed-form field",
    ),
    _metric(
        "consistency",
        "Consistency / Robustness",
        meaning="Whether several runs on the same input (model_output and repeats) score alike against the expected "
        "outcome: by the rubric of the case's task, else by answer correctness.",
        formula="1 − std_dev(scores across N runs) / mean(scores), at least 0; standard deviation of the population; "
        "an invalid run scores 0; 1 when every run scores 0",
        raw=consistency(
            {rubric.id: rubric for rubric in (qa.RUBRIC, entity.RUBRIC, text.RUBRIC, translation.RUBRIC)},
            answer_correctness,
        ),
        threshold=passes_from(0.90),
        methods=(Method.EXACT, Method.LEXICAL, Method.EMBEDDING, Method.JUDGE),
        undefined=f"there are fewer than two runs, {_NO_REFERENCE}, or a run cannot be scored",
    ),
)
"""The eleven, in the seed's order."""

RUBRIC = Rubric(
    id="benchmarks",
    title="Standard Benchmarks",
    source=f"{SOURCE}; rubrics §7",
    formula="sum(binary scores) / 11 criteria",
    criteria=tuple(Criterion(metric=metric, weight=1 / len(METRICS)) for metric in METRICS),
    pass_mark=PASS_MARK,
)
