"""The sections of the configuration that name a Langfuse.

Also the sections on people's labels in Langfuse, and on the queue of traces for people to label.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, FiniteFloat, SecretStr, ValidationInfo, model_validator

from sidejudge.integrations.langfuse.client import Access
from sidejudge.integrations.langfuse.declared_scores import ScoreSelection
from sidejudge.scoring.verdict.rubric import all_criteria

from .section import GIVEN_AS_LIST, RubricName, Section
from .units import PositiveDuration, parse_duration


class PeopleScore(Section):
    """A score that people give under its own name, with its rubric and metric."""

    name: str = Field(min_length=1)
    """name of the score in Langfuse"""
    rubric: RubricName
    """rubric whose verdicts it is compared with"""
    metric: str | None = None
    """metric that it is about (default: whether the case passes)"""
    passes: Annotated[tuple[str, ...], GIVEN_AS_LIST] = ()
    """its categories that mean a pass; the others mean a failure. A truth value and 0 or 1 need none"""
    pass_at: FiniteFloat | None = None
    """its least number that means a pass (4 of 1 to 5); less means a failure"""

    @model_validator(mode="after")
    def _is_about_something(self, info: ValidationInfo) -> PeopleScore:
        from sidejudge.scoring.rubrics import RUBRICS  # noqa: PLC0415  # only where a score is named

        rubric = RUBRICS.get(self.rubric) or (info.context or {}).get("declared", {}).get(self.rubric)
        known = [criterion.metric.id for criterion in all_criteria(rubric)] if rubric is not None else []
        if rubric is not None and self.metric is not None and self.metric not in known:
            raise ValueError(f"metric: {self.rubric} has no metric {self.metric!r}\x00{','.join(known)}")
        for field, stated in (("passes", self.passes), ("pass_at", self.pass_at is not None)):
            if self.metric is not None and stated:
                raise ValueError(
                    f"{field}: a score of a metric passes nothing, it is compared with the metric; leave it out"
                )
        if self.passes and self.pass_at is not None:
            raise ValueError("pass_at: passes names categories, and a score is one or the other; leave one of them out")
        return self


class AnnotationsSection(Section):
    """Labels of people in Langfuse are read, and compared with our verdicts on the same traces.

    Without an entry in `scores`, scores with the names of ours (`qa_pass`) are compared.
    """

    every: PositiveDuration = parse_duration("5m")
    """how often they are read"""
    scores: Annotated[tuple[PeopleScore, ...], GIVEN_AS_LIST] = ()
    """scores that people give under other names"""
    corrections_fail: Annotated[tuple[RubricName, ...], GIVEN_AS_LIST] = ()
    """rubrics for which an answer that a person corrected counts as one that they failed. People correct wrong answers,
    so such labels alone are no random sample; corrections are counted separately either way
    """


class AnnotationQueueSection(Section):
    """Verdicts in doubt are put into a queue for people to label; these labels do not count for agreement.

    A verdict is in doubt where judges of a panel disagree, where an answer contradicts plain rules, and where a
    composite that was not decided exactly lies within 5 % of its scale from the pass mark.
    """

    name: str = Field(min_length=1)
    """name of the annotation queue; it must exist, and bear it alone"""
    per_hour: int = Field(default=10, ge=1, le=1000)
    """most traces an hour; further ones in doubt are left out"""


class FailureDatasetSection(Section):
    """Traces that fail are written into a dataset, each once, with its input, the answer and why it failed.

    An item is linked to its trace. People add the right outcome, unless the trace states it. Matches of
    `evaluators.judge.redact` and `redact_patterns` are replaced in it, and keys always are.
    """

    name: str = Field(min_length=1)
    """name of the dataset"""
    per_day: int = Field(default=20, ge=1, le=1000)
    """most traces in 24 hours; further failing ones are left out"""
    rubrics: Annotated[tuple[RubricName, ...], GIVEN_AS_LIST] = ()
    """rubrics whose failures are written (default: all)"""
    create: bool = True
    """make the dataset where there is none; `false`: a missing one is reported and stops this"""


def _is_web_address(url: str) -> str:
    if not _is_usable(url):
        raise ValueError("must be an address such as https://cloud.langfuse.com, without keys, query or fragment")
    return url.rstrip("/").removesuffix("/api/public")


def _is_usable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return named and parts.username is None and not parts.query and not parts.fragment and url == url.strip()


WebAddress: TypeAlias = Annotated[str, AfterValidator(_is_web_address)]


class LangfuseProject(Section):
    """A project of a Langfuse, version 3 or newer; its features are detected."""

    base_url: WebAddress
    """address of Langfuse, such as https://cloud.langfuse.com"""
    public_key: SecretStr
    """public key of the project, as `${NAME}`"""
    secret_key: SecretStr
    """secret key of the project, as `${NAME}`"""
    requests_per_minute: int = Field(default=600, ge=1)
    """requests a minute, reading and writing together; a limit that Langfuse names is kept to besides"""
    timeout: PositiveDuration = parse_duration("20s")
    """of one request"""

    @property
    def access(self) -> Access:
        """The same as the adapter takes it."""
        return Access(
            base_url=self.base_url,
            public_key=self.public_key.get_secret_value(),
            secret_key=self.secret_key.get_secret_value(),
            requests_per_minute=self.requests_per_minute,
            timeout_s=self.timeout.ns / 1e9,
        )


class LangfuseSource(LangfuseProject):
    """Traces read back from Langfuse, for applications that you cannot change.

    With `sinks.langfuse` at the same project both share one budget of requests, the smaller one that is given.
    """

    poll: PositiveDuration = parse_duration("15s")
    """how often it is read"""
    settle: PositiveDuration = parse_duration("10s")
    """a trace whose root has ended is read when nothing was added to it for this long (without a root:
    `assembly.deadline`)"""
    look_back: PositiveDuration = parse_duration("30m")
    """how far back start times are listed again for late traces: the longest trace and the longest delay together. The
    first start begins this long before
    """


class LangfuseSink(LangfuseProject):
    """Scores of every verdict, written to their traces.

    A score refers to its trace by the trace's id: the judged traces have to be in this project as well.
    """

    scores: ScoreSelection = "summary"
    """scores of a verdict that are written, each for every verdict with a value for it. `summary`: `<rubric>_pass`,
    `<rubric>_score` and the metrics that it is made of, where that makes four at most; of three that weigh the same
    (`quality`) these and `<rubric>_pass`. `all`: every metric and `<rubric>_state`; `failing` is an earlier name of it.
    `sidejudge langfuse prune` deletes what an earlier setting left there
    """
    web_url: WebAddress | None = None
    """address of Langfuse in links for people, if it is another than `base_url`"""
    link_base: WebAddress | None = None
    """address of this monitor's pages for people; every score of a trace then links to its explanation there, in the
    last line of its comment and as `explanation` of its metadata"""
    annotations: AnnotationsSection | None = AnnotationsSection()
    """labels of people there, compared with our verdicts; `null`: they are not read"""
    annotation_queue: AnnotationQueueSection | None = None
    """queue verdicts in doubt for people to label; without it none is queued"""
    failure_dataset: FailureDatasetSection | None = None
    """write traces that fail into a dataset; without it none is written"""
    reevaluate_within: PositiveDuration = parse_duration("7d")
    """how long after a verdict a score of others there that comes, changes or goes still makes a revision, of rubrics
    that ask for it (`reported`). Later than `assembly.late` the trace is read from Langfuse once more. Where a rubric
    asks, verdicts and details are kept for as long, if that is longer than `store.retention`"""
