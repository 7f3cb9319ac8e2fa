"""The section of the configuration on where expected outcomes stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from .section import Section
from .units import Duration, PositiveDuration, parse_duration

_WITHIN = parse_duration("7d")
_KEY = re.compile(r"metadata\..+|trace_id|session_id|user_id|name")


def _valid_key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise ValueError(f"must be metadata.KEY, trace_id, session_id, user_id or name, got {key[:60]!r}")
    return key


Key: TypeAlias = Annotated[str, AfterValidator(_valid_key)]


class ReferenceSection(Section):
    """Where the expected outcome of a trace stands: one of the first four keys.

    What is found elsewhere than in the trace is looked for again every minute; one that comes, changes or goes within
    `reevaluate_within` of the verdict makes a revision. Later than `assembly.late` that takes a Langfuse that has the
    trace: it is read there once more.
    """

    metadata: str | None = Field(
        default=None, min_length=1, description="key of the trace's metadata that holds the expected outcome"
    )
    langfuse_dataset: str | None = Field(
        default=None,
        min_length=1,
        description="name of a dataset in Langfuse: of the item whose source is the trace; with `key`, of the one that "
        "shares it with the trace (`metadata` of the item), and sources are not looked at",
    )
    langfuse_corrections: bool | None = Field(
        default=None, description="the output as people corrected it in Langfuse (scores of type CORRECTION)"
    )
    file: Annotated[Path, Field(strict=False)] | None = Field(
        default=None,
        description="JSON Lines with `expected_outcome` and what `key` names, relative to the working directory",
    )
    key: Key | None = Field(
        default=None,
        description="what a trace and its reference share: `metadata.KEY`, `trace_id`, `session_id`, `user_id`, `name`",
    )

    reevaluate_within: PositiveDuration | None = Field(
        default=None,
        description="how long after a verdict a reference that comes, changes or goes still makes a revision (default: "
        "7d). Where Langfuse is configured verdicts and details are kept for as long, if that is longer than "
        "`store.retention`",
    )

    @model_validator(mode="after")
    def _one_place(self) -> ReferenceSection:
        places = [self.metadata, self.langfuse_dataset, self.langfuse_corrections or None, self.file]
        if sum(place is not None for place in places) != 1:
            raise ValueError("needs exactly one of metadata, langfuse_dataset, langfuse_corrections and file")
        if self.file is not None and self.key is None:
            raise ValueError("needs key beside file, such as metadata.call_id")
        if self.key is not None and self.file is None and self.langfuse_dataset is None:
            raise ValueError("has a key, which only goes with langfuse_dataset and file")
        if self.metadata is not None and self.reevaluate_within is not None:
            raise ValueError("has reevaluate_within, which only goes with what is found elsewhere than in the trace")
        return self

    @property
    def within(self) -> Duration:
        """How long after a verdict a change makes a revision."""
        return self.reevaluate_within or _WITHIN

    @property
    def in_langfuse(self) -> bool:
        """Whether it is looked for in Langfuse."""
        return self.langfuse_dataset is not None or bool(self.langfuse_corrections)
