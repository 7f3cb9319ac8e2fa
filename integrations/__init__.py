"""Adapters, the only code that speaks to the outside: one protocol or product each, translated to scoring's types."""
