"""Transcription of the rules for signs, character by character.

It asks Python's `unicodedata`, and shares no pattern with the package.
"""

import functools
import re
import unicodedata

MARKS = {
    "COPYRIGHT SIGN", "REGISTERED SIGN", "SOUND RECORDING COPYRIGHT",
    "SERVICE MARK", "TRADE MARK SIGN", "ESTIMATED SYMBOL", "CIRCLED WZ",
    "COPYLEFT SYMBOL", "RAISED MC SIGN", "RAISED MD SIGN", "RAISED MR SIGN",
    "MASK WORK SYMBOL", "ZERO WIDTH SPACE",
}  # fmt: skip
QUOTE_NAMES = {
    "MODIFIER LETTER DOUBLE PRIME", "DOUBLE ACUTE ACCENT",
    "MODIFIER LETTER DOUBLE APOSTROPHE", "HEBREW PUNCTUATION GERSHAYIM",
    "LEFT DOUBLE QUOTATION MARK", "RIGHT DOUBLE QUOTATION MARK",
    "DOUBLE LOW-9 QUOTATION MARK", "DOUBLE HIGH-REVERSED-9 QUOTATION MARK",
    "DOUBLE PRIME", "TRIPLE PRIME", "REVERSED DOUBLE PRIME",
    "REVERSED TRIPLE PRIME", "QUADRUPLE PRIME",
}  # fmt: skip
APOSTROPHE_NAMES = {
    "ACUTE ACCENT", "GREEK TONOS", "GREEK OXIA", "GREEK KORONIS",
    "ARMENIAN APOSTROPHE", "HEBREW PUNCTUATION GERESH",
    "LEFT SINGLE QUOTATION MARK", "RIGHT SINGLE QUOTATION MARK",
    "SINGLE LOW-9 QUOTATION MARK", "SINGLE HIGH-REVERSED-9 QUOTATION MARK",
    "PRIME", "REVERSED PRIME",
}  # fmt: skip
MODIFIER_NAMES = {
    "MODIFIER LETTER PRIME", "MODIFIER LETTER TURNED COMMA",
    "MODIFIER LETTER APOSTROPHE", "MODIFIER LETTER REVERSED COMMA",
    "MODIFIER LETTER RIGHT HALF RING", "MODIFIER LETTER LEFT HALF RING",
    "MODIFIER LETTER VERTICAL LINE", "MODIFIER LETTER ACUTE ACCENT",
    "MODIFIER LETTER GRAVE ACCENT",
}  # fmt: skip
FIXED_SPACES = (
    "NO-BREAK SPACE", "FIGURE SPACE", "THIN SPACE", "NARROW NO-BREAK SPACE",
)  # fmt: skip
SPACES = "".join(map(unicodedata.lookup, FIXED_SPACES))
DIGITS = "0-9٠-٩۰-۹０-９"
PART_OF_NUMBER = f"{DIGITS}.,٬{SPACES}"


def name(char: str) -> str:
    return unicodedata.name(char, "")


def without_thousands(text: str, separators: str) -> str:
    """Joins groups of three digits, if all of a number is well formed."""
    whole = re.compile(
        rf"([1-9１-９١-٩۱-۹][{DIGITS}]?[{DIGITS}]?"
        rf"(?:[{separators}][{DIGITS}]{{3}}){{1,4}})"
        rf"((?:\.[{DIGITS}]*)?[.,٬{SPACES}]*)"
    )

    def joined(number: re.Match[str]) -> str:
        if not (match := whole.fullmatch(number[0])):
            return number[0]
        return re.sub(f"[{separators}]", "", match[1]) + match[2]

    return re.sub(f"[{DIGITS}][{PART_OF_NUMBER}]*", joined, text)


@functools.cache
def kind(char: str) -> str:
    """Names the rule of a character by its Unicode properties."""
    text = unicodedata.normalize("NFKC", char)
    classes = {unicodedata.category(c)[0] for c in text}
    category = unicodedata.category(char)
    form = unicodedata.decomposition(char).partition(">")[0]
    if name(char) in MARKS:
        return "nothing"
    if name(char) in QUOTE_NAMES:
        return "quote"
    if name(char) in APOSTROPHE_NAMES:
        return "apostrophe"
    if name(char) in ("MULTIPLICATION SIGN", "VECTOR OR CROSS PRODUCT"):
        return "times"
    if classes == {"Z", "M"}:
        return "accent"
    if char in "ªº":
        return "apart"
    if form in ("<super", "<sub") and not classes & {"L"}:
        return form[1:] if category == "No" else f"{form[1:]} sign"
    if text == char or not classes & {"L", "N"}:
        return ""
    if category[0] == "L":
        return "apart" if "Z" in classes else ""
    is_radical = "RADICAL" in name(char)
    if category == "Nd" or is_radical or category[0] == "P":
        return ""
    row = category == "Nl" or re.fullmatch("[A-Za-z]", text)
    return "row" if row else "apart"


def before(text: str) -> str:
    """Unifies signs before NFKC."""
    text = without_thousands(text, SPACES)
    simple = {"quote": '"', "apostrophe": "'", "times": "x"}
    text = "".join(simple.get(kind(char), char) for char in text)
    text = re.sub(r"(?<![0-9A-Za-z_])([Nn])(\.?)[ºᵒ]", r"\1\2°", text)
    result, at = [], 0
    area = re.compile("[0-9]*(?:[cdkmCDKM]?[mM]|in|ft|yd)[²³]")
    kinds = [kind(char) for char in text]

    def run(start: int, digits: str) -> int:
        """The end of a number in superscripts or subscripts, or its start."""
        end, has_digit = start, False
        while end < len(text) and kinds[end] in (digits, f"{digits} sign"):
            has_digit |= kinds[end] == digits
            end += 1
        return end if has_digit else start

    while at < len(text):
        is_start = not re.match("[0-9A-Za-z_]", text[at - 1 : at] if at else "")
        end = at
        if is_start and (match := area.match(text, at)):
            end = match.end()
        elif (raised := run(at, "super")) > at:
            end = raised
            if text[end : end + 1] == "⁄":
                end = max(end, run(end + 1, "sub"))
                end = end if end > raised + 1 else raised
        elif text[at] == "⅟" and run(at + 1, "sub") > at + 1:
            end = run(at + 1, "sub")
        elif kinds[at] == "apart":
            end = at + 1
        elif kinds[at] == "row":
            while end < len(text) and kinds[end] == "row":
                end += 1
        elif kinds[at] == "nothing" or kinds[at] == "accent":
            result.append(" ")
            end = at + 1
            while kinds[at] == "accent" and text[end : end + 1] in [
                *"\u0300\u0301\u0342"
            ]:
                end += 1
            at = end
            continue
        elif re.match("[0-9]", text[at]) and run(at + 1, "sub") > at + 1:
            end = run(at + 1, "sub")
            result.append(f"{text[at]} {text[at + 1 : end]} ")
            at = end
            continue
        if end > at:
            result.append(f" {text[at:end]} ")
            at = end
        else:
            result.append(text[at])
            at += 1
    return "".join(result)


def after(text: str) -> str:
    """Unifies signs in a text in NFKC with folded case."""
    text = text.replace("⁄", "/").replace("∕", "/").replace("`", "'")
    modifiers = "".join(map(unicodedata.lookup, sorted(MODIFIER_NAMES)))
    text = re.sub(
        f"(?<=[0-9A-Za-z_])[{modifiers}]+|[{modifiers}]+(?=[0-9A-Za-z_])",
        "'",
        text,
    )
    text = re.sub(r"(?<![0-9A-Za-z_])n\.?°(\.?)", r"no\1 ", text)
    return without_thousands(text, ",٬")
