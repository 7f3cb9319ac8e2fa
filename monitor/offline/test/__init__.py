"""Testing: a test set is put to an agent, and its answers are judged (seed 004, Evaluation Runner)."""
