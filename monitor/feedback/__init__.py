"""Feedback: labels and corrections of people come in, agreement with the verdicts goes out."""
