"""Topics: English, German and Spanish words for the common topics of call centres. Data, not rules.

A text is *understood* when this list has all of its content words. Only two understood texts can be found to be about
different things: any other word might be a synonym.
"""

from __future__ import annotations

from dataclasses import dataclass

from .lexicon import word_list
from .statement import AGENT, CUSTOMER, Statement, root
from .text import normalise

_GENERAL = {
    "billing": "bill billing invoice charge payment rechnung abrechnung zahlung factura facturación cobro pago",
    "plan": "plan subscription tariff tarif vertrag abo contrato suscripción",
    "technical": "technical internet network wifi connection connectivity router app website technik netz conexión",
    "access": "login password access sign username passwort zugang contraseña acceso",
    "delivery": "delivery shipping shipment parcel courier lieferung paket entrega envío",
    "card": "card karte tarjeta",
    "appointment": "appointment visit termin cita",
    "insurance": "insurance versicherung seguro póliza",
    "loan": "loan mortgage darlehen préstamo hipoteca",
}
"""Domain → words that name it and nothing more."""

_PARTICULAR = {
    "billing": (
        "refund reimburse reimbursement refunded rückerstattung erstattung reembolso",
        "duplicate double twice doppelt doppelte duplicado doble",
        "overcharge overcharged",
        "fee surcharge gebühr comisión",
        "overdue unpaid arrears überfällig",
    ),
    "plan": ("upgrade", "downgrade", "renew renewal verlängerung renovación"),
    "technical": ("outage down disconnect störung ausfall avería", "slow langsam lento", "crash", "error fehler"),
    "access": ("reset zurücksetzen restablecer", "locked unlock gesperrt bloqueado"),
    "delivery": ("late delay delayed verspätet retraso", "missing", "damaged broken beschädigt dañado"),
    "card": ("lost verloren perdida", "stolen gestohlen robada", "fraud betrug fraude"),
    "appointment": ("reschedule verschieben", "book booking schedule buchen reservar"),
    "insurance": ("accident unfall accidente",),
    "loan": ("interest zins zinsen interés",),
}
"""Domain → concepts in it, each with its synonyms."""

_DOING = (
    "confirm verify check validate bestätigt bestätigen geprüft confirmó verificó",
    "initiate initiated start begin issue process submit veranlasst eingeleitet inició tramitó",
    "explain inform tell erklärt informiert explicó informó",
    "apologise apologize apology entschuldigt disculpó",
    "send email sms geschickt envió",
    "escalate transfer forward weitergeleitet transfirió",
)
"""Actions in calls of any domain."""

_WISHES = frozenset(
    map(
        root,
        word_list(
            "wants want asks ask asking requesting request requests needs need would like to call calls calling called",
            "contact contacts contacting inquire inquires inquiring inquiry enquiry enquiring question questions query",
            "issue issues problem problems concern help assistance information info please with on i d",
            "möchte will bittet bitten fragt frage fragen wegen zu zur zum um quiere solicita pregunta pide consulta",
            "problema con su",
        ),
    )
)
"""Words that only express a wish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReading:
    """The topics of a statement. ``unknown`` are roots that no list has."""

    domains: frozenset[str]
    concepts: frozenset[str]
    particular: bool
    unknown: frozenset[str]

    @property
    def understood(self) -> bool:
        return bool(self.concepts) and not self.unknown


def read_topics(statement: Statement) -> TopicReading:
    """Find the topics of a statement."""
    content = [word for word in statement.roots if word not in _WISHES and word not in (AGENT, CUSTOMER)]
    known = [_CONCEPTS[word] for word in content if word in _CONCEPTS]
    return TopicReading(
        domains=frozenset(domain for domain, _, _ in known if domain),
        concepts=frozenset(concept for _, concept, _ in known),
        particular=any(particular for _, _, particular in known),
        unknown=frozenset(word for word in content if word not in _CONCEPTS),
    )


def _concepts() -> dict[str, tuple[str, str, bool]]:
    found: dict[str, tuple[str, str, bool]] = {}
    for words in _DOING:
        found |= {root(normalise(word)): ("", words, True) for word in words.split()}
    for domain, words in _GENERAL.items():
        found |= {root(normalise(word)): (domain, domain, False) for word in words.split()}
    for domain, several in _PARTICULAR.items():
        for words in several:
            found |= {root(normalise(word)): (domain, words, True) for word in words.split()}
    return found


_CONCEPTS = _concepts()
"""Root → its domain (none for what is done in all of them), its concept, and whether it is more than the domain."""
