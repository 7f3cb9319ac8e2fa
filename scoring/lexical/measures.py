"""Tables for what stands beside a number: units and scales in English, German, Spanish and Hindi."""

from __future__ import annotations

from .text import normalise

_UNITS = {
    "%": "% percent prozent porciento प्रतिशत फीसदी फ़ीसदी",
    "second": "second seconds sec secs sekunde sekunden segundo segundos सेकंड सेकेंड",
    "minute": "minute minutes min mins minuten minuto minutos मिनट",
    "hour": "hour hours hr hrs stunde stunden hora horas घंटा घंटे घंटों घण्टे",
    "day": "day days tag tage tagen tages werktag werktage werktagen arbeitstage arbeitstagen día días dia dias "
    "दिन दिनों दिवस दिवसों",
    "week": "week weeks woche wochen semana semanas हफ्ता हफ्ते हफ्तों हफ़्ते हफ़्तों सप्ताह",
    "month": "month months monat monate monaten mes meses महीना महीने महीनों माह",
    "year": "year years jahr jahre jahren año años ano anos साल सालों वर्ष वर्षों",
    "kg": "kg kilo kilos kilogram kilograms kilogramm किलो किलोग्राम",
    "g": "gram grams gramm gramo gramos ग्राम",
    "km": "km kilometer kilometers kilometre kilometres kilometern kilómetro kilómetros किलोमीटर किमी",
    "kb": "kb",
    "mb": "mb एमबी",
    "gb": "gb gigabyte gigabytes जीबी",
    "tb": "tb",
}
UNITS = {normalise(word): unit for unit, words in _UNITS.items() for word in words.split()}
"""Normalised word or sign of a unit → one name for it. What the table does not know is no unit."""

_SCALES = {
    1_000: "thousand k tausend mil हज़ार हजार",
    100_000: "lakh lakhs lac लाख",
    1_000_000: "million millions mio millionen millón millon millones",
    10_000_000: "crore crores करोड़ करोड",
    1_000_000_000: "billion billions milliarde milliarden अरब",
}
SCALES = {normalise(word): scale for scale, words in _SCALES.items() for word in words.split()}
"""Normalised word that multiplies the number before it → its factor (``5 लाख`` is 500000)."""

RANGE_MARKS = frozenset(("-", "–", "—", "−", "~", "〜", "to", "bis", "a", "hasta", "से"))
"""What stands between the two ends of a range."""

ORDINALS = frozenset(("st", "nd", "rd", "th", "er", "te", "ten", "x", "am", "pm", "h", "s"))
"""What may be written onto a number without making it a code."""
