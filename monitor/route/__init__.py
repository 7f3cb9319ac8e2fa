"""Routing: a case comes in, the rubrics and the scenario that apply to it go out."""
