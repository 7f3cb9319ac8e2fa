"""Tool failure: whether a call of a tool failed, by its status or by what it returned.

Most agents' tools return their errors as text, with the status *ok*, so that the model can react. A result counts
as a failure only where it begins as an error message does, or is JSON that declares one: a document about errors is a
result like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Final

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.span import Json, ToolCall

from .service_message import service_message, texts_in

_HEAD: Final = 400
"""Characters at the beginning of a result that are read."""
_THING: Final = (
    r"(?:\b(?:files?|director(?:y|ies)|folders?|paths?|pages?|urls?|hosts?|hostnames?|domain|dns|endpoints?|modules?|packages?"
    r"|librar(?:y|ies)|commands?|binary|executables?|tools?|functions?|methods?|attributes?|keys?|tokens?|certificates?"
    r"|credentials?|sessions?|cookies?|columns?|tables?|relations?|schemas?|databases?|indexe?s?|query|queries|containers?|images?|pods?"
    r"|namespaces?|clusters?|commits?|repositor(?:y|ies)|repo|elements?|selectors?|nodes?|devices?|drivers?|plugins?|resources?"
    r"|variables?|symbols?|parameters?|arguments?|inputs?|json|xml|html|csv|pdf|servers?|services?|apis?|backends?|gateways?"
    r"|prox(?:y|ies)|connections?|sockets?|networks?|requests?|responses?|calls?|operations?|process(?:es)?|jobs?|tasks?"
    r"|threads?|builds?|tests?|pipelines?|deployments?|uploads?|downloads?|imports?|exports?|quotas?|limits?|timeouts?"
    r"|deadlines?|memory|disk|storage|cache|lock|access|permissions?|authentication|authori[sz]ation|logins?|passwords?"
    r"|formats?|encodings?|protocols?|websites?|webpages?|screenshots?|browsers?|sandbox|scripts?|programs?|syntax|you"
    r"|datei|pfad|verzeichnis|ordner|seite|modul|paket|tabelle|spalte|werkzeug|funktion|befehl|ressource|dienst|sitzung"
    r"|zertifikat|schlüssel|anmeldung|verbindung|datenbank|system|archivo|fichero|carpeta|ruta|página|recurso|módulo|tabla"
    r"|columna|herramienta|función|servidor|servicio|sistema|arquivo|pasta|caminho|tabela|ferramenta|fichier|dossier|chemin"
    r"|ressource|colonne|outil|fonction|serveur|hôte|cartella|percorso|pagina|risorsa|modulo|tabella|colonna|strumento"
    r"|funzione|файл|папка|путь|страница|ресурс|модуль|таблица|столбец|инструмент|функция|сервер)\b"
    r"|文件|目录|路径|页面|网页|链接|工具|函数|模块|资源|接口|服务|主机|ファイル|ページ|フォルダ|파일|페이지|폴더"
    r"|\w\.(?:py|txt|csv|json|pdf|md|xml|html?|docx?|xlsx?|png|jpe?g|ya?ml|sql|sh|[jt]s|log|zip)\b|[/\\]\w+[/\\]|://"
    r"|\w_\w|\w\(\)|::)"
)
"""What programs name that fail at their own work. Customers, orders and rooms that are not there are answers."""
_TRACEBACK: Final = "Traceback (most recent call last)"
_ERROR_TEXT: Final = re.compile(
    r"""\W*(?!(?:no(?!\s+(?:se|such)\b)|zero|without|keine?|sin|ning[uú]n)\s)(?:
      (?:http\s*(?:status|error|code)?\s*(?:code)?|status\s*code)[\s:=]*(?P<code>[45]\d\d)\b(?!\s+(?:means|is)\b)
      |(?P<bare>[45]\d\d)\s+(?:client\s+error|server\s+error|not\s+found|forbidden|unauthori[sz]ed|bad\s+request|
        internal\s+server\s+error|too\s+many\s+requests|service\s+unavailable|bad\s+gateway|gateway\s+time-?out)
      |(?:uncaught\s+|unhandled\s+)?(?-i:(?P<kind>(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Timeout)))\s*[:(\[]
      |(?:\w+_)?error[\]>]|error\[\w+\]
      |(?:\w+[^\S\n]+){0,2}errors?[*_`]{0,3}[^\S\n]*(?:[:!](?!\s*(?:0|none|null)\b)|\s[\-–]\s|\#\d|$)
      |(?:tool\s+|fatal\s+|internal\s+|unexpected\s+|runtime\s+|api\s+|execution\s+|validation\s+)?error\s+
        (?:calling|executing|running|while|when|in\s+(?:line|code|tool|function|file|step)|during|occurred|code|parsing|
        fetching|reading|processing|invoking|accessing|loading|searching|opening|downloading|querying|retrieving)\b
      |(?:sorry[\s,]+)?(?:there\s+was|we\s+encountered|i\s+encountered|encountered)\s+an?\s+(?:\w+\s+)?
        (?:(?:error|exception)\b|(?:problem|issue)\s+(?:\w+ing\b|with\s+(?:the|your|this)\s+(?:request|connection|server|query|tool|call)\b))
      |an?\s+(?:\w+\s+){0,2}(?:error|exception)\s+(?:has\s+)?occurred
      |exception\s*[:(](?=[^\n]*(?:\b(?:fail|error|invalid|denied|refused|exhaust|exceed|missing|unable|unknown|expired
        |timed?[ -]?out|cannot|can['’]t|could\s+not|couldn['’]t|unexpected|unsupported|closed|reset|null|none
        |empty|bad|no\s+such|not\s+(?:found|allowed|supported
        |valid|available|an?\b|defined|implemented))|\d{3}\b|[\w.]*(?:Error|Exception)\b))
      |exception\s+(?:while|in\s+thread|when|occurred)\b
      |(?:code\s+|tool\s+|function\s+)?(?:execution|call|request|command|query|operation|parsing|validation|connection|
        build|compilation|import|upload|download|authentication|login)\s+(?:failed|timed\s+out|refused|reset)\b
      |failed\s+(?:to(?!\s+(?:find|locate)\s+(?:any|an?)\b)|with|because)\b|failure\s*:(?!\s*(?:0|none)\b)|fatal\s*:|panic\s*:|npm\s+err!|something\s+went\s+wrong\b
      |(?:the\s+)?(?:(?:request|connection|operation|command|tool|call)\s+)?timed\s+out\b|time-?out\s*[:(](?!\s*\d+\s*(?:ms|s|m|min)?\s*(?:$|\n))
      |(?:permission|access)\s+denied\b(?!\s+events?\b)|unauthori[sz]ed\s*(?:$|[:.])|too\s+many\s+requests\b(?!\s+for\s+(?!url|this|the\b))
      |rate\s+limit(?:ed)?\s+(?:exceeded|reached|hit)\b
      |(?:unable\s+to|could\s+not|couldn['’]t|cannot|can['’]t)\s+(?:(?:connect|open|read|load|parse|fetch|
        reach|retrieve|access|resolve|execute|process|complete|import|query|download)\b|(?:find|locate)\s+(?:[^\s.]+\s+){0,3}?\S{0,40}THING)
      |(?:unknown|no\s+such|invalid|unrecogni[sz]ed)\s+(?:tool|function|command|method|argument|arguments|parameter|
        parameters|input|json|syntax)\b
      |(?:tool|function)\s+\S{1,80}\s+(?:not\s+found|does\s+not\s+exist|is\s+not\s+(?:a\s+valid|available))
      |(?:the\s+)?(?:tool|function)\s+call\s+(?:arguments\s+are\s+malformed|with\s+name\s+\S{1,80}\s+is\s+not\s+part\s+of)\b
      |missing\s+required\s+(?:argument|parameter)s?\b
      |[\w.]{1,80}\(\)\s+(?:got\s+an?\s+unexpected\s+keyword|got\s+multiple\s+values|missing\s+\d+\s+required|takes\s+\d+\s+positional)\b
      |expecting\s+[^:\n]{1,60}:\s+line\s+\d+\s+column\s+\d+
      |\S{1,80}\s+is\s+not\s+a\s+valid\s+(?:tool|function|command)\b
      |errno\s+-?\d+\]|mcp\s+error\s+-?\d+|curl:\s+\(\d+\)|(?:econn(?:refused|reset|aborted)|enotfound|etimedout|enoent)\b
      |\d+\s+validation\s+errors?\s+for\b
      |[\w./+-]{1,60}(?::\d+){0,2}:\s(?:fatal\s)?error:
      |file\s+"[^"\n]{1,200}",\s+line\s+\d+
      |[^\s:][^\n:]{0,60}:(?:\s[^\n:]{0,120}:){0,2}\s(?:no\s+such\s+file\s+or\s+directory|command\s+not\s+found|not\s+found|
        permission\s+denied|connection\s+refused|is\s+a\s+directory|not\s+a\s+directory)\s*(?:$|\n|:)
      |(?:fehler|erreur|errore|erro|ошибка|错误|エラー|오류)\s*[:：]
      |es\s+ist\s+ein\s+(?:\w+\s+)?fehler\s+aufgetreten|fehler\s+(?:beim|bei\s+der)\b|zugriff\s+verweigert
      |zeitüberschreitung\b|\w+\s+(?:ist\s+)?fehlgeschlagen\b
      |(?:se\s+(?:ha\s+)?produ(?:jo|cido)|ocurrió|ha\s+ocurrido)\s+un\s+error|error\s+al\s|acceso\s+denegado
      |no\s+se\s+(?:pudo|ha\s+podido)\b|no\s+se\s+encontró\s+(?:el|la)\s+(?:archivo|fichero|recurso|página|ruta)
      |(?:une\s+erreur|l['’]erreur\s+suivante)\s+(?:est\s+survenue|s['’]est\s+produite)|erreur\s+lors\b|accès\s+refusé
      |(?:ocorreu|houve)\s+um\s+erro|erro\s+(?:ao|na|no)\s|acesso\s+negado
      |si\s+è\s+verificato\s+un\s+errore|errore\s+(?:durante|nel|di\s+rete)\b|impossibile\s+(?:connettersi|trovare|aprire)
      |произошла\s+ошибка|ошибка\s+(?:при|в)\s|не\s+удалось\b|доступ\s+запрещ[её]н
      |(?:请求|执行|操作|调用|连接|加载|查询|获取|解析|处理|下载)(?:失败|超时|出错|错误)|发生(?:了)?(?:一个)?错误|出错(?!率)
      |エラーが発生|[^\s。]{1,20}に失敗しました|오류가\s*발생|[^\s.]{1,20}에?\s*실패(?:했|하였)
    )""".replace("THING", _THING),
    re.IGNORECASE | re.VERBOSE,
)
_SHORT: Final = 160
"""Characters of a text of one line that is read as a message, not as a document."""
_SHORT_FAILURE: Final = re.compile(
    r"""(?-i:[A-Z]\w*(?:Error|Exception))\s*$
    |.*(?:\b(?:is|are)\s+(?:currently\s+)?overloaded\b|\bnet::err_|certificate_verify_failed|segmentation\s+fault|core\s+dumped|out\s+of\s+memory)
    |.*\breturned\s+(?:an?\s+)?(?:error|status|http)?:?\s*(?:code\s+)?[45]\d\d\b
    |(?:response\s+)?status(?:\s+code)?[:\s]+[45]\d\d\b|error\s+[A-Z]{2,4}\d+:|\S+:\s\*\*\*\s.{0,40}\berror\b
    |(?:payment|card|transaction|charge)\s+(?:was\s+)?declined\b|(?:\S+\s+){1,4}(?:halted|aborted|crashed)\s*(?:$|[.:!(])|(?:\S+\s+){1,4}(?:closed|terminated|stopped)\s+unexpectedly
    |(?:deadlock|captcha)\s+detected|merge\s+conflict\b|no\s+such\s+\w+:|failed\s+\S+::|blocked\s+by\b
    |killed\s*$|invalid\s+(?:[\w-]+\s+){0,2}(?:key|token|request|credentials?|password|url|id|identifier|format|date|
      value|query|response|path|option|state|signature|address|number|parameters?|selector)\b(?!\s+is\b)
    |(?:authentication|authori[sz]ation|login|an?\s+api\s+key)\s+(?:is\s+)?required\b
    |.{0,60}?\b(?:antwortet\s+nicht|falha\s+ao\b|konnten?\s+(?:\w+\s+){0,3}nicht\b|konnte\s+keine\s+verbindung|ungültige[rsn]?\s
      |tiempo\s+de\s+espera\s+agotado|kein(?:en)?\s+zugriff\b)
    |.{0,16}?(?:无效的|网络错误|无法(?:连接|访问|打开|加载|读取|解析|完成)|没有权限|できませんでした)""",
    re.IGNORECASE | re.VERBOSE,
)
_OF_A_THING: Final = re.compile(
    r"""(?!no\b)(?!.*\b(?:0\s+failed|means)\b)(?P<subject>(?:\S+\s+){1,7}?)(?:(?:was|is|were|are|has|have)\s+)?(?:currently\s+)?
      (?:not\s+found|does(?:\s+not|n['’]t)\s+exist
      |do\s+not\s+exist|not\s+(?:available|permitted|allowed|authori[sz]ed|supported|reachable)\s*(?:$|[.:!])
      |(?:could\s+not|couldn['’]t|cannot|can['’]t)\s+be\s+(?:found|loaded|opened|read|reached|accessed|parsed|resolved|
        completed|processed|retrieved|executed|established)
      |(?:failed|unreachable|unavailable|timed\s+out|expired|denied|refused|exceeded)\s*(?:$|[.:!(]|for\b|with\b))
    |(?P<subject_elsewhere>.{0,60}?\b(?:nicht\s+(?:gefunden|erreichbar|verfügbar)|existiert\s+nicht|abgelaufen\b
      |n(?:o|ão)\s+(?:está\s+)?(?:encontrad[oa]|existe|válid[oa]|disponible(?!\s+(?:hasta|el|los)\b))\b|introuvable|n['’]existe\s+pas
      |non\s+(?:trovat[oa]|esiste)\b|не\s+(?:найден[оаы]?|существует)\b))
    |(?P<line>.{0,16}?(?:不存在|未找到|找不到|无法找到|見つかりません|찾을\s*수\s*없).{0,40})""",
    re.IGNORECASE | re.VERBOSE,
)
"""That something is not there, or failed: an error where it is a program's thing, else an answer."""
_A_THING: Final = re.compile(_THING, re.IGNORECASE)
_PUNCTUATION: Final = ".,:;!?()[]'\"*#"
_SHORT_WORDS: Final = frozenset({
    "not", "can't", "cannot", "couldn't", "doesn't", "failed", "unreachable", "unavailable", "overloaded", "out",
    "expired", "denied", "refused", "exceeded", "invalid", "required", "killed", "fault", "dumped", "memory",
    "returned", "status", "error", "declined", "halted", "aborted", "crashed", "unexpectedly", "detected",
    "conflict", "such", "blocked", "nicht", "keine", "agotado", "no", "abgelaufen", "introuvable", "ao", "existe",
    "n'existe", "non", "esiste", "kein", "keinen",
})  # fmt: skip
"""At least one word of each ASCII alternative of ``_SHORT_FAILURE`` and ``_OF_A_THING``."""
_PRINTED: Final = re.compile(
    r"""\{\s*'(?:error|errors|exception|error_message|errorMessage)'\s*:\s*(?!None|''|False|0|\[\]|\{\})"""
)
"""A dictionary as Python prints it."""
_HTTP_PHRASES: Final = frozenset({
    "not found", "internal server error", "bad request", "unauthorized", "forbidden", "service unavailable",
    "bad gateway", "gateway timeout", "too many requests", "method not allowed", "conflict", "request timeout",
})  # fmt: skip
_CLASS: Final = re.compile(r"[A-Z]\w*(?:Error|Exception|Timeout)")
_FAILED_WORDS: Final = frozenset({"error", "errored", "failed", "failure", "exception", "fatal", "timeout"})
_ERROR_KEYS: Final = ("error", "errors", "exception", "errormessage", "errorcode", "err", "fault")
"""These and the keys below as ``_plain`` gives them."""
_STATUS_KEYS: Final = ("status", "state", "resultstatus", "outcome", "result")
_CODE_KEYS: Final = ("statuscode", "httpstatus", "httpcode", "code", "status")
_WRAPPERS: Final = ("response", "result", "output", "content", "body", "text")
_MOST_KEYS: Final = 100
_OF_A_SUBJECT: Final = re.compile(r"(?:(?:.*_)?(?:id|uuid)|.*[a-z]I[dD])$")
"""Keys that hold the id of a job, an order or the like."""
_OF_THE_CALL: Final = re.compile(r"(?:request|call|trace|span|correlation|error|session)_?id$", re.IGNORECASE)
"""Those among them that name the call itself."""
_SUCCESS_KEYS: Final = ("success", "ok", "succeeded")
_FALSE: Final = (False, "false", "False", "no")
_EXIT_KEYS: Final = ("exitcode", "returncode", "exitstatus", "exit", "rc")
_MAY_BE_A_RESULT: Final = frozenset({"no answer was generated", "the request was too long"})
"""Messages that a plain tool may return as its result."""
_NO_ERROR: Final = (None, False, "", 0, "0", "none", "None", "null", "ok", "OK", "no error", "No error")


_EXIT_TEXT: Final = re.compile(
    r"""(?:^|\n)\W{0,6}(?:(?:the\s+)?(?:process|command|program|script|execution|shell|it)\s+)?(?:(?:was|has|have)\s+)?
      (?:exited|finished|completed|failed|terminated|ended|returned|exit)?[\s_]*(?:with\s+|status\s+)?(?:non-?zero\s+)?
      (?:exit[\s_-]*(?:code|status|value)|return[\s_-]*(?:code|status)|code|status)\s*(?:was|is|of)?['"\s:=>]*(?P<exit>-?\d{1,5})\b(?P<rest>[^\n]{0,80})""",
    re.IGNORECASE | re.VERBOSE,
)
"""A line on how a command ended, as sandboxes and shells write it: ``exitcode: 1 (execution failed)``."""
_EXIT_WORDS: Final = re.compile(r"exit|return[\s_-]*(?:code|status)|with\s+code", re.IGNORECASE)
_EXIT_LINES: Final = 3
_EXECUTION_FAILED: Final = re.compile(r"\bfailed\b|\berror\b", re.IGNORECASE)
_COMPLAINS: Final = re.compile(
    r"""^(?:traceback\s\(most|[\w.]*(?:error|exception)\b\s*:|(?:\S+:\s)*(?:fatal|error)\b|.{0,80}\b(?:command\snot\sfound|no\ssuch\sfile
      |permission\sdenied|not\srecognized|cannot\s(?:open|access|find|stat)|syntax\serror|segmentation\sfault)\b
      |.{0,80}\bstderr\b['"]?\s*[>:=]\s*['"]?(?!(?:none|null|empty)\b)[^\s'"<>,}])""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_MCP_FAILED: Final = re.compile(r"\bis_?error\W{0,3}[:=]\s*true\b", re.IGNORECASE)
_MCP_RESULT: Final = re.compile(r"\A\W*(?:CallToolResult\b|meta=|_?meta\b|content\W{0,3}[:=])|\bTextContent\(")


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
        return text_failure(result) or _service_failure(result, call)
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
    if (exited := _exit_of_text(text)) is not None:
        return f"exit code {exited}"
    if _MCP_RESULT.search(head) and _MCP_FAILED.search(head + text[-_HEAD:]):
        return "error in the result"
    match = _ERROR_TEXT.match(head)
    if match is None:
        return "error text" if _is_short_failure(text) or _PRINTED.match(head) else None
    if code := match["code"] or match["bare"]:
        return f"HTTP {code}"
    if match["kind"]:
        return label(match["kind"].rpartition(".")[2])
    return _class_in(head) or "error text"


def _service_failure(text: str, call: ToolCall) -> str | None:
    """What a model's service put where the answer of a tool, which may be an agent, should be."""
    if len(text) > 2 * _SHORT:
        return None
    found = service_message(text, chain([call.name.replace("_", " ")], texts_in(decoded(call.arguments))))
    return None if found in _MAY_BE_A_RESULT else found


def _exit_of_text(text: str) -> int | None:
    """The code with which a command failed, by its first or last lines.

    A code alone may be an answer (``grep`` found nothing, tests fail), so 1 counts only where the line or the output
    complains.
    """
    if _EXIT_WORDS.search(text[:_HEAD] + "\n" + text[-_HEAD:]) is None:
        return None
    lines = text.strip().splitlines()
    for line in dict.fromkeys([*lines[:_EXIT_LINES], *lines[-_EXIT_LINES:]]):
        found = _EXIT_TEXT.match(line[:_HEAD])
        if found is None or not _EXIT_WORDS.search(found[0]):
            continue
        code = int(found["exit"])
        if code == 0:
            return None
        complains = _EXECUTION_FAILED.search(found[0]) is not None or _COMPLAINS.search(text[: 10 * _HEAD]) is not None
        return code if code not in (1, -1) or complains else None
    return None


def _is_short_failure(text: str) -> bool:
    if len(text) > 2 * _SHORT:
        return False
    line = text.strip()
    if len(line) > _SHORT or "\n" in line:
        return False
    if line.isascii() and " " in line and "_" not in line and "::" not in line:
        # Splitting takes a fifteenth of the expression's time, and most results hold none of its words.
        words = {word.strip(_PUNCTUATION) for word in line.lower().split()}
        if _SHORT_WORDS.isdisjoint(words):
            return False
    if _SHORT_FAILURE.match(line) is not None:
        return True
    found = _OF_A_THING.match(line)
    return found is not None and _A_THING.search(found[found.lastgroup or 0]) is not None


def _declared(stated: Mapping[str, Json], depth: int = 1) -> str | None:
    """Whether a JSON object declares an error, at its top level or in the one thing that it wraps."""
    result = {_plain(key): value for key, value in list(stated.items())[:_MOST_KEYS]}
    found = _http_code(result) or _error_key(result) or _exit_code(result)
    if found is not None:
        return found
    if _says_failed(result) or (_states_failure(result) and not _names_a_subject(stated)):
        return "error in the result"
    return _wrapped(result) if depth else None


def _http_code(result: Mapping[str, Json]) -> str | None:
    for key in _CODE_KEYS:
        code = result.get(key)
        if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599 and _is_code(key, result):
            return f"HTTP {code}"
    return None


def _error_key(result: Mapping[str, Json]) -> str | None:
    for key in _ERROR_KEYS:
        held = result.get(key)
        if isinstance(held, str | int | bool) and held not in _NO_ERROR:  # a fraction is a measured error
            return (_class_in(held) if isinstance(held, str) else None) or "error in the result"
        if isinstance(held, list | dict) and held:
            return "error in the result"
    return None


def _says_failed(result: Mapping[str, Json]) -> bool:
    if result.get("iserror") is True or result.get("failed") is True or result.get("type") == "error":
        return True
    if any(result[key] in _FALSE for key in _SUCCESS_KEYS if key in result):
        return True
    return len(result) <= 2 and any(_reads_as_failure(result.get(key)) for key in ("message", "detail"))


def _states_failure(result: Mapping[str, Json]) -> bool:
    words = [word for key in _STATUS_KEYS if isinstance(word := result.get(key), str)]
    return any(word.strip().lower() in _FAILED_WORDS for word in words) and _speaks_of_the_call(result)


def _names_a_subject(stated: Mapping[str, Json]) -> bool:
    """Whether it names a job, an order or the like by its id: the state may be that object's, not the call's."""
    keys = list(stated)[:_MOST_KEYS]
    return any(_OF_A_SUBJECT.match(key) is not None and _OF_THE_CALL.search(key) is None for key in keys)


def _plain(key: str) -> str:
    """A key without what programs write differently: ``error_code``, ``errorCode``."""
    return key.replace("_", "").lower()


def _wrapped(result: Mapping[str, Json]) -> str | None:
    """The failure in what an object wraps, where it holds little else."""
    if len(result) > 2:
        return None
    for key in _WRAPPERS:
        held = result.get(key)
        if isinstance(held, dict) and (failure := _declared(held, depth=0)) is not None:
            return failure
        if isinstance(held, str) and (failure := text_failure(held)) is not None:
            return failure
    return None


def _exit_code(result: Mapping[str, Json]) -> str | None:
    """The code with which a command failed. A code alone may be an answer (grep found nothing), so it must complain."""
    for key in _EXIT_KEYS:
        code = result.get(key)
        if isinstance(code, int) and not isinstance(code, bool) and code != 0:
            complains = result.get("stderr") or code > 1 or _complaint_in(result)
            return f"exit code {code}" if complains else None
    return None


def _complaint_in(result: Mapping[str, Json]) -> bool:
    """Whether the output beside a code complains."""
    held = (result.get(key) for key in ("stdout", *_WRAPPERS))
    return any(isinstance(text, str) and _COMPLAINS.search(text[: 10 * _HEAD]) is not None for text in held)


def _reads_as_failure(text: Json) -> bool:
    if not isinstance(text, str):
        return False
    return text.strip(" .!").lower() in _HTTP_PHRASES or text_failure(text) is not None


def _is_code(key: str, result: Mapping[str, Json]) -> bool:
    """``code`` and ``status`` are codes of HTTP only beside a message: a product's code may be 404 as well."""
    return key not in ("code", "status") or any(name in result for name in ("message", "error", "detail", "reason"))


def _speaks_of_the_call(result: Mapping[str, Json]) -> bool:
    """Whether a state is the call's own: alone or with a message it is; beside much else it may be an order's."""
    return len(result) <= 3 or any(name in result for name in ("message", "detail", "reason", "traceback", "stderr"))


def _class_in(text: str) -> str | None:
    found = _CLASS.search(text[:_HEAD])
    return label(found[0]) if found else None
