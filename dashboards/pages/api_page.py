"""API page: the OpenAPI document as a readable page that loads nothing from anywhere."""

from __future__ import annotations

from sidejudge.scoring.trace.span import JsonRecord

from .rendering import render


def api_page(document: JsonRecord) -> str:
    """Every path of an OpenAPI 3 document with its parameters and responses, and the models, as HTML."""
    return render("api.html", title=f"{document['info']['title']} API", here="/docs", document=document)
