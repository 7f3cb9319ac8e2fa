"""Batch: a file of cases to a file of verdicts, in constant memory, and exactly on from where it was cut off."""
