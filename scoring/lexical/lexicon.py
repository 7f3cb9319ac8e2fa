# ruff: noqa: E501, ISC004  # word lists read best as long lines
"""Word lists for lexical answers, all in normalised form. Data, not rules.

Full lists for English, German, Spanish and Hindi. For French, Portuguese, Italian and Dutch only the words that keep a
denial from being read as its opposite: negations, parties, verbs of speech, the commonest acts of speech.
"""

from __future__ import annotations

from .text import normalise


def word_list(*lines: str) -> frozenset[str]:
    """The words of these lines, normalised."""
    return frozenset(normalise(word) for line in lines for word in line.split())


STOPWORDS = word_list(
    "a an the and or but if then so as at by for from in into of off on onto out over to up with without within about than",
    "is are was were be been being am do does did done doing has have had having will would shall should can could may",
    "might must this that these those it its he she they them his her their him i you we us our your my me mine who whom",
    "which what when where why how there here also just very too quite really only both all any some each every such",
    "second seconds put puts putting placed take takes took taken whether himself herself themselves itself myself yourself",
    "while during after before again once because since until upon via per etc get got s t re ve ll d m",
    "der die das den dem des ein eine einen einem einer eines und oder aber wenn dann so als am an auf aus bei bis durch",
    "für gegen im in ins ist sind war waren wird wurde wurden werden hat haben hatte hatten sein seine seinen seinem",
    "seiner ihr ihre ihren ihrem er sie es wir ich du mich mir uns sich mit nach noch nur ob ohne sehr über um unter vom",
    "von vor wie zu zum zur auch da dass damit dies diese dieser dieses diesem bereits schon was wer wo während kann",
    "el la los las un una unos unas y o pero si de del al a en con por para sin sobre entre es son era fue fueron ser ha",
    "han había haber está están estaba que quien cual cuando donde como su sus le les lo se me mi mis te tu nos más muy",
    "también ya este esta estos estas ese esa eso esto durante tras después antes porque",
    "है हैं था थी थे हो होना हुआ हुई हुए ने को का के की में से पर और या तो ही भी यह वह ये वे इस उस कि जो एक लिए साथ तक बाद",
    "le du au aux une dans sur avec que qu ou où il elle ils elles ce cet cette ces est été était avait ont avoir être à d l n",
    "os um uma dos das ao aos na nos nas em e que foi ter tem tinha seu sua",
    "il lo gli i un uno una di da della dello dei degli delle che è ha hanno aveva stato stata nel nella",
    "het een van voor met te aan op bij naar om dat heeft hebben had zijn werd zich",
    "पहले अपना अपनी अपने उनका उनकी उनके उसका उसकी उसके कर करके किया की गया गई गए दिया दी रहा रही रहे द्वारा जब कुछ",
)
"""Words that carry no content."""

AGENT_WORDS = word_list(
    "agent agents advisor adviser representative rep assistant executive csr operator bot associate specialist colleague",
    "mitarbeiter mitarbeiterin berater beraterin agentin sachbearbeiter agente asesor asesora operador operadora",
    "conseiller conseillère téléconseiller opérateur opératrice atendente operatore operatrice addetto medewerker medewerkster",
    "representante एजेंट एजेन्ट प्रतिनिधि कर्मचारी",
)
CUSTOMER_WORDS = word_list(
    "customer customers caller client user member consumer guest",
    "kunde kunden kundin anrufer anruferin cliente clienta usuario usuaria client cliente appelant klant beller ग्राहक कॉलर उपभोक्ता",
)

VAGUE = word_list(
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
"""Praise and generalities: they refer to no moment."""

RUBRIC_WORDS = word_list(
    "score scored scores scoring point points mark marks full partial zero question criteria criterion requirement",
    "requirements required compliance compliant policy policies protocol procedure procedures guideline guidelines standard",
    "standards script scripted scripts pass passed fail failed met follow followed follows following needed need",
    "see refer listen heard siehe véase therefore hence thus accordingly evidence evident transcript timestamp mandatory step",
    "punkte punkt frage vorgabe vorgaben leitfaden richtlinie skript laut gemäß erfüllt bestanden transkript",
    "puntos puntuación pregunta requisito requisitos guion política protocolo cumple cumplió según transcripción",
    "अंक प्रश्न स्क्रिप्ट नियम नीति अनुसार पूरा पूर्ण आवश्यक प्रतिलेख",
)
"""Talk about the scorecard itself: neither for nor against."""

REPORTING = word_list(
    "given said says say saying told tell tells telling asked ask asks asking stated state states stating mentioned mention",
    "mentions mentioning explained explain explains explaining informed inform informs informing provided provide provides",
    "providing gave give gives giving offered offer offers offering used use uses using made make makes making began begin",
    "started start ended end opened closed read reads reading quoted responded replied answered answering noted advised",
    "indicated requested request requests requesting told proceeded ensured ensure reminded",
    "sagte sagt fragte fragt gefragt erklärte erklärt teilte mitgeteilt erwähnte erwähnt bot angeboten anbieten gab las",
    "verwendete nannte genannt antwortete informierte informiert bat gebeten wies vorgelesen",
    "dijo dice preguntó pregunta explicó explica informó informa mencionó menciona ofreció ofrece dio da leyó usó",
    "respondió indicó solicitó pidió pide dicho preguntado explicado informado mencionado ofrecido dado leído pedido",
    "dit demandé demande expliqué explique informé informe mentionné proposé propose proposer offert offre donné lu répondu",
    "disse pergunto perguntou explicou informou mencionou ofereceu oferece oferecido deu leu respondeu pediu solicitou",
    "detto chiesto chiede spiegato informato menzionato offerto offre dato letto risposto proposto",
    "zei gezegd vroeg gevraagd legde uitgelegd noemde genoemd bood aangeboden gaf gegeven las gelezen",
    "कहा बोला मांगा मांगी माँगा माँगी पूछा बताया बताई समझाया उल्लेख पेशकश पढ़ा जवाब",
)
"""Verbs that introduce a statement: with one of them, one matching content word is enough."""

PARTICLES = word_list(
    "not never no none neither nor cannot without didn doesn don wasn weren isn aren hasn haven hadn couldn wouldn shouldn t",
    "nicht nie niemals kein keine keinen keiner keinem weder ohne",
    "no nunca ningún ninguna ninguno jamás sin tampoco",
    "pas jamais aucun aucune sans",
    "não nunca nenhum nenhuma jamais sem nem",
    "non nessun nessuno nessuna senza neppure nemmeno",
    "niet geen nooit zonder",
    "नहीं न कभी बिना मत ना",
)
"""Words that reverse a statement; ``t`` is the rest of *n't*."""

DISAVOWALS = word_list(
    "denied denies deny denying refused refuses refuse refusing declined declines disputed disputes",
    "verweigerte verweigert bestritt bestritten leugnete abgelehnt negó niega rechazó nié refusé nie refuse negou recusou",
    "negato rifiutato ontkende ontkend weigerde geweigerd",
)
"""Verbs of denial or refusal; they may follow their object (*the refund was denied*)."""

OMISSIONS = word_list(
    "failed fails fail failing failure omitted omits omit omitting skipped skips skip skipping missing missed misses miss",
    "forgot forgets forget forgotten neglected neglects neglect lacks lacked lack unable",
    "versäumte versäumt vergaß vergessen unterließ omitió olvidó olvidado oublié omis manqué esqueceu omitiu deixou",
    "dimenticato omesso vergat vergeten verzuimde भूल",
)
"""Verbs of omission: a thing was left undone."""

NEGATIONS = PARTICLES | DISAVOWALS | OMISSIONS
"""All words by which a claim becomes a denial."""

UNSPACED_NEGATIONS = (
    "没有", "沒有", "没能", "沒能", "未能", "并未", "並未", "从未", "從未", "未曾", "ませんでした", "ません", "なかった", "ไม่ได้", "ไม่",
)  # fmt: skip
"""Negations in scripts without spaces, where they occur within a run; longer ones precede their own beginnings."""

ABBREVIATIONS = {"dob": ("date", "of", "birth"), "acct": ("account",)}
"""A written abbreviation and its spoken words."""

_ACTS = (
    (
        "greet greeted greeting greets greetings welcomed welcome salutation begrüßte begrüßt begrüßung salué salutation cumprimentou saludou saudou salutato begroette begroet saludó saluda saludo "
        "अभिवादन स्वागत नमस्कार",
        "hello|hi|good morning|good afternoon|good evening|welcome|thank you for calling|thanks for calling|guten tag|"
        "guten morgen|guten abend|hallo|grüß gott|willkommen|hola|buenos días|buenas tardes|buenas noches|bienvenido|"
        "bienvenida|bonjour|bonsoir|allô|bienvenue|bom dia|boa tarde|boa noite|olá|buongiorno|buonasera|salve|goedemorgen|"
        "goedemiddag|goedenavond|hallo|नमस्ते|नमस्कार|स्वागत|सुप्रभात",
    ),
    (
        "apologised apologized apologise apologize apologises apologizes apology apologies apologizing apologising sorry "
        "excusé désolé desculpou scusato verontschuldigde "
        "entschuldigte entschuldigt entschuldigung disculpó disculpa disculpas माफी माफ़ी क्षमा",
        "sorry|apologise|apologize|apologies|apology|entschuldigung|entschuldigen|tut mir leid|lo siento|disculpe|disculpa|"
        "lamento|lamentamos|désolé|désolée|excuses|excusez|pardon|desculpe|desculpa|desculpas|lamentiamo|scusi|mi dispiace|"
        "mi spiace|het spijt me|disculpas|perdón|perdone|माफ|माफ़|माफी|माफ़ी|क्षमा|खेद",
    ),
    (
        "thanked thanks thank thanking gratitude bedankte bedankt dankte remercié agradeceu ringraziato bedankte agradeció agradece धन्यवाद",
        "merci|obrigado|obrigada|grazie|dank u|bedankt|thank you|thanks|danke|vielen dank|gracias|धन्यवाद|शुक्रिया",
    ),
    (
        "farewell goodbye closing closed verabschiedete verabschiedet verabschiedung despidió despedida विदा",
        "goodbye|bye|have a great day|have a good day|have a nice day|take care|auf wiederhören|auf wiedersehen|tschüss|"
        "au revoir|bonne journée|até logo|tenha um bom dia|arrivederci|buona giornata|tot ziens|fijne dag|"
        "schönen tag|adiós|hasta luego|que tenga|अलविदा|शुभ दिन|दिन शुभ",
    ),
    (
        "introduced introduce introduces introducing introduction vorgestellt stellte vorstellung présenté apresentou presentato voorgesteld presentó परिचय",
        "je m'appelle|je suis|meu nome é|aqui é|mi chiamo|mijn naam is|u spreekt met|my name is|this is|i am|i'm|mein name ist|ich bin|ich heiße|me llamo|mi nombre es|le habla|soy|मेरा नाम|मैं",
    ),
    (
        "transferred transfer transfers transferring escalated escalate escalation supervisor manager weitergeleitet verbunden transfirió "
        "escaló derivó स्थानांतरित",
        "transfer|transferring|connect you|put you through|supervisor|escalate|escalating|weiterleiten|verbinde sie|"
        "verbinden|transferir|le paso|supervisora|सुपरवाइजर|ट्रांसफर",
    ),
    (
        "verified verify verifies verifying verification authenticated authenticate authentication identity identification "
        "verifizierte verifiziert legitimierte identität verificó identidad vérifié identité verificou identidade "
        "verificato identità geverifieerd identiteit सत्यापित सत्यापन पहचान",
        "verified|verify|verification|date of birth|account number|customer number|security question|security questions|"
        "last four digits|mother's maiden name|geburtsdatum|kontonummer|kundennummer|verifiziert|fecha de nacimiento|"
        "número de cuenta|verificado|date de naissance|numéro de compte|data de nascimento|número da conta|data di nascita|"
        "numero di conto|geboortedatum|rekeningnummer|खाता नंबर|जन्म तिथि|जन्मतिथि",
    ),
    (
        "long timeframe timeframes timeline timelines turnaround timescale eta zeitrahmen zeitraum frist plazo délai prazo "
        "termijn समयसीमा",
        "minutes|hours|business days|working days|days|week|weeks|within|by tomorrow|tomorrow|stunden|werktage|tage|tagen|"
        "wochen|horas|días hábiles|días laborables|semana|semanas|heures|jours|semaines|dias úteis|ore|giorni|settimane|uur|dagen|weken|"
        "घंटे|दिन|दिनों|सप्ताह|हफ्ते",
    ),
    (
        "else further additional assistance sonst weitere weiteren adicional अन्य",
        "anything else|something else|what else|else i can|any other|anything further|noch etwas|sonst noch|weitere fragen|"
        "algo más|alguna otra|autre chose|mais alguma coisa|algo mais|altro|nog iets|और कुछ|कुछ और|अन्य",
    ),
    (
        "hold holding warteschleife espera attente attesa wacht होल्ड",
        "hold|one moment|a moment|bear with me|einen moment|einen augenblick|un momento|un instante|un instant|um momento|"
        "een moment|होल्ड|एक मिनट",
    ),
    (
        "recorded recording recordings aufgezeichnet aufzeichnung grabada grabación grabado enregistré enregistrement gravada "
        "registrata opgenomen रिकॉर्ड",
        "recorded|recording|aufgezeichnet|aufzeichnung|grabada|grabado|enregistré|enregistrée|gravada|registrata|opgenomen|रिकॉर्ड",
    ),
)
ACTS: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = tuple(
    (word_list(cues), tuple(dict.fromkeys(phrases.split("|")))) for cues, phrases in _ACTS
)
"""Acts of speech: words that name one → phrases by which it is performed, in any of the languages."""

CONTRASTS = word_list("but however although though yet aber jedoch obwohl sondern pero aunque sino लेकिन परंतु मगर किंतु")
"""Words at which a negation ends."""
