"""BM25 of a hybrid retriever: scores of bm25s, terms and forms."""

import sys
from importlib import metadata
from types import ModuleType

import bm25s
import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluate.hybrid import bm25_system
from keras_lstm_dssm.evaluation import bm25
from keras_lstm_dssm.evaluation.bm25 import BM25System, english_stem
from keras_lstm_dssm.evaluation.postings import (
    default_terms,
    inflections,
    stemmer_facts,
    term_tokenizer,
    title_postings,
)
from keras_lstm_dssm.settings.hybrid import HybridSettings
from lstm_dssm_client.bm25 import (
    FORMS,
    MAX_WORDS,
    STOP,
    unaccented,
    word_forms,
)

ENGLISH = [
    "Steel hex bolts, 3/8 in.", "hex bolt and the hex nut", "", "wood glue",
    "drilling machine for wood", "cordless drill", "battery of the drill",
    "Béquille de vélo", "Velo", "Thé vert",
]  # fmt: skip
GERMAN = [
    "Große Schlüssel für Schrauben", "Schraubenschlüssel", "Häuser aus Holz",
    "Schlüssel und Schrauben aus Stahl",
]  # fmt: skip
CHINESE = ["上海酒店", "北京的酒店和机票", "上海到北京", "iPhone 手机壳"]
CORPORA = {
    "stems": (
        ENGLISH,
        [
            "drills",
            "the hexed bolts bolts",
            "batteries",
            "x",
            "bequilles VÉLO",
            "the thé",
        ],
    ),
    "words": (
        GERMAN,
        ["schluessel", "SCHLÜSSEL aus grosse", "Hölz", "schrauben schlussel"],
    ),
    "trigrams": (CHINESE, ["酒店", "北京 iphone", "机", "到北京去"]),
}
"""Terms -> titles, and queries; three of them have no term of a title."""


def test_stems_do_not_depend_on_pystemmer(monkeypatch):
    """snowballstemmer hands out PyStemmer, of another version, if it can."""

    class Stemmer:
        def __init__(self, language: str) -> None:
            pass

        def stemWord(self, word: str) -> str:
            return word[:3]

    words = ["drilling", "batteries", "biology"]
    stand_in = ModuleType("Stemmer")
    vars(stand_in).update(Stemmer=Stemmer, algorithms=list)
    for name in [name for name in sys.modules if "snowballstemmer" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "Stemmer", stand_in)
    caches = bm25._stemmer, bm25.english_stem
    for cache in caches:
        cache.cache_clear()
    try:
        found = [english_stem(word) for word in words]
        import snowballstemmer

        # So it does happen.
        assert snowballstemmer.stemmer("english").stemWord("drilling") == "dri"
    finally:
        for cache in caches:
            cache.cache_clear()
    # https://snowballstem.org/demo.html, English
    assert found == ["drill", "batteri", "biolog"]


def test_an_export_records_the_stemmer():
    version = metadata.version("snowballstemmer")
    stems = HybridSettings(bm25_words="stems")
    assert stemmer_facts(stems) == {"stemmer": f"snowballstemmer {version}"}
    assert stemmer_facts(stems.replace(bm25=0.0)) == {}
    assert stemmer_facts(HybridSettings(bm25_words="words")) == {}


@pytest.mark.parametrize("kind", CORPORA)
def test_evaluation_reads_as_many_words_of_a_query_as_a_server(kind):
    """A word after the last that is read adds nothing; in a title it does."""
    titles = ["hex bolt", "glue " * MAX_WORDS + "wood"]
    settings = HybridSettings(bm25_words=kind)
    for other, found in ((MAX_WORDS - 1, [1]), (MAX_WORDS, [])):
        query = "please " * other + "wood"
        ((scores, matching),) = bm25_system(settings).scores(
            [query], tuple(titles)
        )
        assert [*np.flatnonzero(scores)] == found, matching


def test_another_order_of_titles():
    settings = HybridSettings(bm25_words="stems")
    order = np.random.default_rng(0).permutation(len(ENGLISH))
    found = title_postings(ENGLISH, settings).in_order(order)
    expected = title_postings([ENGLISH[row] for row in order], settings)
    assert found[:3] == expected[:3]
    for array, values in zip(found[3:], expected[3:], strict=True):
        np.testing.assert_array_equal(array, values)


@pytest.mark.parametrize("kind", CORPORA)
def test_scores_are_those_of_bm25s(kind):
    titles, queries = CORPORA[kind]
    chosen = HybridSettings(k1=1.6, b=0.4, bm25_words=kind)
    assert default_terms(titles) == ("stems" if kind == "words" else kind)
    tokenize = term_tokenizer(kind)
    peer = bm25s.BM25(k1=1.6, b=0.4, method="lucene")
    peer.index([*map(tokenize, titles)], show_progress=False)
    system = BM25System(1.6, 0.4, tokenize)
    postings = title_postings(titles, chosen)
    for query, (scores, matching) in zip(
        queries, system.scores(queries, tuple(titles)), strict=True
    ):
        expected = peer.get_scores([*map(str, tokenize(query))])
        np.testing.assert_allclose(scores, expected, rtol=1e-6)
        np.testing.assert_array_equal(matching, np.flatnonzero(expected))
        forms = [form for _, form in word_forms(FORMS[kind], query)]
        np.testing.assert_allclose(postings.sums(forms), expected, rtol=1e-6)
        assert expected.any() == (query not in ("x", "schluessel", "机"))


@pytest.mark.parametrize(("titles", "terms"), [
    (GERMAN, "stems"),
    (["Купить болт"], "words"),
    (["สว่านไร้สาย"], "trigrams"),
    (["ドリル 电动工具"], "trigrams"),
    (["123", ""], "stems"),
])  # fmt: skip
def test_the_script_of_the_titles_chooses(titles, terms):
    assert default_terms(titles) == terms


def test_inflections_have_the_stem():
    found = inflections("batteri")
    assert {"battery", "batteries"} <= {*found}
    assert {english_stem(form) for form in found} == {"batteri"}
    assert "fitted" in inflections("fit") and inflections("3d") == []


def test_accents_of_latin_letters_do_not_matter():
    """A word that would be a stop word keeps them."""
    words = ["béquille", "Ėę", "mйн", "บ้าน", "가", "o\u0300\u0323"]
    assert [*map(unaccented, words)] == [
        "bequille", "Ėe", "mйн", "บ้าน", "가", "o"
    ]  # fmt: skip
    titles = ["Béquille", "Velo", "Thé", "The", "Vélo"]
    for kind, found in (
        ("stems", [2]),
        ("words", [2, 3]),
        ("trigrams", [2, 3]),
    ):
        postings = title_postings(titles, HybridSettings(bm25_words=kind))
        for query, rows in ("velo", [1, 4]), ("VÉLO", [1, 4]), ("thé", found):
            forms = [form for _, form in word_forms(FORMS[kind], query)]
            assert np.flatnonzero(postings.sums(forms)).tolist() == rows


def test_words_of_queries_are_forms_of_known_stems_only():
    chosen = HybridSettings(bm25_words="stems")
    queries = ["the generalization", "lamps"]
    postings = title_postings(["general drill"], chosen, queries)
    term_of = postings.term_of
    assert [*term_of] == sorted(term_of) and len(postings.bounds) == 1 + 2
    assert term_of["the"] == STOP
    assert term_of["generalization"] == term_of["general"] == 1
    assert term_of["drills"] == 0 and "lamps" not in term_of


def test_weights_of_the_parts_that_there_are():
    chosen = HybridSettings(5, 3, 2, 1, 1).of_parts(["words", "bm25"])
    assert [*chosen.weights.values()] == [0, 3, 2, 0, 0]
    default = HybridSettings()
    few = default.without_dev(["towers", "words", "bm25"], 2000, 2000)
    towers = default.towers / 4
    words = default.words + 0.75**3 * default.towers
    hubness = 0.6 * towers
    assert few == default.replace(towers=towers, words=words, hubness=hubness)
    assert default.without_dev(["towers", "words", "bm25"], 9, 0) == default
    assert default.without_dev(["words", "bm25"], 9, 5000).hubness == 0
    alone = default.without_dev(["bm25", "numbers"], 9, 0)
    assert alone.bm25 > 2 * default.bm25 and alone.base > default.base
    for wrong, message in (
        (
            lambda: HybridSettings(0, 0, 0, 0, 0),
            "all weights of the hybrid are 0",
        ),
        (
            lambda: HybridSettings(1, 0, 0, 0, 0).of_parts(["bm25"]),
            "of bm25 in the",
        ),
        (lambda: HybridSettings(b=2), "b is 2: expected 0 to 1"),
    ):
        with pytest.raises(InputError, match=message):
            wrong()
