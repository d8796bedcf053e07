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
SYMBOL_BLOCKS = (
    (0x00, 0xBF), (0xD7, 0xD7), (0xF7, 0xF7), (0x2000, 0x2BFF),
    (0x2E00, 0x303F), (0xD800, 0xF8FF), (0xFE00, 0xFE6F), (0xFEFD, 0xFF20),
    (0xFF3B, 0xFF40), (0xFF5B, 0xFF65), (0xFFDD, 0xFFFF), (0x1F000, 0x1FFFF),
    (0x660, 0x66C), (0x6F0, 0x6F9),
)  # fmt: skip
"""Blocks of Unicode that hold symbols, and few letters or none."""


def name(char: str) -> str:
    return unicodedata.name(char, "")


def is_letter(char: str) -> bool:
    """Whether a character is in a block of letters."""
    if char in "ªµº_" or (char.isascii() and char.isalpha()):
        return char != ""
    return not any(a <= ord(char) <= b for a, b in SYMBOL_BLOCKS)


def without_thousands(text: str, separators: str) -> str:
    """Joins groups of three digits, if all of a number is well formed.

    Spaces stay in a number with a letter beside it.
    """
    spaces = separators == SPACES
    point = "[.,]" if spaces else "[.]"
    whole = re.compile(
        rf"([1-9１-９١-٩۱-۹][{DIGITS}]?[{DIGITS}]?"
        rf"(?:[{separators}][{DIGITS}]{{3}}){{1,4}})"
        rf"((?:{point}[{DIGITS}]*)?[.,٬{SPACES}]*)"
    )

    def is_beside_letter(number: re.Match[str]) -> bool:
        ends_in_digit = re.match(f"[{DIGITS}]", number[0][-1])
        before = text[max(number.start() - 2, 0) : number.start()]
        if before and before[-1] in SPACES:
            before = before[:-1]
        else:
            before = before[-1:]
        after = text[number.end() : number.end() + 1]
        return is_letter(before) or bool(ends_in_digit and is_letter(after))

    def joined(number: re.Match[str]) -> str:
        if not (match := whole.fullmatch(number[0])):
            return number[0]
        if spaces and is_beside_letter(number):
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


def is_typed_sign(char: str) -> bool:
    """Whether a character is a sign of ASCII beside which no space is set."""
    return (
        char.isascii()
        and char.isprintable()
        and bool(re.fullmatch("[^0-9A-Za-z_` ]", char))
    )


def numero(text: str, pattern: str, replacement: str) -> str:
    """Replaces `N°` where a word begins.

    The character before it is read with it: in `n°n°` the second `n` is none.
    """
    result, at = "", 0
    while match := re.search(pattern, text[at:]):
        start, end = at + match.start(), at + match.end()
        char = text[start - 1 : start]
        is_read = start == at > 0
        digit = re.fullmatch(f"[{DIGITS}]", char)
        is_word = not (is_read or digit or (char and is_letter(char)))
        end = end if is_word else start + 1
        result += text[at:start]
        result += match.expand(replacement) if is_word else text[start]
        at = end
    return result + text[at:]


def before(text: str) -> str:
    """Unifies signs before NFKC."""
    text = without_thousands(text, SPACES)
    simple = {"quote": '"', "apostrophe": "'", "times": "x"}
    text = "".join(simple.get(kind(char), char) for char in text)
    text = numero(text, r"([Nn])(\.?)[ºᵒ]", r"\1\2°")
    result, at = [], 0
    area = re.compile(
        "[0-9]*(?:(?:[cdkm]?m|in|ft|yd)[²³]|[㎟-㎦])", re.A | re.I
    )
    kinds = [kind(char) for char in text]

    def run(start: int, digits: str) -> int:
        """The end of a number in superscripts or subscripts, or its start."""
        end, first = start, None
        while end < len(text) and kinds[end] in (digits, f"{digits} sign"):
            if first is None and kinds[end] == digits:
                first = end
            end += 1
        return start if first is None or first > start + 3 else end

    while at < len(text):
        is_start = not re.match("[0-9A-Za-z_]", text[at - 1 : at] if at else "")
        end, is_number = at, False
        if is_start and (match := area.match(text, at)):
            end = match.end()
        elif (raised := run(at, "super")) > at:
            end = raised
            if text[end : end + 1] == "⁄":
                end = max(end, run(end + 1, "sub"))
                end = end if end > raised + 1 else raised
            is_number = end == raised
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
            space = "" if is_typed_sign(text[end : end + 1]) else " "
            result.append(f"{text[at]} {text[at + 1 : end]}{space}")
            at = end
            continue
        if end > at:
            is_left = at > 0 and is_typed_sign(text[at - 1]) and not is_number
            left = "" if is_left else " "
            right = "" if is_typed_sign(text[end : end + 1]) else " "
            result.append(f"{left}{text[at:end]}{right}")
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
        f"(?<=[0-9A-Za-z_])[{modifiers}]+|[{modifiers}]{{1,3}}(?=[0-9A-Za-z_])",
        "'",
        text,
    )
    text = numero(text, r"n\.?°(\.?)", r"no\1 ")
    return without_thousands(text, ",٬")
