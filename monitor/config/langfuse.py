"""The sections of the configuration that name a Langfuse."""

from __future__ import annotations

from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from sidejudge.integrations.langfuse.client import Access
from sidejudge.integrations.langfuse.scores import ScoreSelection

from .annotations import AnnotationQueueSection, AnnotationsSection, FailureDatasetSection
from .section import Section
from .units import PositiveDuration, parse_duration


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
    """A project of a Langfuse, of any version from 3 on: what it can is found out by asking it."""

    base_url: WebAddress = Field(description="address of Langfuse, such as https://cloud.langfuse.com")
    public_key: SecretStr = Field(description="public key of the project, as `${NAME}`")
    secret_key: SecretStr = Field(description="secret key of the project, as `${NAME}`")
    requests_per_minute: int = Field(
        default=600,
        ge=1,
        description="requests a minute, reading and writing together; a limit that Langfuse names is kept to besides",
    )
    timeout: PositiveDuration = Field(default=parse_duration("20s"), description="of one request")

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
    """Traces read back from Langfuse, for applications that are to stay as they are.

    With `sinks.langfuse` at the same project both share one budget of requests, the smaller one that is given.
    """

    poll: PositiveDuration = Field(default=parse_duration("15s"), description="how often it is read")
    settle: PositiveDuration = Field(
        default=parse_duration("10s"),
        description="a trace whose root has ended is read when nothing was added to it for this long (without a root: "
        "`assembly.deadline`)",
    )
    look_back: PositiveDuration = Field(
        default=parse_duration("30m"),
        description="start times that are listed again for what comes late: the longest trace and the longest delay "
        "together. The first start begins this long before",
    )


class LangfuseSink(LangfuseProject):
    """Scores of every verdict, written to the traces that they are of.

    A score is put where its trace is by the trace's id: what is judged here has to go to this project as well.
    """

    scores: ScoreSelection = Field(
        default="summary",
        description="scores of a verdict that are written, each of every verdict that has a value for it. `summary`: "
        "`<rubric>_pass`, `<rubric>_score` and the metrics that it is made of, where that makes four at most; of three "
        "that weigh the same (`quality`) these and `<rubric>_pass`. `all`: every metric and `<rubric>_state`; "
        "`failing` is an earlier name of it. `sidejudge langfuse prune` deletes what an earlier setting left there",
    )
    web_url: WebAddress | None = Field(
        default=None, description="address of Langfuse in links for people, if it is another than `base_url`"
    )
    link_base: WebAddress | None = Field(
        default=None,
        description="address of this monitor's pages for people; every score of a trace then links to its explanation "
        "there, in the last line of its comment and as `explanation` of its metadata",
    )
    annotations: AnnotationsSection | None = Field(
        default=AnnotationsSection(),
        description="labels of people there, compared with our verdicts; `null`: they are not read",
    )
    annotation_queue: AnnotationQueueSection | None = Field(
        default=None, description="queue verdicts in doubt for people to label; without it none is queued"
    )
    failure_dataset: FailureDatasetSection | None = Field(
        default=None, description="write traces that fail into a dataset; without it none is written"
    )
