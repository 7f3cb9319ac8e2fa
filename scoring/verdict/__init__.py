"""Verdicts: the results of a rubric's metrics come in, one verdict with its reason goes out."""
