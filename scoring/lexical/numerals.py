"""Tables for reading numbers in texts: months, currencies and number words of English, German, Spanish and Hindi.

Also tables of units and scales, which stand beside a number, in the same languages.
"""

from __future__ import annotations

import unicodedata

from .text import normalise

_MONTH_NAMES = (
    "january jan januar jänner enero जनवरी",
    "february feb februar febrero फरवरी फ़रवरी",
    "march mar märz marzo मार्च",
    "april apr abril अप्रैल",
    "may mai mayo मई",
    "june jun juni junio जून",
    "july jul juli julio जुलाई",
    "august aug agosto अगस्त",
    "september sep sept septiembre सितंबर सितम्बर",
    "october oct oktober okt octubre अक्टूबर",
    "november nov noviembre नवंबर नवम्बर",
    "december dec dezember dez diciembre दिसंबर दिसम्बर",
)
MONTHS = {normalise(name): number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}
"""Normalised name of a month → 1 to 12."""

_CURRENCY_WORDS = {
    "USD": "$ usd us$ dollar dollars dólar dólares डॉलर",
    "EUR": "€ eur euro euros यूरो",
    "GBP": "£ gbp pound pounds pfund libra libras पाउंड",
    "INR": "₹ inr rs rupee rupees rupien rupia rupias रुपये रुपए रुपया रु",
    "JPY": "¥ jpy yen 円",
}
CURRENCIES = {normalise(word): code for code, words in _CURRENCY_WORDS.items() for word in words.split()}
"""Normalised symbol, code or word of a currency → its ISO 4217 code."""

_NUMBER_WORDS = (
    "zero null cero शून्य",
    "one eins einen eine uno una एक",
    "two zwei dos दो",
    "three drei tres तीन",
    "four vier cuatro चार",
    "five fünf cinco पांच पाँच",
    "six sechs seis छह छः",
    "seven sieben siete सात",
    "eight acht ocho आठ",
    "nine neun nueve नौ",
    "ten zehn diez दस",
    "eleven elf once ग्यारह",
    "twelve zwölf doce बारह",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
NUMBER_WORDS = (
    {normalise(word): number for number, words in enumerate(_NUMBER_WORDS) for word in words.split()}
    | {word: 13 + index for index, word in enumerate(_TEENS)}
    | {word: 20 + 10 * index for index, word in enumerate(_TENS)}
)
"""Normalised number word → its value."""


def spoken_figures(words: list[str]) -> list[str]:
    """Spelt-out values of 13 and more in order, each run of tens and units as one number.

    Smaller ones are too often articles (*one*) or the writer's counts (*three times*).

    >>> spoken_figures("one refund of forty nine dollars".split())
    ['49']
    """
    values = [NUMBER_WORDS.get(word, 0) for word in words]
    found: list[str] = []
    for at, value in enumerate(values):
        if value >= 20:
            unit = values[at + 1] if at + 1 < len(values) and values[at + 1] < 10 else 0
            found.append(str(value + unit))
        elif value >= 13:
            found.append(str(value))
    return found


def spoken_numbers(words: list[str]) -> set[str]:
    """Values of the number words in a list of tokens; English tens and units combine ("forty nine").

    >>> sorted(spoken_numbers(["forty", "nine", "and", "drei"]))
    ['3', '40', '49', '9']
    """
    found: set[str] = set()
    previous = 0
    for word in words:
        value = NUMBER_WORDS.get(word)
        if value is None:
            previous = 0
            continue
        found.add(str(value))
        if previous >= 20 and value < 10:
            found.add(str(previous + value))
        previous = value
    return found


def currency_of(text: str, start: int, end: int) -> str | None:
    """The currency written directly before or after the number at ``text[start:end]``: a symbol, a code or a word.

    A symbol that is not in the table stands for itself.
    """
    before = text[max(0, start - 12) : start].rstrip(" .").rpartition(" ")[2]
    after = text[end : end + 12].lstrip(" ").partition(" ")[0]
    # A sign with a space on this side and a digit on the other belongs to that digit: 49€ 5 days, 3 $49 parts.
    apart = before[-2:-1].isdigit() and text[start - 1] == " ", after[1:2].isdigit() and text[end] == " "
    for near, beside, of_other in zip((before, after.rstrip(".,;:!?")), (before[-1:], after[:1]), apart, strict=True):
        if not near or of_other:
            continue
        code = CURRENCIES.get(near.casefold()) or CURRENCIES.get(beside)
        if code is not None:
            return code
        if not beside.isalnum() and unicodedata.category(beside) == "Sc":
            return beside
    return None


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
    "g": "g gram grams gramm gramo gramos ग्राम",
    "mg": "mg milligram milligrams milligramm miligramo miligramos मिलीग्राम",
    "l": "l liter liters litre litres litern litro litros लीटर",
    "ml": "ml milliliter milliliters millilitre millilitres millilitern mililitro mililitros मिलीलीटर",
    "cm": "cm centimeter centimeters centimetre centimetres zentimeter zentimetern centímetro centímetros सेंटीमीटर",
    "mm": "mm millimeter millimeters millimetre millimetres millimetern milímetro milímetros मिलीमीटर",
    "km": "km kilometer kilometers kilometre kilometres kilometern kilómetro kilómetros किलोमीटर किमी",
    "kb": "kb",
    "mb": "mb एमबी",
    "gb": "gb gigabyte gigabytes जीबी",
    "tb": "tb",
}
UNITS = {normalise(word): unit for unit, words in _UNITS.items() for word in words.split()}
"""Normalised word or sign of a unit → one name for it. A word that is not in the table is no unit."""

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
"""Marks between the two ends of a range."""

ORDINALS = frozenset(("st", "nd", "rd", "th", "er", "te", "ten", "x", "am", "pm", "h", "s"))
"""Endings that do not make a number a code."""
