"""A dialect: spans of Acme's own instrumentation."""

from sidejudge.integrations.dialects.reading import Dialect, SpanReading


def speaks(raw):
    return raw.scope_name == "acme.tracing"


def normalise(raw):
    return SpanReading(raw).bare("acme")


DIALECT = Dialect(name="acme", speaks=speaks, normalise=normalise)
