"""Signs: what becomes of them by class, in graphs and without TensorFlow.

`tests/plain_signs.py` transcribes the rules by `unicodedata`."""

import random
import sys
import time
import unicodedata
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.evaluation.bm25 import TOKENIZERS
from keras_lstm_dssm.text import normalize, normalize_texts
from keras_lstm_dssm.text.many_texts import HashedTextCache, NormalizedTextCache
from keras_lstm_dssm.text.word_hashing import (
    distinct_words,
    hash_single_text,
)
from lstm_dssm_client.words import EMPTY_TEXT, PLAIN, normalizer, split_words
from tests import plain_signs, reference
from tests.export.agreement import run_in_cpp, serving_ops, stock_ops
from tests.serving.wire import predict_request

SPLITS = ("space", "alphanumeric")
POINTS = [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]
KNOWN = [
    char for char in map(chr, POINTS)
    if unicodedata.category(char) not in ("Cn", "Co")
]  # fmt: skip
RULED = [
    char for char in KNOWN
    if plain_signs.kind(char) or unicodedata.normalize("NFKC", char) != char
]  # fmt: skip
MANY_PLACES = (
    "{0} A{0}b 1{0}2 y{0} {0}z 3{0} {0}4 n{0}5 6{0}700 9,{0}00 A{0}² {0}₂"
    " 5{0}m²"
)
"""A character alone, between letters and digits, after and before them."""

PLACES = "{0} A{0}b 1{0}2 y{0} {0}4"

TABLE = {
    "rights and registration": [
        ("Quikrete™ mortar", "quikrete mortar"),
        ("makita® drill", "makita drill"),
        ("makita®drill", "makita drill"),
        ("Bosch℠ ©2020 ℗1999 500g℮", "bosch 2020 1999 500g"),
        ("Logo🅪 Logo🅫", "logo logo"),
    ],
    "fractions": [
        ("3½ in", "3 1/2 in"), ("½", "1/2"), ("a¾b", "a 3/4 b"),
        ('32⅝" x', '32 5/8" x'), ("½-inch (½)", "1/2-inch (1/2)"),
        ("32⅝” ½’", "32 5/8\" 1/2'"), ("(¹⁄₂) ½-¾", "(1/2) 1/2-3/4"),
        ("3 1⁄2", "3 1/2"), ("3¹⁄₂", "3 1/2"), ("⅟₄", "1/4"),
    ],
    "superscripts": [
        ("10²", "10 2"), ("Drill¹", "drill 1"), ("UVP² net", "uvp 2 net"),
        ("10⁻³", "10 \N{MINUS SIGN}3"), ("Item²", "item 2"),
        ("10²³", "10 23"), ("A⁺", "a+"), ("text.² Drill¹,", "text. 2 drill 1,"),
        ("⁺⁺⁺⁺²", "+ +++2"), ("1ˢᵗ Mᵐᵉ xⁿ", "1st mme xn"),
    ],
    "areas": [
        ("10m²", "10m2"), ("10 m² 5 cm³ ft²", "10 m2 5 cm3 ft2"),
        ("10㎡ 5,5㎤ ㎡", "10m2 5,5cm3 m2"), ("m²¹", "m2 1"),
        ("1,000m² 0.5m²", "1000m2 0.5m2"), ("12,5cm³", "12,5cm3"),
        ("20 FT² IN² Ft² 3yD³", "20 ft2 in2 ft2 3yd3"),
        ("kg/m³ 5 m², (m²)", "kg/m3 5 m2, (m2)"), ("m²x", "m2 x"),
    ],
    "subscripts": [
        ("CO₂ H₂O", "co2 h2o"), ("10₂", "10 2"), ("log₁₀5", "log105"),
    ],
    "numbers and ordinals": [
        ("№8", "no 8"), ("Nº5", "no 5"), ("N°5", "no 5"), ("n.º 5", "no 5"),
        ("no 8", "no 8"), ("№ 8", "no 8"), ("n°. 5", "no. 5"),
        ("PÄN°5 PÄNº5 жn°5", "pän°5 pän o 5 жn°5"),
        ("«N°5 →Nº5", "«no 5 →no 5"),
        ("1º 2ª", "1 o 2 a"), ("60°C 90°", "60°c 90°"),
    ],
    "accents": [
        ("a¨b", "a b"), ("a˘ b¸c", "a b c"), ("ᾧ῭", "ὧι"), ("カ゛", "カ"),
    ],
    "apostrophes": [
        ("Men´s", "men's"), ("Men`s", "men's"), ("Men’s", "men's"),
        ("Menʼs", "men's"), ("12′", "12'"), ("12ʹ", "12'"),
        ("Hawaiʻi", "hawai'i"), ("lʼété", "l'été"), ("ŉ", "'n"),
        ("комп’ютер", "комп'ютер"), ("компʼютер", "компʼютер"),
        ("צ׳יפס", "צ'יפס"),
    ],
    "quotes": [
        ("12″", '12"'), ("12ʺ", '12"'), ("12”", '12"'), ("“a„", '"a"'),
        ("12˝ 12‶", '12" 12"'), ("ת״א", 'ת"א'),
    ],
    "times": [
        ("4×4×8", "4x4x8"), ("60 × 40", "60 x 40"), ("5× zoom", "5x zoom"),
    ],
    "spaces": [("a\u200bb", "a b"), ("a\u200db", "ab"), ("a\u2060b", "ab")],
    "units and squared": [
        ("10㎜", "10 mm"), ("60℃", "60 °c"), ("5㎏", "5 kg"), ("㏑x", "ln x"),
        ("10㎧", "10 m/s"), ("₨500", "rs 500"), ("㍿ABC", "株式会社 abc"),
        ("a℅b", "a c/o b"), ("12㋀", "12 1月"),
    ],
    "enclosed": [
        ("①②", "1 2"), ("a⑴", "a (1)"), ("⒜b", "(a) b"), ("⒈a", "1. a"),
        ("㈱ABC", "(株) abc"), ("🄰🄱1", "ab 1"), ("ⓗⓔⓨ", "hey"),
        ("Ⓐ①", "a 1"), ("㊞x", "印 x"),
    ],
    "Roman numerals": [
        ("Rocky Ⅳ", "rocky iv"), ("RockyⅩⅣb", "rocky xiv b"), ("5〹", "5 卄"),
    ],
    "compatibility letters": [
        ("ｆｕｌｌ１２", "full12"), ("ﬁne", "fine"), ("ℝ𝐀𝟏", "ra1"),
        ("ﻣﺮﺣﺒﺎ", "مرحبا"), ("שׁﬠ", "שׁע"), ("ﾊﾞｯｸﾞ", "バッグ"),
        ("⼀般", "一般"), ("coŀlecció", "col·lecció"), ("กำ", "กํา"),
        ("محمدﷺ", "محمد صلى الله عليه وسلم"), ("aﹰb", "a b"),
    ],
    "thousands": [
        ("10,000", "10000"), ("1,234,567.50", "1234567.50"),
        ("$1,000-2,000, 3,000.", "$1000-2000, 3000."),
        ("10,000mAh", "10000mah"), ("1,2,3", "1,2,3"), ("10,00", "10,00"),
        ("1,00,000 12,34,567", "1,00,000 12,34,567"), ("0,123", "0,123"),
        ("1,234,56", "1,234,56"), ("12345,678", "12345,678"),
        ("3.14,159", "3.14,159"), ("1,0000", "1,0000"),
        ("1" * 30 + ",000,000", "1" * 30 + ",000,000"),
        ("123.456,789 1.2.3,456", "123.456,789 1.2.3,456"),
        ("10\u00a0000 W", "10000 w"), ("10\u202f000\u202f000", "10000000"),
        ("10\u2009000", "10000"), ("10 000", "10 000"),
        ("1\u202f299,99\u202f€", "1299,99 €"),
        ("5\u00a0000,00\u00a0€", "5000,00 €"), ("1\u00a0000.5", "1000.5"),
        ("1\u00a0000,500 W", "1000,500 w"),
        ("iPhone\u00a05\u00a0128 GB", "iphone 5 128 gb"),
        ("12\u00a0330ml cans", "12 330ml cans"),
        ("M6\u00a0100 pcs", "m6 100 pcs"), ("Ä6\u00a0100", "ä6 100"),
        ("pack of 2\u00a0100W", "pack of 2 100w"),
        ("1\u00a0000\u00a0W5\u00a0100", "1000 w5 100"),
        ("1\u00a0000\u00a0W", "1000 w"), ("300,400,500", "300400500"),
        ("3\u00a010\u00a0000", "3 10 000"), ("１０，０００", "10000"),
        ("١٠٬٠٠٠", "١٠٠٠٠"), ("1,234,567,890,123", "1234567890123"),
        ("a,b 1, 234", "a,b 1, 234"),
    ],
}  # fmt: skip


def words_everywhere(texts: list[str], split: str) -> list[list[str]]:
    """The words in a graph, which all other implementations must give."""
    graph = normalize(texts, split)
    client = [split_words(text, split) or [EMPTY_TEXT] for text in texts]
    words = [text.split(" ") for text in graph]
    assert words == client
    cache = NormalizedTextCache(split)
    assert cache(tf.constant(texts)).numpy().tolist() == [
        text.encode() for text in graph
    ]
    return words


@pytest.mark.parametrize("name", TABLE)
def test_words_by_class(name):
    texts, expected = zip(*TABLE[name], strict=True)
    found = words_everywhere([*texts], "space")
    assert [" ".join(words) for words in found] == [*expected]
    # All other characters than letters, digits and marks separate these.
    separated = [reference.split(text, "alphanumeric") for text in expected]
    assert words_everywhere([*texts], "alphanumeric") == separated
    for text, words in zip(texts, found, strict=True):
        assert TOKENIZERS["space"](text) == words
    assert [TOKENIZERS["alphanumeric"](text) for text in texts] == separated


def in_places(chars: list[str], places: str) -> list[str]:
    """Texts with many characters each: a graph takes long for short texts."""
    return [
        " ".join(map(places.format, chars[start : start + 32]))
        for start in range(0, len(chars), 32)
    ]


@pytest.mark.parametrize("split", SPLITS)
def test_characters_that_rules_or_nfkc_change_in_every_place(split):
    texts = in_places(RULED, MANY_PLACES)
    found = words_everywhere(texts, split)
    for text, words in zip(texts, found, strict=True):
        assert reference.split(text, split) == words


@pytest.mark.parametrize(("split", "places"), [
    ("alphanumeric", PLACES), ("space", "A{0}1"),
])  # fmt: skip
def test_every_code_point_has_the_words_of_the_graph(split, places):
    """Also unassigned ones; `test_all_of_unicode` transcribes the others."""
    known = {*KNOWN}
    others = [char for char in map(chr, POINTS) if char not in known]
    texts = in_places(KNOWN, places) + in_places(others, "A{0}1")
    graph = normalize_texts(tf.constant(texts), None, split).numpy().tolist()
    for text, found in zip(texts, graph, strict=True):
        assert split_words(text, split) == found.decode().split(" ")


def interesting() -> list[str]:
    """Characters that rules are about, and what stands around them."""
    tables = normalizer()._tables.signs
    of_tables = [
        chr(point)
        for bounds in tables.values()
        for start, end in zip(bounds[::2], bounds[1::2], strict=True)
        for point in range(start, end)
    ]
    named = [char for char in KNOWN if plain_signs.kind(char)]
    around = [*"aNnmTé1234567890°.,,,٬`' xж中٣\u00ad\u200d\u0301\u0345"]
    spaces = [*" \u00a0\u202f\u2009\u3000"]
    mixed = [*"²³½₂⁄⅟ⅣⅫⒶ①ªº™®´˘ʼ’″×№°ᵒ"]
    return random.Random(0).sample(of_tables, 60) + 4 * (
        [*named[:40], *around, *around, *spaces, *mixed]
    )


@pytest.mark.parametrize("split", SPLITS)
def test_random_texts_have_the_transcribed_words(split):
    draw, chars = random.Random(1), interesting()
    texts = [
        "".join(draw.choices(chars, k=draw.randint(1, 12)))
        for _ in range(8_000)
    ]
    found = words_everywhere(texts, split)
    for text, words in zip(texts, found, strict=True):
        assert reference.split(text, split) == words, ascii(text)
    # What has been normalised stays as it is: vocabularies rely on it.
    again = [" ".join(words) for words in found]
    assert normalize(again, split) == again


def test_forms_of_a_character_have_the_same_words():
    """NFC and NFD, for all characters, after a letter."""
    composed = [f"a{char}" for char in KNOWN]
    apart = [unicodedata.normalize("NFD", text) for text in composed]
    changed = [
        text != other for text, other in zip(composed, apart, strict=True)
    ]
    assert sum(changed) > 12_000
    for split in SPLITS:
        assert normalize(apart, split) == normalize(composed, split)


def test_rules_change_no_text_that_is_said_to_have_no_sign():
    """For texts that skip the rules, all of them would change nothing."""
    rules, tables = normalizer().signs, normalizer()
    for char in KNOWN:
        text = f"a{char}1,{char}b"
        if not rules.are_in(text):
            assert rules.apply_before(text) == text
            folded = tables._nfkc_folded(text)
            assert rules.apply_after(folded) == folded, hex(ord(char))


def test_characters_of_other_classes_without_a_rule():
    """Characters that NFKC gives other classes, and that no rule changes."""
    left = Counter()
    for char in KNOWN:
        text = unicodedata.normalize("NFKC", char)
        before = unicodedata.category(char)[0]
        classes = {unicodedata.category(c)[0] for c in text}
        if classes != {before} and not plain_signs.kind(char):
            radical = "RADICAL" in plain_signs.name(char)
            left[before, "".join(sorted(classes)), radical] += 1
    assert left == {
        ("L", "LP", False): 2,  # Catalan l with a dot
        ("L", "LM", False): 77,  # letters with their marks
        ("L", "M", False): 2,  # Japanese voicing marks, which join their letter
        ("S", "L", True): 216,  # ideographs, as texts of PDF files have them
        ("S", "MS", False): 14,  # notes, and a sign with a stroke
        ("S", "PS", False): 1,  # ::=
    }


TITLES = [
    "Quikrete™ mix 3½ lb, №8", "plain ASCII, title", "Größe 10㎜", "10,000 mAh",
    "компʼютер Menʼs ①", "x" * 200 + "²", "",
]  # fmt: skip


@pytest.mark.parametrize("split", ["space", "alphanumeric", "stems"])
def test_caches_and_single_texts_hash_as_batches_do(split):
    rules = (64, 128, split)
    strings = tf.constant(TITLES)
    batch = distinct_words(strings, *rules)
    cached = HashedTextCache(*rules).distinct(strings)
    for field, other in zip(batch[:6], cached[:6], strict=True):
        np.testing.assert_array_equal(field, other)
    for title in TITLES[:5]:
        single = hash_single_text(tf.constant([title]), 64, split)
        whole = distinct_words(tf.constant([title]), 64, None, split)
        np.testing.assert_array_equal(single.trigrams, whole.trigrams)


def test_signs_of_one_drill_give_one_vector():
    for split in SPLITS:
        encoder = dssm.LSTMEncoder(8, oov_buckets=64, split=split)
        vectors = encoder.encode(
            ["makita drill", "makita™ drill", "Makita® Drill", "makita drill¹"]
        )
        np.testing.assert_array_equal(vectors[0], vectors[1])
        np.testing.assert_array_equal(vectors[0], vectors[2])
        assert np.abs(vectors[0] - vectors[3]).max() > 1e-3


def test_a_saved_model_in_the_cpp_loader_has_these_words(tmp_path):
    module = tf.Module()
    texts = [text for rows in TABLE.values() for text, _ in rows]
    texts += ["", "plain", "a" * 300, "Größe"]
    graphs = {
        split: tf.function(
            lambda text, split=split: {
                "words": normalize_texts(text, None, split)
            },
            input_signature=[tf.TensorSpec([None], tf.string, name="text")],
            autograph=False,
        )
        for split in ("space", "stems")
    }
    tf.saved_model.save(
        module, tmp_path, {"serving_default": graphs["space"], **graphs}
    )
    assert serving_ops(tmp_path) <= stock_ops()
    requests = []
    for signature in graphs:
        for some in (texts, ["plain"], ["½"]):
            requests.append(predict_request("", text=some))
            requests[-1].model_spec.signature_name = signature
    (found,) = run_in_cpp({tmp_path: requests})
    for request, outputs in zip(requests, found, strict=True):
        split = request.model_spec.signature_name
        some = tf.make_ndarray(request.inputs["text"]).astype(object)
        expected = [
            " ".join(split_words(text, split) or [EMPTY_TEXT]).encode()
            for text in some
        ]
        assert outputs["words"].tolist() == expected


def test_patterns_of_plain_texts():
    """Texts that match skip Unicode; those that rules change do not match."""
    rows = [*TABLE["thousands"], *TABLE["apostrophes"]]
    texts = [text for text, words in rows if text.lower() != words]
    plain = ["hex bolt, 3/8 in.", "a,b", "x,, y,", "", "\0\x7f~"]
    matched = tf.strings.regex_full_match(plain + texts, PLAIN).numpy()
    assert matched.tolist() == [True] * len(plain) + [False] * len(texts)
    without = ["Größe, 上海，酒店 5, 6", "комп", "e\u0301", "हिन्दी"]
    none = normalizer().signs.none
    broken = [b"\xff", b"a\xc3"]
    matched = tf.strings.regex_full_match(without + texts + broken, none)
    assert matched.numpy().tolist() == [True] * len(without) + [False] * (
        len(texts) + len(broken)
    )


LONG = [
    "1`", "²`", "⁺`", "ʹ`", "₂`", "₊`", "1.`", "1,`", "1₊`", "²⁄`", "⅟₊`",
    "1,000.`", "1\u00a0000,`", "1\u00a0a`", "½", "m²`", ",½", "n°`", "Ⅳ`",
    "¨\u0301`", "\u0301`", "ʹ\u0301`",
]  # fmt: skip
"""What is repeated, and the grave accent after it."""


@pytest.mark.parametrize("split", ["space", "stems"])
def test_long_texts_take_time_in_proportion_to_their_length(split):
    """A pattern that tries a row again from each of its characters takes
    minutes for these 50,000 characters; all of these take a second."""
    normalizer()
    start = time.process_time()
    for text in LONG:
        part = text.rstrip("`")
        repeated = part * (50_000 // len(part)) + text[len(part) :]
        split_words(repeated, split)
    assert time.process_time() - start < 20


def test_long_rows_of_signs_have_the_words_of_the_graph():
    texts = [text[:-1] * 700 + text[-1] for text in LONG]
    for split in SPLITS:
        for text, words in zip(
            texts, words_everywhere(texts, split), strict=True
        ):
            assert reference.split(text, split) == words
