"""Verdicts come in through the outbox; lines of JSON go out to one file."""
