"""A metric that asks the judge, and one that does not."""

from sidejudge import Answer, Metric, Scored, Unavailable, ask


def politeness(case):
    """1 where the answer thanks; else what the judge says of it."""
    if isinstance(case.model_output, str) and "thank" in case.model_output.lower():
        return Scored(value=1.0, reason="it thanks")
    if case.model_output is None:
        return Unavailable("the output is not known")
    reply = yield ask("Is {{output}} polite?")
    if isinstance(reply, Answer):
        return bool(reply.value)
    return Unavailable(reply.reason)


def length(case):
    """How many words the answer has."""
    if not isinstance(case.model_output, str):
        return Unavailable("the output is no text")
    return Scored(value=float(len(case.model_output.split())))


LENGTH = Metric(
    id="words", title="Words", meaning="how many words the answer has", formula="words", source="acme",
    measure=length, unit="words", bounds=(0.0, None), undefined="the output is no text",
)  # fmt: skip
