# ruff: noqa: E501, ISC004  # word lists read best as long lines
"""Word lists for lexical answers in English, German, Spanish and Hindi. Data, not rules; all in normalised form."""

from __future__ import annotations

from .text import normalise


def _set(*lines: str) -> frozenset[str]:
    return frozenset(normalise(word) for line in lines for word in line.split())


STOPWORDS = _set(
    "a an the and or but if then so as at by for from in into of off on onto out over to up with without within about than",
    "is are was were be been being am do does did done doing has have had having will would shall should can could may",
    "might must this that these those it its he she they them his her their him i you we us our your my me mine who whom",
    "which what when where why how there here also just very too quite really only both all any some each every such",
    "while during after before again once because since until upon via per etc get got s t re ve ll d m",
    "der die das den dem des ein eine einen einem einer eines und oder aber wenn dann so als am an auf aus bei bis durch",
    "für gegen im in ins ist sind war waren wird wurde wurden werden hat haben hatte hatten sein seine seinen seinem",
    "seiner ihr ihre ihren ihrem er sie es wir ich du mich mir uns sich mit nach noch nur ob ohne sehr über um unter vom",
    "von vor wie zu zum zur auch da dass damit dies diese dieser dieses diesem bereits schon was wer wo während kann",
    "el la los las un una unos unas y o pero si de del al a en con por para sin sobre entre es son era fue fueron ser ha",
    "han había haber está están estaba que quien cual cuando donde como su sus le les lo se me mi mis te tu nos más muy",
    "también ya este esta estos estas ese esa eso esto durante tras después antes porque",
    "है हैं था थी थे हो होना हुआ हुई हुए ने को का के की में से पर और या तो ही भी यह वह ये वे इस उस कि जो एक लिए साथ तक बाद",
    "पहले अपना अपनी अपने उनका उनकी उनके उसका उसकी उसके कर करके किया की गया गई गए दिया दी रहा रही रहे द्वारा जब कुछ",
)
"""Words that carry no content."""

AGENT_WORDS = _set(
    "agent agents advisor adviser representative rep assistant executive csr operator bot associate specialist colleague",
    "mitarbeiter mitarbeiterin berater beraterin agentin sachbearbeiter agente asesor asesora operador operadora",
    "representante एजेंट एजेन्ट प्रतिनिधि कर्मचारी",
)
CUSTOMER_WORDS = _set(
    "customer customers caller client user member consumer guest",
    "kunde kunden kundin anrufer anruferin cliente clienta usuario usuaria ग्राहक कॉलर उपभोक्ता",
)

VAGUE = _set(
    "polite politely politeness courteous courteously courtesy professional professionally professionalism friendly",
    "friendliness nice nicely kind kindly good great excellent well better best perfect perfectly fine proper properly",
    "appropriate appropriately adequate adequately correct correctly effective effectively efficient efficiently helpful",
    "help helped helping support supported service quality satisfactory satisfied satisfaction positive overall throughout",
    "generally handled handle handling performed performance job manner tone attitude rapport empathy empathetic",
    "empathetically patient patience patiently respectful respectfully clear clearly communication communicated",
    "communicate skill skills knowledgeable knowledge confident confidently smooth smoothly thorough thoroughly",
    "outstanding amazing wonderful fantastic superb exemplary impressive attentive attentively listening listened warm",
    "warmly calm calmly engaged engaging successful successfully everything something anything nothing thing things always",
    "call conversation interaction situation case part way time times experience meets expectations expected",
    "höflich höfliche höflicher höflichkeit freundlich freundliche freundlicher freundlichkeit professionell professionelle",
    "professioneller gut gute guter guten sehr toll super hilfsbereit kompetent kompetente zufrieden anruf gespräch service",
    "insgesamt angemessen ton verhalten geduldig respektvoll klar alles etwas nichts hilfe geholfen",
    "amable amabilidad educado educada cortés cortesía profesional profesionalidad profesionalismo bueno buena buen bien",
    "excelente atento atenta correcto correcta correctamente adecuado adecuada servicio calidad llamada conversación trato",
    "general momento todo nada algo ayuda ayudó respetuoso paciente claro",
    "विनम्र विनम्रता अच्छा अच्छी अच्छे अच्छा पेशेवर सहायक बहुत सही ठीक कॉल बातचीत सेवा व्यवहार मदद शिष्ट धैर्य उत्कृष्ट सब",
)
"""Praise and generalities: they point at no moment."""

RUBRIC_WORDS = _set(
    "score scored scores scoring point points mark marks full partial zero question criteria criterion requirement",
    "requirements required compliance compliant policy policies protocol procedure procedures guideline guidelines standard",
    "standards script scripted scripts pass passed fail failed met follow followed follows following needed need",
    "see refer listen heard siehe véase therefore hence thus accordingly evidence evident transcript timestamp mandatory step",
    "punkte punkt frage vorgabe vorgaben leitfaden richtlinie skript laut gemäß erfüllt bestanden transkript",
    "puntos puntuación pregunta requisito requisitos guion política protocolo cumple cumplió según transcripción",
    "अंक प्रश्न स्क्रिप्ट नियम नीति अनुसार पूरा पूर्ण आवश्यक प्रतिलेख",
)
"""Talk about the scorecard itself: neither for nor against."""

REPORTING = _set(
    "given said says say saying told tell tells telling asked ask asks asking stated state states stating mentioned mention",
    "mentions mentioning explained explain explains explaining informed inform informs informing provided provide provides",
    "providing gave give gives giving offered offer offers offering used use uses using made make makes making began begin",
    "started start ended end opened closed read reads reading quoted responded replied answered answering noted advised",
    "indicated requested request requests requesting told proceeded ensured ensure reminded",
    "sagte sagt fragte fragt gefragt erklärte erklärt teilte mitgeteilt erwähnte erwähnt bot angeboten anbieten gab las",
    "verwendete nannte genannt antwortete informierte informiert bat gebeten wies vorgelesen",
    "dijo dice preguntó pregunta explicó explica informó informa mencionó menciona ofreció ofrece dio da leyó usó",
    "respondió indicó solicitó pidió pide",
    "कहा बोला मांगा मांगी माँगा माँगी पूछा बताया बताई समझाया उल्लेख पेशकश पढ़ा जवाब",
)
"""Verbs that introduce what was said: with one of them, one matching content word is enough."""

NEGATIONS = _set(
    "not never no none neither nor cannot without didn doesn don wasn weren isn aren hasn haven hadn couldn wouldn shouldn",
    "t failed fails fail omitted skipped missing missed forgot neglected lacks lacked unable refused",
    "nicht nie niemals kein keine keinen keiner keinem weder ohne versäumte vergaß verweigerte",
    "no nunca ningún ninguna ninguno jamás sin tampoco omitió olvidó",
    "नहीं न कभी बिना मत भूल ना",
)
"""Words that turn a statement round; ``t`` is what is left of *n't*."""

_ACTS = (
    (
        "greet greeted greeting greets greetings welcomed welcome salutation begrüßte begrüßt begrüßung saludó saluda saludo "
        "अभिवादन स्वागत नमस्कार",
        "hello|hi|good morning|good afternoon|good evening|welcome|thank you for calling|thanks for calling|guten tag|"
        "guten morgen|guten abend|hallo|grüß gott|willkommen|hola|buenos días|buenas tardes|buenas noches|bienvenido|"
        "bienvenida|नमस्ते|नमस्कार|स्वागत|सुप्रभात",
    ),
    (
        "apologised apologized apologise apologize apologises apologizes apology apologies apologizing apologising sorry "
        "entschuldigte entschuldigt entschuldigung disculpó disculpa disculpas माफी माफ़ी क्षमा",
        "sorry|apologise|apologize|apologies|apology|entschuldigung|entschuldigen|tut mir leid|lo siento|disculpe|disculpa|"
        "disculpas|perdón|perdone|माफ|माफ़|माफी|माफ़ी|क्षमा|खेद",
    ),
    (
        "thanked thanks thank thanking gratitude bedankte bedankt dankte agradeció agradece धन्यवाद",
        "thank you|thanks|danke|vielen dank|gracias|धन्यवाद|शुक्रिया",
    ),
    (
        "farewell goodbye closing closed verabschiedete verabschiedet verabschiedung despidió despedida विदा",
        "goodbye|bye|have a great day|have a good day|have a nice day|take care|auf wiederhören|auf wiedersehen|tschüss|"
        "schönen tag|adiós|hasta luego|que tenga|अलविदा|शुभ दिन|दिन शुभ",
    ),
    (
        "introduced introduce introduces introducing introduction vorgestellt stellte vorstellung presentó परिचय",
        "my name is|this is|i am|i'm|mein name ist|ich bin|ich heiße|me llamo|mi nombre es|le habla|soy|मेरा नाम|मैं",
    ),
    (
        "transferred transfer transfers transferring escalated escalate escalation weitergeleitet verbunden transfirió "
        "escaló derivó स्थानांतरित",
        "transfer|transferring|connect you|put you through|supervisor|escalate|escalating|weiterleiten|verbinde sie|"
        "verbinden|transferir|le paso|supervisora|सुपरवाइजर|ट्रांसफर",
    ),
)
ACTS: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = tuple(
    (_set(cues), tuple(dict.fromkeys(phrases.split("|")))) for cues, phrases in _ACTS
)
"""Acts of speech: words that name one → phrases by which it is performed, in any of the languages."""

CONTRASTS = _set("but however although though yet aber jedoch obwohl sondern pero aunque sino लेकिन परंतु मगर किंतु")
"""Words at which a negation ends."""
