"""Tool failure: whether a call of a tool failed, by its status or by what it returned.

Most agents' tools return their errors as text, with the status *ok*, so that the model can react. A result counts
as a failure only where it begins as an error message does, or is JSON that declares one: a document about errors is a
result like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from scoring.lexical.label import label
from scoring.trace.jsontext import decoded
from scoring.trace.span import Json, ToolCall

_HEAD: Final = 400
"""Characters at the beginning of a result that are read."""
_TRACEBACK: Final = "Traceback (most recent call last)"
_ERROR_TEXT: Final = re.compile(
    r"""\W*(?:
      (?:http\s*(?:status|error|code)?\s*(?:code)?|status\s*code)[\s:=]*(?P<code>[45]\d\d)\b
      |(?P<bare>[45]\d\d)\s+(?:client\s+error|server\s+error|not\s+found|forbidden|unauthori[sz]ed|bad\s+request|
        internal\s+server\s+error|too\s+many\s+requests|service\s+unavailable|bad\s+gateway|gateway\s+time-?out)
      |(?-i:(?P<kind>(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Timeout)))\s*[:(\[]
      |error\]|(?:\w+\s+){0,2}errors?\s*(?:[:!]|\s[\-–]\s|\#\d|$)
      |(?:tool\s+|fatal\s+|internal\s+|unexpected\s+|runtime\s+|api\s+|execution\s+|validation\s+)?error\s+
        (?:calling|executing|running|while|when|in\s+(?:line|code|tool|function|file|step)|during|occurred|code|parsing|
        fetching|reading|processing|invoking|accessing|loading|searching|opening|downloading|querying|retrieving)\b
      |an?\s+(?:\w+\s+){0,2}(?:error|exception)\s+(?:has\s+)?occurred
      |exception\s*[:(]|exception\s+(?:while|in\s+thread|when|occurred)\b
      |(?:code\s+|tool\s+|function\s+)?(?:execution|call|request|command|query|operation)\s+(?:failed|timed\s+out)\b
      |failed\s+(?:to|with|because)\b|failure\s*:
      |(?:(?:request|connection|operation|command|tool)\s+)?timed\s+out\b|time-?out\s*[:(]
      |(?:permission|access)\s+denied\b|unauthori[sz]ed\s*(?:$|[:.])|rate\s+limit(?:ed)?\s+(?:exceeded|reached|hit)\b
      |(?:unknown|no\s+such|invalid|unrecogni[sz]ed)\s+(?:tool|function|command|method|argument|arguments|parameter|
        parameters|input|json|syntax)\b
      |(?:tool|function)\s+\S{1,80}\s+(?:not\s+found|does\s+not\s+exist|is\s+not\s+(?:a\s+valid|available))
      |(?:fehler|erreur|errore|错误|エラー|오류)\s*[:：]
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_CLASS: Final = re.compile(r"[A-Z]\w*(?:Error|Exception|Timeout)")
_FAILED_WORDS: Final = frozenset({"error", "errored", "failed", "failure", "exception", "fatal", "timeout", "denied"})
_ERROR_KEYS: Final = ("error", "errors", "exception", "error_message", "errorMessage", "error_code", "errorCode")
_STATUS_KEYS: Final = ("status", "state", "result_status", "outcome")
_CODE_KEYS: Final = ("status_code", "statusCode", "http_status", "httpStatus", "http_code", "code", "status")
_NO_ERROR: Final = (None, False, "", 0, "0", "none", "None", "null", "ok", "OK", "no error", "No error")


def failure_of(call: ToolCall) -> str | None:
    """Why a call failed, in few words and without contents; None where nothing shows that it did.

    Returns:
        The class of the error or its HTTP code where there is one, else how it is known: ``ValueError``, ``HTTP 404``,
        ``error status``, ``error text``, ``error in the result``.

    >>> failure_of(ToolCall(name="fetch", result="Error: no such page"))
    'error text'
    >>> failure_of(ToolCall(name="fetch", result={"status": "ok", "error": None})) is None
    True
    """
    if call.error is not None:
        return _class_in(call.error) or "error status"
    result = decoded(call.result)
    if isinstance(result, str):
        return text_failure(result)
    if isinstance(result, dict):
        return _declared(result)
    if isinstance(result, list) and len(result) == 1:
        only = result[0]
        if isinstance(only, dict):
            text = only.get("text")
            return _declared(only) or (text_failure(text) if isinstance(text, str) else None)
        return text_failure(only) if isinstance(only, str) else None
    return None


def text_failure(text: str) -> str | None:
    """The same of a text: whether it begins as an error message does, or is a traceback."""
    head = text[:_HEAD].lstrip()
    if _TRACEBACK in head:
        return _class_in(text[-_HEAD:]) or "traceback"
    match = _ERROR_TEXT.match(head)
    if match is None:
        return None
    if code := match["code"] or match["bare"]:
        return f"HTTP {code}"
    if match["kind"]:
        return label(match["kind"].rpartition(".")[2])
    return _class_in(head) or "error text"


def _declared(result: Mapping[str, Json]) -> str | None:
    """Whether a JSON object declares an error, at its top level."""
    for key in _CODE_KEYS:
        code = result.get(key)
        if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599 and _is_code(key, result):
            return f"HTTP {code}"
    for key in _ERROR_KEYS:
        held = result.get(key)
        if isinstance(held, str | int | float | bool) and held not in _NO_ERROR:
            return (_class_in(held) if isinstance(held, str) else None) or "error in the result"
        if isinstance(held, list | dict) and held:
            return "error in the result"
    if result.get("isError") is True or result.get("is_error") is True:
        return "error in the result"
    if result.get("success") is False or result.get("ok") is False or result.get("succeeded") is False:
        return "error in the result"
    for key in _STATUS_KEYS:
        word = result.get(key)
        if isinstance(word, str) and word.strip().lower() in _FAILED_WORDS and _speaks_of_the_call(result):
            return "error in the result"
    return None


def _is_code(key: str, result: Mapping[str, Json]) -> bool:
    """``code`` and ``status`` are codes of HTTP only beside a message: a product's code may be 404 as well."""
    return key not in ("code", "status") or any(name in result for name in ("message", "error", "detail", "reason"))


def _speaks_of_the_call(result: Mapping[str, Json]) -> bool:
    """A state beside much else may be that of an order or a payment; alone, or with a message, it is the call's own."""
    return len(result) <= 3 or any(name in result for name in ("message", "detail", "reason", "traceback", "stderr"))


def _class_in(text: str) -> str | None:
    found = _CLASS.search(text[:_HEAD])
    return label(found[0]) if found else None
