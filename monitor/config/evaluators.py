"""The sections of the configuration on the evaluators that answer the questions of metrics."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from sidejudge.scoring.evaluators.embedding import OF_THE_SEED, SAME_ENTITY, SAME_STATEMENT, CosineThresholds

from .section import (
    DEFAULT_JUDGE,
    GIVEN_AS_LIST,
    NAMED_ONCE,
    JudgeName,
    Patterns,
    PersonalData,
    Section,
    Share,
    Url,
)
from .units import PositiveDuration, SizeField, parse_duration

EvaluatorName: TypeAlias = Literal["lexical", "embedding", "judge"]
Priority: TypeAlias = Literal["high", "normal", "low"]
"""Which traces are judged first when the judge's budget does not suffice for all."""


def _names_provider(model: str) -> str:
    provider, _, name = model.partition("/")
    if not provider or not name or model != model.strip():
        raise ValueError(f"must name a provider and a model, such as openai/gpt-4.1-mini-2025-04-14, got {model!r}")
    return model


ModelName: TypeAlias = Annotated[str, AfterValidator(_names_provider)]
Dollars: TypeAlias = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Budget: TypeAlias = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class LexicalSection(Section):
    """Answers by quotes, numbers, names and token overlap. Always there, nothing to set."""


class CosineThresholdsSection(Section):
    """Where the model's cosines mean *the same*, as `sidejudge calibrate --embedding` fits them."""

    entity: float = Field(default=SAME_ENTITY, gt=-1.0, le=1.0)
    """cosine from which two names are the same"""
    statement: float = Field(default=SAME_STATEMENT, gt=-1.0, le=1.0)
    """cosine from which two facts or highlights are the same"""


class EmbeddingSection(Section):
    """Answers by similarity of meaning, in this process (extra `embeddings`) or at an endpoint (extra `judge`)."""

    model: str = Field(default="sentence-transformers/LaBSE", min_length=1)
    """name or path of a sentence-transformers model; `muse`: a multilingual sentence encoder without PyTorch (extra
    `muse`); with `remote` provider and model"""
    device: str | None = Field(default=None, min_length=1)
    """`cpu`, `cuda`, `mps` …; without it: what the machine has"""
    batch_size: int = Field(default=32, ge=1)
    """texts that are embedded together"""
    cache_entries: int = Field(default=20_000, ge=0)
    """vectors that are kept in the store (3 kB each for LaBSE); 0 keeps none"""
    thresholds: CosineThresholdsSection | None = None
    """the model's own thresholds; without them 0.80, which is the seeds' (part of versions)"""
    remote: bool = False
    """ask an endpoint instead of loading the model into this process"""
    api_base: Url | None = Field(default=None, min_length=1)
    """address of the endpoint, if not the provider's own"""
    api_key: SecretStr | None = None
    """key of the endpoint, as `${NAME}`; without it the provider's own variable is read"""
    max_wait: PositiveDuration = parse_duration("1h")
    """how long a trace waits for an endpoint that is out of reach; then the metrics that need it have failed"""
    max_waiting: int = Field(default=10_000, ge=1)
    """traces that wait for the endpoint; beyond it the oldest waits no longer"""

    @property
    def cosines(self) -> CosineThresholds:
        """The thresholds in force."""
        own = self.thresholds
        return OF_THE_SEED if own is None else CosineThresholds(entity=own.entity, statement=own.statement)

    @property
    def in_version(self) -> str:
        """What rubrics that embeddings answer carry in their version: the model, and thresholds of its own."""
        if self.thresholds is None:
            return self.model
        return (
            f"{self.model}, the same from {self.cosines.entity:g} (names) and {self.cosines.statement:g} (statements)"
        )

    @model_validator(mode="after")
    def _fits(self) -> EmbeddingSection:
        if self.remote:
            _names_provider(self.model)
        elif self.api_base is not None or self.api_key is not None:
            raise ValueError("api_base and api_key are for a remote endpoint; set remote: true, or take them out")
        return self


class PriceSection(Section):
    """The price of `model`, where the list price is not the actual one, or unknown.

    Others of a panel have their list prices. Without a price no budget can be kept, and under one nothing is judged.
    """

    input_usd_per_million: Dollars
    """US dollars for a million tokens of prompts"""
    output_usd_per_million: Dollars
    """US dollars for a million tokens of answers"""


class JudgeModelSection(Section):
    """A language model that judges, or a panel of them, and how it is asked."""

    model: ModelName
    """the judge, as provider/model; use a dated version, because a floating name drifts"""
    api_base: Url | None = Field(default=None, min_length=1)
    """address of the endpoint, if not the provider's own"""
    api_key: SecretStr | None = None
    """key of the provider, as `${NAME}`; without it the provider's own variable is read"""
    panel: Annotated[tuple[ModelName, ...], GIVEN_AS_LIST] = ()
    """further judges that are asked the same questions; each costs as much again"""
    panel_rule: Literal["majority", "median"] = "majority"
    """`majority`: the answer of more than half, of values on a scale and of fractions the middle one; `median`: the
    middle one of whole grades too, a yes or no by majority; a panel that is split has no answer"""
    timeout: PositiveDuration = parse_duration("60s")
    """of one attempt"""
    retries: int = Field(default=3, ge=0, le=20)
    """further attempts when the provider fails in passing"""
    concurrency: int = Field(default=8, ge=1, le=1000)
    """traces that are judged at a time"""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """limit of the provider"""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    """limit of the provider, prompts and answers"""
    temperature: float = Field(default=0.0, ge=0.0, le=2.0)
    """sampling temperature of the model"""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    """nucleus of the model's sampling"""
    max_tokens: int = Field(default=1024, ge=64)
    """longest answer to one question, tokens"""
    seed: int | None = 42
    """seed of the model's sampling, where the provider takes one"""
    structured: Literal["auto", "always", "never"] = "auto"
    """whether the schema of the answer is sent too, for the provider to enforce: `auto`: where the model is known to
    take one; `always`: also to an unknown model, such as a local server. A server that refuses it is asked without;
    answers are read equally strictly either way
    """
    context_tokens: int | None = Field(default=None, ge=1024)
    """tokens that fit into one call; without it: the model's known limit, else 32000"""
    outline: bool = False
    """judge a run that does not fit into one call by its outline, with the steps that matter most in full, in questions
    on a conversation, a transcript or tool calls; the reason says so, with the share that was shown. Without it such
    questions have no answer. The rubric `trajectory` does not need it
    """
    price: PriceSection | None = None
    """what it costs; without it: the list price, where it is known"""


class NamedJudgeSection(JudgeModelSection):
    """A further judge, which `rubrics.<name>.judge` names. Missing keys are as in `evaluators.judge`.

    `api_base` and `api_key` are taken from there only for a model of the same provider at the same address; `panel` and
    `price` never are. The budget is one for all judges.
    """

    def beside(self, main: JudgeSection) -> JudgeSection:
        """The whole section of this judge, filled up from that of the default one."""
        same = self.model.partition("/")[0] == main.model.partition("/")[0]
        own = {name: getattr(self, name) for name in self.model_fields_set}
        elsewhere = not same or own.get("api_base", main.api_base) != main.api_base
        left: dict[str, object] = {"panel": (), "price": main.price if self.model == main.model else None}
        if elsewhere:
            left |= {"api_base": None, "api_key": None}
        return main.model_copy(update={**left, **own})


class JudgeSection(JudgeModelSection):
    """Answers by a language model (extra `judge`). The traces' contents that a question shows are sent to it."""

    budget_usd_per_hour: Budget | None = None
    """US dollars an hour; near it a smaller share of the traces is judged"""
    budget_usd_per_day: Budget | None = None
    """the same for a day"""
    cache_entries: int = Field(default=100_000, ge=0)
    """answers that are kept in the store; 0 keeps none"""
    redact: PersonalData = ()
    """kinds of personal data that are replaced by their name (`[email]`) in everything that is sent to a judge,
    irreversibly; answers to a redacted text are flagged `redacted`
    """
    redact_patterns: Patterns = ()
    """patterns in RE2's syntax; matches are replaced by `[redacted]`"""
    keep_calls_bytes: SizeField | None = None
    """how many bytes of calls (prompt, raw answer, parse) stay in the store, compressed, for `sidejudge explain
    --judge`; the oldest go first. Without it none: they hold contents of traces"""
    keep_calls: PositiveDuration = parse_duration("24h")
    """how long these calls stay"""
    max_wait: PositiveDuration = parse_duration("1h")
    """how long a trace waits for a judge that is out of reach; then its verdict is incomplete"""
    max_waiting: int = Field(default=10_000, ge=1)
    """traces that wait for the judge; beyond it the oldest waits no longer"""


class CascadeSection(Section):
    """When a stronger judge is asked, for rubrics and metrics that name several judges (`judge: [default, strong]`).

    It is asked where the previous judge is in doubt: it gave no answer, contradicts plain rules, its panel differs, a
    value is near the mark, or it answers differently in another order. Pass ratios are corrected by its findings on the
    drawn verdicts.
    """

    rate: Share = 0.05
    """share of the verdicts without doubt that the strongest judge sees, drawn by trace id"""
    margin: Share = 0.03
    """share of the scale within which a composite is near its pass mark, or a value near its blocker"""
    permuted: bool = True
    """ask a judge twice, the second time in another order, and doubt it where that matters"""
    logprobs: bool = False
    """ask for the probabilities of the answers' tokens, and doubt a yes, a no or a category below `sure_from`; where
    the endpoint gives them the judge is not asked twice. An endpoint that refuses is asked without
    """
    sure_from: Share = 0.9
    """with `logprobs`: probability of an answer from which on it is in no doubt"""
    agreement: float | None = Field(default=None, gt=0.5, lt=1.0)
    """required share of verdicts that equal the strongest judge's: `margin` and `sure_from` are learned from the
    verdicts that it saw, to reach this at the lowest cost; needs a `rate`, and 30 drawn verdicts of a rubric
    """
    seed: int = 0
    """another seed draws other traces"""

    @model_validator(mode="after")
    def _can_learn(self) -> CascadeSection:
        if self.agreement is not None and self.rate == 0.0:
            raise ValueError("agreement is learned from the verdicts that are drawn, and rate is 0; raise rate")
        return self

    def draws(self, identity: str) -> bool:
        """Whether the trace is drawn; the same for all its rubrics, in each process, at any time."""
        digest = hashlib.sha256(f"cascade\0{self.seed}\0{identity}".encode()).digest()
        return int.from_bytes(digest[:7]) < self.rate * (1 << 56)


class DriftSection(Section):
    """A watch over the judge: a fixed sample of past prompts is sent again every day. It keeps these prompts."""

    prompts: int = Field(default=30, ge=10, le=200)
    """prompts in the sample; each is sent once a day"""
    keep: PositiveDuration = parse_duration("90d")
    """how long a prompt, with the contents that it shows, is kept"""
    error: float = Field(default=0.05, gt=0.0, lt=1.0)
    """chance of a false alarm in 30 days, over all metrics together"""


class EvaluatorsSection(Section):
    """The evaluators that answer the questions of metrics, and their order. The first that answers wins."""

    order: Annotated[tuple[EvaluatorName, ...], GIVEN_AS_LIST, NAMED_ONCE] = ("lexical", "embedding", "judge")
    """order of the evaluators; one that is not configured is passed over"""
    lexical: LexicalSection = LexicalSection()
    embedding: EmbeddingSection | None = None
    """no embeddings unless this section is there"""
    judge: JudgeSection | None = None
    """no judge unless this section is there"""
    judges: Mapping[JudgeName, NamedJudgeSection] = Field(default_factory=dict)
    """further judges by name, for rubrics and metrics that name them (`rubrics.<name>.judge`)"""
    cascade: CascadeSection = CascadeSection()
    drift: DriftSection | None = None
    """no watch over the judge's drift unless this section is there; it needs `judge`"""
    max_case_cpu: PositiveDuration = parse_duration("30s")
    """CPU time that the metrics of one case may take, all rubrics together; once it is spent its other metrics have
    failed"""

    @model_validator(mode="after")
    def _asks_whom_it_configures(self) -> EvaluatorsSection:
        for name, section in (("embedding", self.embedding), ("judge", self.judge)):
            if section is not None and name not in self.order:
                raise ValueError(f"order does not name {name!r}, which is configured; name it, or take the section out")
        if self.judges and self.judge is None:
            raise ValueError("judges are named beside a default one: add the section judge")
        if self.drift is not None and self.judge is None:
            raise ValueError("drift watches a judge: add the section judge, or take drift out")
        return self

    @field_validator("judges")
    @classmethod
    def _is_not_the_default(cls, judges: Mapping[str, NamedJudgeSection]) -> Mapping[str, NamedJudgeSection]:
        if DEFAULT_JUDGE in judges:
            raise ValueError(f"{DEFAULT_JUDGE!r} is the judge of evaluators.judge; give this one another name")
        return judges
