"""Checks: what can be decided about a case by plain rules. In comes a declaration, out goes a function of a case."""
