"""Metrics: a case and answers to questions come in, one result a metric goes out."""
