"""Service message: what a provider, a client or a framework puts where an answer should be, in several languages.

``Credit balance is too low``, ``Connection error.``, ``Maximum number of rounds reached``: such texts bear no mark of
an error, and a run that ends with one has answered nothing. A text counts as one only if it opens with a known message
and goes on with little, and if nothing that was asked or that a tool returned speaks of the same: to a bank's customer
a balance is an answer. What is not known passes: a missed message is cheaper than an answer that is called none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import Final

_LONGEST: Final = 400
"""Characters of a text that may be a message; what is longer explains something."""
_SHORT: Final = 600
"""Characters of a request or a result in which one word of a message's subject is enough to speak of the same."""
_MOST_LOOKED_AT: Final = 20_000
_AROUND: Final = " *_`'\"“”‘’"
_QUOTES: Final = re.compile(
    r"\bhttp\b|status|error[ -](?:message|code)|exception|translat|traduc|tradui|übersetz|\bmean(?:s|ing)?\b|bedeut"
    r"|significa|signifie|翻译|翻訳|意味|意思",
    re.IGNORECASE,
)
"""A short request with one of these may be answered by a message that is quoted."""
_OPENING: Final = re.compile(
    r"\W*(?:(?:(?:api|http|llm|model|openai|anthropic|internal)\s+)?(?:error|fehler|erreur|errore)"
    r"(?:\s+code)?[:\s]*(?:[45]\d\d)?\s*[:\-–]*\s*"
    r"|[45]\d\d\s+|(?:[\w.]+(?:error|exception))\s*:\s*|error code: [45]\d\d - |terminating run \([^)]*\):?\s*"
    r"|(?:execution|run|agent|chat|task)? ?(?:halted|terminated|stopped|aborted)\s*[:–-]\s*)?\W*",
    re.IGNORECASE,
)
"""What clients write before a message."""
_END: Final = r"\s*(?:$|[.!:;,(|·∙•\n\[{—–/-])"
_STOP: Final = r"\s*[.!。।)\]]*\s*$"
_LATER: Final = (
    r"[.,;!।]?\s*(?:please |bitte |veuillez |por favor,? |lütfen (?:daha sonra )?|vui lòng |कृपया (?:बाद में )?)?"
    r"(?:wait|slow|try|retry|warten|versuche|réessay|attend|inténte|espere|tente|aguarde|riprova|attendi|probeer|spróbuj"
    r"|tekrar|thử lại|حاول|पुनः)"
)
"""That one should try again."""
_ROUNDS: Final = (
    r"(?:rounds?|iterations?|steps?|turns?|replies|attempts?|retries|tries|cycles|depth|(?:tool|function|model"
    r"|llm)[ -]calls?)"
)
_OF_AN_ACCOUNT: Final = (
    r"(?:extra|current|free|plan|tier|account|api|usage|rate|tokens?|requests?|messages?|session|hourly|daily"
    r"|weekly|monthly|\d+-hour"
    r"|model|spend(?:ing)?|opus|sonnet|gpt\S*|openai|anthropic|claude|assigned|allotted|included|premium)"
)
_SERVICE: Final = r"(?:(?:model|api|llm|engine|server|service|provider|openai|anthropic|gemini|claude)s?)"


ACCOUNT: Final = "an account's limit"
GAVE_UP: Final = "the framework gave up"
"""A maximum of rounds, steps or time is reached."""


class _Known:
    """Messages about one subject: how they open, and words by which a request or a result speaks of the same.

    Their patterns are compiled when the first answer is looked at: they take 1.3 MB and 12 ms.
    """

    def __init__(self, kind: str, subject: str, *openings: str) -> None:
        self.kind, self._subject, self._openings = kind, subject, openings

    @cached_property
    def opens(self) -> re.Pattern[str]:
        return re.compile(f"(?:{'|'.join(self._openings)})", re.IGNORECASE)

    @cached_property
    def subject(self) -> re.Pattern[str]:
        return re.compile(self._subject, re.IGNORECASE)


_MESSAGES: Final = (
    _Known(
        "its retries were used up",
        r"attempt|retr(?:y|ies)|tries",
        r"(?:(?:the |this )?(?:request|call|run|task) )?failed after \d+ (?:attempts|retries|tries)"
        rf"(?:{_STOP}|[.:;,] *(?:the )?last error\b)",
    ),
    _Known(
        GAVE_UP,
        r"(?:max\w*|limit\w*|máximo|massimo|最大|최대).{0,40}(?:round|iteration|step|turn|runde|schritt|paso|tour"
        r"|étape|passo|轮|步|迭代|ラウンド|ステップ|단계)",
        r"agent stopped due to\b|sorry,? need more steps\b|invalid format: missing\b|could not parse llm output",
        rf"(?:the )?(?:allowed )?max(?:imum)?(?: (?:number|count|amount) of)?(?:[ _-](?:allowed|consecutive|auto"
        rf"|agent|chat|group))*[ _-]{_ROUNDS}"
        rf"(?: limit)?(?: (?:of )?\(?\d+\)?)?(?: (?:was|were|has been|have been|is))?[ _](?:reached|exceeded|hit"
        rf"|exhausted)"
        rf"(?:{_END}| (?:without|before|while|after|for this (?:run|task)|and)\b)",
        rf"(?:(?:the )?(?:agent|run|task|chat|conversation|workflow|i)(?:['’]ve| has| have| was)? ?(?:stopped"
        rf"|terminated|ended|aborted|halted)?"
        rf"(?: (?:because|after|since|due to|as))?(?: (?:it|i|the agent|the run))?(?: has| had)? )?(?:reached"
        rf"|reaching|exceeded|exceeding|hit|hitting)"
        rf" (?:the |its |my |our )?(?:max(?:imum)?|limit)(?: (?:allowed|number|count|limit|of|\d+))*[ _-]{_ROUNDS}\b",
        rf"(?:the |my |its )?(?:(?:tool|function)[ -])?(?:iteration|step|turn|round|recursion|execution time"
        rf"|run time|time|call) limit"
        rf"(?: (?:of )?\(?\d+\w*\)?)?(?: (?:was|has been|is))? (?:reached|exceeded|hit)(?:{_END}| without| before)",
        rf"(?:i |the agent |the run |we )?ran out of (?:time|{_ROUNDS}|tokens){_END}",
        rf"max_(?:turns|rounds|steps|iterations|consecutive_auto_reply)(?: (?:\(?\d+\)? )?(?:reached|exceeded))?{_END}",
        rf"max(?:imum)? (?:{_ROUNDS}|retries) exceeded(?: for this (?:request|task|run))?{_STOP}",
        r"(?:i was |the agent was )?(?:unable to|could not|failed to) (?:complete|finish) .{0,40} within the "
        rf"(?:\w+ )?(?:(?:step|iteration|turn|round|time) (?:limit|budget)|{_ROUNDS}){_STOP}",
        r"(?:the |this )?(?:task|run|agent|execution) exceeded (?:the |its )?(?:maximum )?(?:allowed |execution |run )?"
        rf"time(?: limit)?{_STOP}",
        r"(?:die )?maximale[nr]? (?:anzahl (?:an |der |von )?)?(?:\w+-)?(?:runden|schritten?|iterationen"
        r"|durchläufen?|versuchen?|zügen?)(?:(?:an)?zahl)? (?:wurde |ist )?(?:erreicht|überschritten)",
        r"(?:se (?:ha )?alcanz(?:ó|ado) )?(?:el )?(?:número )?máximo (?:de )?(?:rondas|pasos|iteraciones|turnos"
        r"|intentos)(?: (?:alcanzad|superad)[oa])?" + _END,
        r"(?:le )?nombre max(?:imal|imum) (?:de |d['’])(?:tours|étapes|itérations|essais) (?:a été )?(?:atteint"
        r"|dépassé)",
        r"(?:o )?número máximo de (?:rodadas|passos|iterações|turnos|tentativas) (?:foi )?(?:atingido|excedido)",
        r"(?:il )?numero massimo di (?:turni|passi|iterazioni|tentativi) (?:è stato )?(?:raggiunto|superato)",
        r"(?:достигнуто|превышено) максимальное (?:число|количество) (?:раундов|шагов|итераций|попыток)",
        r"已?(?:达到|超[过出])了?最大(?:轮|步|迭代|回合|循环|尝试)(?:数|次数)?|最大(?:轮|步|迭代|回合)(?:数|次数)?已?(?:达到|超[过出])",
        r"最大(?:ラウンド|ステップ|反復|ターン|試行)(?:回)?数に達し"
        r"|최대 ?(?:라운드|단계|반복|턴|시도) ?(?:횟수|수)?(?:에|를|을)? ?(?:도달|초과)",
    ),
    _Known(
        ACCOUNT,
        r"\b(?:credits?|balance|quota|usage|limits?|billing|budget|subscription|guthaben|kontingent|saldo"
        r"|crédit\w*|cuota|cota|quotum|limiet|kota\w*|przydział\w*|hạn (?:mức|ngạch))\b"
        r"|الحصة|कोटा|квот|лимит|额度|配额|余额|残高|할당량",
        r"(?:you['’]ve|you have|you['’]re|you are|you|we['’]ve|we have) (?:exceeded|reached|hit|used up|used all"
        r"(?: of)?|run out of|out of|over|at)"
        rf" (?:your|the|all|of|my|our)? ?(?:of your )?(?:{_OF_AN_ACCOUNT} ){{0,4}}(?:(?:quota|usage|credits"
        rf"|tokens)\b|limits?{_END})",
        rf"(?:you['’]ve|you have|you) (?:exceeded|reached|hit) (?:your|the) (?:{_OF_AN_ACCOUNT} ){{1,4}}limits?\b",
        rf"(?:your |the )?(?:api )?credit balance is (?:too low|insufficient|exhausted|negative)(?:{_END}| to "
        rf"(?:access|use|call))",
        rf"(?:insufficient|not enough|no (?:more )?|out of) ?(?:api )?(?:credits?|quota|tokens)(?: (?:left"
        rf"|remaining|available|balance))?{_END}",
        rf"(?:your |the |\w+ ){{0,3}}(?:usage|rate|request|token|session|weekly|daily|monthly|hourly|\d+-hour"
        rf"|message|spending|spend|credit|hard|(?:free|trial) (?:plan|tier)) limit"
        rf"(?: has been| was| is)? (?:reached|exceeded|hit)(?:{_END}| (?:for|on) )",
        rf"(?:(?:api |your |the |\w+ ){{0,2}})?quota (?:has been |was |is )?(?:exceeded|exhausted|reached){_END}",
        rf"billing hard limit has been reached|too many requests{_END}|too many (?:requests|tokens){_LATER}"
        rf"|resource[ _](?:has been )?exhausted{_END}|(?:insufficient_quota|rate_limit_exceeded){_STOP}",
        rf"insufficient (?:account )?balance{_STOP}|payment required{_STOP}"
        rf"|(?:the )?(?:model|request) (?:is|was) (?:getting |being )?throttled{_END}",
        r"(?:your |the )?account (?:has |is )?(?:run )?out of (?:api )?credits?\b|you have no (?:more )?(?:api"
        r" )?credits? "
        rf"(?:remaining|left){_STOP}|you(?:['’]re| are) out of (?:free )?messages(?:{_STOP}| until\b)",
        rf"you(?:['’]ve| have) used (?:up )?all (?:of )?your (?:{_OF_AN_ACCOUNT} ){{0,3}}(?:messages|requests"
        rf"|tokens|credits){_END}",
        rf"(?:your |the )?(?:{_OF_AN_ACCOUNT} ){{0,3}}limit of \d[\d,. ]*(?:requests|tokens|messages)(?: (?:per"
        rf"|an?) \w+)? "
        rf"(?:was |has been )?(?:exceeded|reached){_END}",
        rf"(?:the |your )?(?:token|cost|usage|request|llm|spend(?:ing)?) (?:budget|limit|cap) (?:was |has been |is )?"
        rf"(?:reached|exceeded|exhausted)(?:{_END}| for this (?:workspace|organization|project|key|account))",
        r"(?:das |ihr |dein )?(?:api-?|nutzungs-?|tages-?|wochen-?|monats-?|anfrage-?|raten-?|token-?)limit"
        r" (?:wurde |ist )?"
        rf"(?:erreicht|überschritten){_END}|zu viele anfragen(?:{_STOP}|{_LATER})",
        rf"limite (?:d['’]utilisation|de débit|de requêtes|de jetons) (?:a été )?(?:atteinte|dépassée){_END}"
        rf"|trop de requêtes(?:{_STOP}|{_LATER})",
        r"ha[s]? (?:superado|excedido|alcanzado|agotado) (?:tu|su|la|el) (?:cuota|límite)"
        rf"(?: (?:actual|diari[oa]|mensual|de (?:uso|solicitudes|tokens|la api)))*{_END}"
        rf"|límite de (?:uso|solicitudes|tokens) (?:alcanzado|superado|excedido){_END}"
        rf"|demasiadas solicitudes(?:{_STOP}|{_LATER})",
        rf"limite de (?:uso|solicitações|tokens) (?:atingido|excedido){_END}|limite di (?:utilizzo|richieste)"
        rf" (?:raggiunto|superato){_END}"
        rf"|muitas solicitações(?:{_STOP}|{_LATER})|troppe richieste(?:{_STOP}|{_LATER})",
        r"(?:您|你)?(?:已|已经)?(?:超出|超过|用完)了?(?:您的|你的)?(?:当前)?的?(?:配额|额度|使用限制)|(?:您|你)?(?:已|已经)?达到了?"
        r"(?:您的|你的)?(?:使用|调用|速率|请求|每日)的?(?:上限|限额|限制)|请求过于频繁|(?:账户|帐户)?余额不足(?=$|[。，,.！!])",
        r"(?:利用|使用|レート)制限に達し|(?:現在の)?クォータを超過|リクエストが多すぎ"
        r"|(?:사용|요청) ?한도(?:를|에)? ?(?:초과|도달)|(?:현재 )?할당량을 초과|요청이 너무 많",
        r"sie haben ihr (?:[\w-]+ )?(?:kontingent|limit|guthaben) (?:überschritten|aufgebraucht|erreicht)|(?:das "
        r"|ihr )?(?:api-)?guthaben (?:ist )?(?:zu niedrig|aufgebraucht)" + _END,
        r"(?:usted )?ha (?:superado|excedido|alcanzado|agotado) (?:su|la|el) (?:cuota|límite|saldo|crédito)|"
        r"(?:saldo de )?créditos? insuficientes?" + _END,
        r"vous avez (?:dépassé|atteint|épuisé) (?:votre|vos) (?:quota|limite|crédits?)|crédits? insuffisants?" + _END,
        r"você (?:excedeu|atingiu|esgotou) (?:sua|seu|o) (?:cota|limite|crédito)|hai (?:superato|raggiunto"
        r"|esaurito) (?:la tua |il tuo |il )(?:quota|limite|credito)",
        r"(?:превышен|исчерпан)[ао]? (?:квота|лимит)(?: (?:запросов|токенов|обращений|использования|api))?" + _END,
        r"(?:您的)?(?:额度|配额)(?:不足|已用[完尽]|已耗尽"
        r"|已?超[出限])|(?:クォータ|利用上限|利用枠)(?:を超|に達)|할당량(?:이|을)? ?(?:초과|소진)",
        r"(?:(?:das |ihr |dein )?(?:api-)?(?:kontingent|limit) (?:ist |wurde )?(?:erschöpft|aufgebraucht|überschritten)"
        r"|se ha (?:superado|excedido|alcanzado|agotado) (?:la|el|su) (?:cuota|límite)(?: de (?:uso|tokens))?"
        r"|(?:a |sua )?cota (?:foi )?(?:excedida|atingida|esgotada)|(?:la )?quota (?:è stata )?(?:superata|esaurita)"
        r"|(?:(?:u|je) hebt )?(?:uw |je |het )?(?:quotum|limiet) (?:is |werd )?(?:overschreden|bereikt)"
        r"|kota(?:n[ıi]z)? (?:aş[ıi]ld[ıi]|doldu)"
        r"|(?:przekroczono|wyczerpano|osiągnięto) (?:limit|limity|przydział)(?: (?:zapytań|żądań|tokenów|użycia))?"
        r"|تم تجاوز (?:الحصة|الحد)(?: \S+){0,2}|(?:आपका )?कोटा (?:समाप्त|पार) (?:हो )?गया(?: है)?"
        r"|(?:bạn )?đã vượt quá (?:hạn mức|hạn ngạch|giới hạn)(?: (?:yêu cầu|sử dụng))?)"
        rf"(?:{_STOP}|{_LATER})",
    ),
    _Known(
        "the request was too long",
        r"\b(?:prompt|context|too long)\b",
        rf"(?:the |your |this )?(?:prompt|input|context|request|conversation)(?: length| window)? (?:is |was"
        rf" )?too (?:long"
        rf"|large)(?:{_END}| for (?:the |this |requested )?model)",
        rf"(?:this|the) model['’]s maximum context length (?:is|was)|(?:maximum )?context (?:length|window|limit)"
        rf"(?: (?:was|has been|is))? (?:exceeded|full|reached){_END}|context_length_exceeded{_STOP}",
        r"input length and `?max_tokens`? exceed|input is too long for requested model"
        r"|the input token count .{0,40}exceeds the maximum",
    ),
    _Known(
        "the connection failed",
        r"\b(?:connect\w*|network|time-?outs?|timed out|overload\w*|internet|wi-?fi|vpn|offline|unavailable"
        r"|service|error)\b|verbindung|conexi|connexion|conness|连接|网络|接続|연결|соединени",
        r"(?:api |network |the )?connection (?:error|failed|lost|aborted|closed|reset(?: by peer)?|refused"
        r"|timed out)(?: by (?:the )?\w+)?(?: after \w+ \w+)?\s*[.!)]*\s*$",
        r"upstream connect error or disconnect|stream disconnected before completion|net::err_\w+"
        rf"{_STOP}|(?:econnrefused|econnreset|etimedout|enotfound|eai_again)(?: [\w.:-]+)?{_STOP}",
        rf"(?:[\w-]+ )?(?:call|request) failed with status(?: code)? [45]\d\d{_END}",
        r"(?:network error|fetch failed|socket hang up|(?:the )?(?:request|api call|operation|stream)(?: was)? "
        r"(?:timed out|aborted|interrupted)(?: after [\w.]+ ?\w*)?)\s*[.!]?\s*$",
        rf"(?:(?:the|this|our) )?(?:\S+ )?{_SERVICE} (?:is|are)? ?(?:currently |temporarily )?(?:overloaded"
        rf"|unavailable|at capacity|down){_END}|(?:the )?(?:server|{_SERVICE}) is (?:currently |temporarily"
        rf" )?busy{_LATER}",
        r"overloaded(?:_error)?\s*[.!]?\s*$|(?:service|server|model) (?:unavailable|overloaded|error)\s*[.!]?\s*$"
        r"|internal server error\s*[.!]?\s*$|bad gateway\s*[.!]?\s*$|gateway time-?out\s*[.!]?\s*$",
        r"(?:verbindungsfehler|netzwerkfehler|error de (?:conexión|red)|erreur de (?:connexion|réseau)|errore di "
        r"(?:connessione|rete)|erro de (?:conexão|rede)|ошибка (?:соединения|подключения|сети)"
        r"|连接(?:错误|失败|超时)|网络(?:错误|异常)|(?:接続|ネットワーク)エラー(?:が発生しました)?"
        r"|(?:연결|네트워크) 오류)\s*[.!。]?\s*$",
    ),
    _Known(
        "a content filter",
        r"\b(?:filter\w*|polic(?:y|ies)|moderation|blocked|flagged|safety)\b",
        r"(?:the |your |this )?(?:response|output|content|prompt|request|completion|input)(?: was| has been)? "
        r"(?:filtered|blocked|flagged|rejected|refused)"
        r" (?:by|due to|as|because of|for) (?:\S+ ){0,8}?(?:content|safety|polic|moderation|filter|management)",
        r"output blocked by content filtering policy|response (?:was )?(?:filtered|blocked)\s*[.!]?\s*$"
        r"|i['’]?m sorry, but i was not able to (?:generate|produce) (?:a|that) response due to (?:content|safety)",
    ),
    _Known(
        "access to the model was refused",
        r"\b(?:api[ _-]?keys?|log ?in|logged|tokens?|auth\w*|credentials?|passwords?)\b",
        rf"(?:invalid|incorrect|missing|expired)(?: or (?:missing|expired|invalid))? (?:api[ _-]key"
        rf"|authentication|auth token|x-api-key)(?: provided)?{_END}",
        rf"(?:your |the |provided )?api[ _-]?key (?:is |was )?(?:invalid|incorrect|missing|expired|not valid){_END}"
        r"|the security token included in the request is (?:expired|invalid)|(?:this|your) organization has"
        r" been disabled"
        rf"|the model \S+ does not exist or you do not have access|(?:model_not_found|invalid_api_key){_STOP}",
        rf"(?:not logged in|please run /login|oauth token (?:has )?(?:been )?(?:expired|revoked)|no api key "
        rf"(?:found|provided|set))(?:{_END}| )",
    ),
    _Known(
        "no answer was generated",
        r"\b(?:empty|(?:no|not) (?:response|output|answer|reply))\b",
        r"[(\[]?\s*(?:(?:no|empty) (?:response|output|completion|content|reply)|no (?:answer|result)(?= (?:was "
        r"|has been )?(?:generated|returned|received|produced)))"
        r"(?: (?:was|has been))?(?: (?:generated|returned|received|produced|available|requested))?"
        r"(?: (?:by|from) (?:the )?(?:model|agent|llm|api|assistant))?\s*[)\]]?\s*[.!]?\s*$",
        r"(?:the )?(?:model|agent|llm)(?: has)? (?:returned|produced|generated|gave) (?:an empty|no) (?:response"
        r"|output|answer|content)\s*[.!]?\s*$|\[?request interrupted by user",
    ),
)


def service_message(text: str, asked: Iterable[str] = (), results: Iterable[str] = ()) -> str | None:
    """What kind of service message a text is, in few words; None where it is none.

    Args:
        text: What stands where an answer should.
        asked: What was asked: where it speaks of the same, the text is an answer.
        results: What tools returned. Where one of them speaks of an account's limit, a text about that is an answer.

    >>> service_message("Credit balance is too low")
    "an account's limit"
    >>> service_message("Credit balance is too low", ["What is my credit balance?"]) is None
    True
    """
    stated = " ".join(text.split()).strip(_AROUND)
    if not stated or len(stated) > _LONGEST:
        return None
    begins = _OPENING.match(stated)
    starts = {0, begins.end() if begins else 0}
    for known in _MESSAGES:
        if any(known.opens.match(stated, start) for start in starts):
            texts = chain(asked, results if known.kind == ACCOUNT else ())
            return None if any(_speaks_of(known, each) for each in texts) else known.kind
    return None


def _speaks_of(known: _Known, text: str) -> bool:
    if len(text) <= _SHORT:
        return known.subject.search(text) is not None or _QUOTES.search(text) is not None
    return known.opens.search(" ".join(text[:_MOST_LOOKED_AT].split())) is not None


def texts_in(value: object, most: int = 50) -> Iterator[str]:
    """The first texts in a value and names of its fields, however deep, in no particular order."""
    waiting = [value]
    while waiting and most:
        held = waiting.pop()
        if isinstance(held, str):
            most -= 1
            yield held
        elif isinstance(held, dict):
            waiting += [*held, *held.values()]
        elif isinstance(held, list | tuple):
            waiting += held
