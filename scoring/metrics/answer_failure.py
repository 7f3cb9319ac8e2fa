"""Answer failure: whether an answer is an error message or a refusal, in several languages.

An assistant may explain, translate or quote an error: an answer that begins as an error message counts as one only if
nothing follows, and if nobody asked about errors. A refusal opens a short answer; a long answer that opens with what
the assistant cannot do continues with what it can.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.span import Json, ToolCall

from .service_message import service_message, texts_in
from .tool_failure import failure_of, text_failure

_LONGEST_MESSAGE: Final = 400
_LONGEST_REFUSAL: Final = 600
_TRACEBACK: Final = "Traceback (most recent call last)"
_ABOUT_ERRORS: Final = re.compile(
    r"error|exception|traceback|\blogs?\b|\bcode\b|http|status|timeout|time-out|translat|denied|not found|\bfail"
    r"|\bbug\b|übersetz|fehler|traduc|tradui|erreur|错误|报错|翻译|エラー|翻訳",
    re.IGNORECASE,
)
"""A request to which an error message may be the answer."""
_GOES_ON: Final = re.compile(
    r"\b(?:means?|because|raised|caused|occurs?|happens?|fix(?:ed)?|check|install|delete|create|add|use|here\s+is|you\s+can"
    r"|which|so\s+the|steps|bedeutet|weil|heißt|significa|porque|signifie|parce)\b|```|请在|这样|表示|意味",
    re.IGNORECASE,
)
"""Words that introduce an explanation of an error."""
_OF_A_PROGRAM: Final = re.compile(
    r"error|exception|traceback|\btime-?out|timed\s+out|\bhttp|^\W*[45]\d\d\s|rate\s+limit|too\s+many\s+requests|overloaded"
    r"|something\s+went\s+wrong|encountered\s+an?\s|there\s+was\s+an?\s|\b(?:tool|function|api|server)\b|unauthori[sz]ed|null"
    r"|fehler|zeitüberschreitung|erreur|erro\b|ошибк|错误|失败|超时|出错|エラー|失敗|오류|실패",
    re.IGNORECASE,
)
"""An error message holds one of these words. Without any, "Order 7 was not found." is information for a customer."""
_VERB: Final = (
    r"(?:(?:directly|possibly|actually|just|ever|to|be\s+able\s+to)\s+)*(?:assist|help|comply|provide|answer|do\s+(?:that|this|so|it)"
    r"|fulfil+|complete|create|generate|continue|discuss|share|support|process|perform|access|engage|write|produce"
    r"|participate|facilitate|disclose|respond|carry\s+out|go\s+along)\b"
)
_REFUSAL: Final = re.compile(
    rf"""\W*(?:(?:i['’]?m|i\s+am|we['’]?re|we\s+are)\s+(?:so\s+|very\s+|really\s+)?sorry[\s,.]*(?:but\s+)?|unfortunately[\s,]*|
      apologies[\s,]*(?:but\s+)?|i\s+apologi[sz]e[\s,]*(?:but\s+)?|sorry[\s,]*(?:but\s+)?|as\s+an\s+ai(?:\s+\w+){{0,3}}[\s,]*)*
    (?:
      (?:i|we)\s*(?:can(?:['’]t|not|\s+not)|won['’]t|will\s+not|
        (?:['’]m|\s+am|['’]re|\s+are)?\s*(?:not\s+able|unable|not\s+allowed|not\s+permitted)\s+to|
        do(?:n['’]t|\s+not)\s+have\s+the\s+ability\s+to)\s+{_VERB}
      |(?:i|we)\s+(?:must|have\s+to|need\s+to|will\s+have\s+to|would\s+have\s+to)?\s*(?:respectfully\s+)?(?:decline|refuse)\b
      |(?:that|this)(?:['’]s|\s+is)\s+(?:not\s+something|something)\s+(?:that\s+)?i\s*(?:can(?:['’]t|not)?|(?:['’]m|\s+am)\s+
        (?:not\s+)?able\s+to)\s+{_VERB}
      |i\s*(?:['’]m|\s+am)\s+not\s+comfortable\b
      |(?:it|this|that)\s+would(?:n['’]t|\s+not)\s+be\s+(?:appropriate|ethical|right|responsible)\b
      |(?:this|that|your)\s+request\s+(?:goes\s+against|violates|conflicts\s+with|is\s+against)\b
      |(?:es\s+tut\s+mir\s+(?:sehr\s+)?leid|tut\s+mir\s+leid|entschuldigung|leider)?[\s,.]*(?:aber\s+)?
        (?:(?:dabei|damit|hierbei|das|dazu)\s+(?:kann|darf)\s+ich\s+(?:\w+\s+){{0,3}}nicht\b
          |(?:leider\s+)?(?:kann|darf)\s+ich\s+(?:\w+\s+){{0,4}}nicht\s+(?:helfen|beantworten|unterstützen|erfüllen|tun|machen)
          |ich\s+(?:kann|darf)\s+(?:\w+\s+){{0,4}}nicht\s+(?:helfen|beantworten|unterstützen|erfüllen|tun|bereitstellen))
      |(?:lo\s+siento(?:\s+mucho)?|lamentablemente|disculpa)?[\s,.]*(?:pero\s+)?no\s+puedo\s+(?:ayudar|cumplir|proporcionar|
        hacer\s+eso|responder|continuar|asistir|realizar)\w*
      |(?:je\s+suis\s+)?(?:désolée?|malheureusement)?[\s,.]*(?:mais\s+)?je\s+ne\s+(?:peux|suis\s+pas\s+en\s+mesure)\s+(?:pas\s+)?
        (?:de\s+)?(?:vous\s+|t['’])?(?:aider|fournir|répondre|faire|accéder|satisfaire)\b
      |(?:desculpe|lamento|infelizmente)?[\s,.]*(?:mas\s+)?não\s+posso\s+(?:ajudar|fornecer|fazer\s+isso|responder|atender)\b
      |(?:mi\s+dispiace|purtroppo)?[\s,.]*(?:ma\s+)?non\s+posso\s+(?:aiutar|fornir|risponder|farlo|soddisfar)\w*
      |(?:извините|к\s+сожалению|простите)?[\s,.]*(?:но\s+)?я\s+не\s+могу\s+(?:помочь|выполнить|предоставить|ответить)
      |(?:很?抱歉|对不起|不好意思)?[，,。\s]*(?:但)?我?(?:无法|不能|没办法)(?:为您|为你|向您)?(?:帮助|提供|完成|协助|回答|满足|处理)
      |(?:申し訳(?:ありません|ございません)(?:が|けど)?)?[、,。\s]*[^。\n]{{0,20}}(?:お手伝い|お答え|対応|ご?提供)(?:は|を|することは)?
        でき(?:ません|かねます)
      |(?:죄송하지만|죄송합니다)[,.\s]*.{{0,30}}(?:도와드릴|제공할|답변할|할)\s*수\s*없
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def answer_failure(answer: str, asked: Json, results: Iterable[Json] = ()) -> str | None:
    """Why an answer is an error message or a refusal, in a few words without contents; None where it is neither.

    Args:
        answer: What the run answered.
        asked: Its request; to a question about errors an error message is an answer.
        results: The results of its tools; repeating them may be an answer likewise.
    """
    text = answer.strip()
    if (message := service_message(text, texts_in(asked), texts_in(list(results)))) is not None:
        return message
    if text.startswith(_TRACEBACK):
        return text_failure(text)
    if len(text) > _LONGEST_MESSAGE or (isinstance(asked, str) and _ABOUT_ERRORS.search(asked)):
        return None
    if text.startswith("{"):
        held = decoded(text)
        return failure_of(ToolCall(name="", result=held)) if isinstance(held, dict) else None
    failure = text_failure(text)
    return None if failure is None or _GOES_ON.search(text) or not _OF_A_PROGRAM.search(text) else failure


def sole_text(answer: Json, levels: int = 4) -> str:
    """The words of an answer: a text, or the only text of a map or a list; empty where there are none or several."""
    if isinstance(answer, str):
        return answer.strip()
    held = list(answer.values()) if isinstance(answer, dict) else answer if isinstance(answer, list) else []
    return sole_text(held[0], levels - 1) if len(held) == 1 and levels else ""


def is_refusal(answer: str) -> bool:
    """Whether an answer is a refusal, by the words that it opens with."""
    text = answer.strip()
    return len(text) <= _LONGEST_REFUSAL and _REFUSAL.match(text) is not None
