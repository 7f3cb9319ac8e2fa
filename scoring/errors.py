"""The root of the errors that reach a caller; each package declares its own beside the code that raises them.

::

  SidejudgeError
    RemediedError
    scoring.checks
        CheckError*  RedactionError*
    scoring.declared
        CelError*  DeclarationError*
    scoring.judging
        ParseError*
    scoring.metrics
        JudgeConfigError*  NoValueError  TooMuchError*  TooVariedError*
    scoring.runs
        LabelLineError  VerdictLineError*
    scoring.scenario
        PatternError*  ScenarioError*
    integrations.agents
        AgentError  NoSuchAgentError+
    integrations.cases
        CaseError*  FieldError*
    integrations.backoff
        DestinationUnreachableError  RefusedError
    integrations.dialects
        UnreadableError*
    integrations.embed
        EmbeddingError+
    integrations.history
        NotOursError  HistoryError
    integrations.jsonl
        SinkError
    integrations.langfuse
        LangfuseError  PromptError
    integrations.otel_events
        DisabledError
    integrations.otlp
        UpstreamError  UndecodableError*  RecordingError*  PackedSpansError*
    integrations.postgres
        DatabaseError
    integrations.provider
        ProviderError
    integrations.python_metrics
        FunctionError*
    integrations.store
        StoreError
    monitor.api
        ProblemError
    monitor.config
        ConfigError
    monitor.evaluate
        PostponedError  EmbeddingsOutError  UnansweredError  SplitError*
    monitor.ingest
        UnreadError  AddressError  CertificateError
    monitor.offline
        NoReferencesError  StoppedError  PairFileError  NotWrittenError  NoDatasetError  UnfitSdkError
        ElsewhereError+  WorkersLostError+
        GuardError
        AnotherRunError  BeingWrittenError
        TableError+  JudgeOutError  OtherConfigError  MetadataError  UnusableError  OutputError
        AnswerError*  AgentUnreachableError  SelectionError*  TestSetError

``*`` is a ``ValueError`` as well, ``+`` a ``RemediedError``. Beside the tree stands ``CommandError`` (``monitor.cli``),
which ends a command. ``sidejudge`` exports the root, ``DestinationUnreachableError`` and ``RefusedError``; others are
caught by the root.
"""

from __future__ import annotations


class SidejudgeError(Exception):
    """Sidejudge cannot do something, or refuses it. ``str`` is the cause."""


class RemediedError(SidejudgeError):
    """An error with a line of cause and a line of remedy, which may be empty."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause, remedy)  # both, for it may be pickled
        self.cause, self.remedy = cause, remedy

    def __str__(self) -> str:
        return self.cause
