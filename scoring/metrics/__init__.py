"""Metrics: a case and answers to questions come in, one result for each metric goes out."""
