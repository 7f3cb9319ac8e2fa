"""Judging: questions come in as prompts and schemas for a judge model, its parsed answers go out."""
