"""Traces that were seen come in, and a proposed configuration goes out: routes, rubrics, scenarios, each with why."""
