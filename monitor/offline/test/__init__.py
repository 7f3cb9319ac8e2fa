"""Testing: a test set is put to an agent, and what it answers is judged (seed 004, Evaluation Runner)."""
