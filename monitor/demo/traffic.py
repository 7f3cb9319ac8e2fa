"""Sample traffic: recorded requests of real instrumentations, replayed with fresh ids, some of them gone wrong.

The recordings are what a Langfuse, an OpenInference and an OpenTelemetry GenAI client sent for one agent run, and
what a Langfuse client sent for one call-centre evaluation. The calls, their scorecards and the reference answers are in
``calls.json``. Wrong answers are made from right ones, in the ways in which models go wrong.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from sidejudge.scoring.trace.span import JsonRecord

ENVIRONMENT = "demo"
_ENVIRONMENT_KEYS = ("deployment.environment.name", "langfuse.environment")
AGENT_DIALECTS = ("langfuse-v5", "openinference-openai", "otel-genai-latest")


@dataclass(frozen=True, slots=True)
class SampleTrace:
    """One trace of sample traffic: the OTLP request, who sends it, and whether it was made wrong on purpose."""

    body: bytes
    service: str
    spoilt: bool


class SampleTraffic:
    """Endless sample traffic. The same seed gives the same traces; ids are fresh in every run."""

    def __init__(self, seed: int = 7) -> None:
        self._draw = random.Random(seed)  # noqa: S311 - which trace comes next is no secret
        self._fresh = random.SystemRandom()
        here = files(__package__)
        self._calls: list[JsonRecord] = json.loads((here / "calls.json").read_text(encoding="utf-8"))
        self._agents = [_read(f"agents-{dialect}.pb") for dialect in AGENT_DIALECTS]
        self._call_centre = _read("call-centre.pb")

    def next(self, now_ns: int, wrong: float) -> SampleTrace:
        """The next trace, ended at ``now_ns``; the chance that a call-centre answer is wrong is ``wrong``."""
        kind = self._draw.choice(("agent", "qa", "qa", "entity"))
        if kind == "agent":
            return self._agent(now_ns, spoilt=self._draw.random() < 0.06)
        return self._call(kind, now_ns, spoilt=self._draw.random() < wrong)

    def _agent(self, now_ns: int, *, spoilt: bool) -> SampleTrace:
        request = self._renewed(self._draw.choice(self._agents), "research-assistant", now_ns)
        if spoilt:  # the agent searches the web where the policy document was to be read
            request = ExportTraceServiceRequest.FromString(
                request.SerializeToString().replace(b"pdf_retrieval", b"internet_find")
            )
        return SampleTrace(request.SerializeToString(), "research-assistant", spoilt)

    def _call(self, task: str, now_ns: int, *, spoilt: bool) -> SampleTrace:
        call = self._draw.choice(self._calls)
        expected = {"questions": call["questions"]} if task == "qa" else _expected_entities(call)
        output: Any = copy.deepcopy(expected)
        if spoilt:
            output = self._spoil_qa(output) if task == "qa" else self._spoil_entities(output)
        service = "call-quality" if task == "qa" else "call-entities"
        request = self._renewed(self._call_centre, service, now_ns)
        answer = json.dumps(output, ensure_ascii=False)
        prompt = f"Task: {task}.\n\nTRANSCRIPT:\n{call['transcript']}"
        for span in _spans(request):
            is_root = not span.parent_span_id
            span.name = f"{service}" if is_root else span.name
            message = json.dumps({"role": "assistant", "content": answer}, ensure_ascii=False)
            _set(span, "langfuse.trace.name", service)
            _set(span, "langfuse.observation.input", json.dumps({"task": prompt} if is_root else
                 [{"role": "user", "content": prompt}], ensure_ascii=False))  # fmt: skip
            _set(span, "langfuse.observation.output", answer if is_root else message)
            if is_root:
                _set(span, "langfuse.observation.metadata.task", json.dumps(task))
                _set(span, "langfuse.observation.metadata.transcript", json.dumps(call["transcript"]))
                _set(span, "langfuse.observation.metadata.expected_outcome", json.dumps(expected))
                config = {"keywords": call["keywords"], "topics": call["topics"]}
                _set(span, "langfuse.observation.metadata.config", json.dumps(config))
        return SampleTrace(request.SerializeToString(), service, spoilt)

    def _spoil_qa(self, output: dict[str, Any]) -> dict[str, Any]:
        question = self._draw.choice(output["questions"])
        denied, also_denied = self._draw.sample([each for each in output["questions"] if each["score"]], 2)
        way = self._draw.choice(("lenient", "strict", "vague", "renamed"))
        if way == "lenient":  # full marks, also where the reference has zero, for all questions but one
            for each in output["questions"]:
                each["score"] = each["max_score"]
            denied["score"] = 0
        elif way == "strict":
            denied["score"] = also_denied["score"] = 0
        elif way == "vague":
            for each in output["questions"]:
                each["reason"] = "The agent was professional."
            question["score"] = 5 - question["score"]
        else:  # a key renamed: the structure check catches it
            question["reasoning"] = question.pop("reason")
        return output

    def _spoil_entities(self, output: dict[str, Any]) -> dict[str, Any]:
        if self._draw.random() < 0.5:
            output["detected_keywords"] = ["insurance", "mortgage", "passport", "helicopter"]
        else:
            output["detected_keywords"] = output["detected_keywords"][:1]
            output["detected_topics"] = ["escalation"]
        return output

    def _renewed(self, recorded: ExportTraceServiceRequest, service: str, now_ns: int) -> ExportTraceServiceRequest:
        """A copy with new ids (parent links kept), times moved so that it ends now, and a service of the demo."""
        request = ExportTraceServiceRequest()
        request.CopyFrom(recorded)
        ids: dict[bytes, bytes] = {}
        shift = now_ns - max(span.end_time_unix_nano for span in _spans(request))
        for span in _spans(request):
            span.trace_id = ids.setdefault(span.trace_id, self._fresh.randbytes(16))
            span.span_id = ids.setdefault(span.span_id, self._fresh.randbytes(8))
            if span.parent_span_id:
                span.parent_span_id = ids.setdefault(span.parent_span_id, self._fresh.randbytes(8))
            span.start_time_unix_nano += shift
            span.end_time_unix_nano += shift
            for event in span.events:
                event.time_unix_nano += shift
        resources = (each.resource for each in request.resource_spans)
        for attributes in (held.attributes for held in chain[Resource | Span](resources, _spans(request))):
            for attribute in attributes:
                if attribute.key == "service.name":
                    attribute.value.string_value = service
                elif attribute.key in _ENVIRONMENT_KEYS:
                    attribute.value.string_value = ENVIRONMENT
        return request


def _read(name: str) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest.FromString((files(__package__) / "recordings" / name).read_bytes())


def _spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            yield from scope_spans.spans


def _set(span: Span, key: str, value: str) -> None:
    for attribute in span.attributes:
        if attribute.key == key:
            attribute.value.string_value = value
            return
    span.attributes.add(key=key).value.string_value = value


def _expected_entities(call: JsonRecord) -> JsonRecord:
    keywords, topics = call["keywords"], call["topics"]
    return {"detected_keywords": keywords, "detected_topics": topics, "valid_entity_set": [*keywords, *topics]}
