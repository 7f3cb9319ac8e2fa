"""Notices: alert events and reports come in, texts for people and machines go out."""
