"""Evaluators without a network: questions come in, answers by words or by vectors go out."""
