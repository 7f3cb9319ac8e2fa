"""Evaluation without a server: files, test sets or past traces come in, verdicts and reports go out."""
