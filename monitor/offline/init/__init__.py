"""Traces come in, a proposed configuration goes out: routes, rubrics and scenarios, each with its reason."""
