"""The search page: how it compares words, what it asks for, and a browser."""

import json
import re
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.search_page import (
    SearchPage,
    highlighted,
    letter_similarity,
    nearest_words,
    trigrams,
    word_similarities,
    words_of,
)
from tests.browser import BROWSER, Page, browser_page
from tests.serving.tiny_models import save_encoder, save_function


def glue_and_bolts(text: tf.Tensor, k: tf.Tensor) -> dict[str, tf.Tensor]:
    """The outputs of a retriever; the third column is empty."""
    rows = tf.size(text) + 0 * tf.size(k)
    return {
        "ids": tf.repeat([["g", "b", ""]], rows, 0),
        "titles": tf.repeat([["Wood glue", "Hex bolts", ""]], rows, 0),
        "scores": tf.repeat([[-0.5, -1.0, -2.0]], rows, 0),
    }


@pytest.fixture
def models(tiny_models: Path, tmp_path) -> ModelRegistry:
    save_encoder(tmp_path / "query_encoder", offset=1.0)
    save_encoder(tmp_path / "document_encoder", offset=1.0)
    inputs = {"text": "string", "k": "int32"}
    save_function(tmp_path / "shop" / "3", glue_and_bolts, **inputs)
    (tmp_path / "retriever").symlink_to(tiny_models / "retriever")
    return ModelRegistry(tmp_path)


def test_words_by_encoder_and_by_letters(models):
    page = SearchPage(models)
    first, second = page.models()["models"]
    assert (first["name"], first["versions"]) == ("retriever", [1])
    # Of the first words of three titles; in the last two letters are wrong.
    assert first["examples"] == [
        "bolt",
        "steel angle",
        "shelf barcket",
    ]
    assert (second["name"], second["versions"]) == ("shop", [3])
    assert second["examples"] == ["wood glue", "hex blots"]
    found = page.search({"model": "retriever", "text": "blot", "k": 1})
    assert found["similarity"] == "encoder"
    (hit,) = found["hits"]
    assert hit["id"] == "bolt" and "click" not in hit
    assert "".join(p["text"] for p in hit["title"]) == "bolt"
    # The tiny encoders compare [words + 1, bytes]: equal for words of a length.
    (line,) = found["words"]
    assert (line["word"], line["exact"]) == ("blot", False)
    first = line["nearest"][0]
    assert (first["word"], first["similarity"]) == ("bolt", 1)

    # No encoder has the version of this retriever.
    found = page.search({"model": "shop", "text": "hex blts", "k": 2})
    assert found["similarity"] == "letters"
    assert [hit["id"] for hit in found["hits"]] == ["g", "b"]
    assert [hit["score"] for hit in found["hits"]] == [-0.5, -1.0]
    assert found["hits"][1]["title"] == [
        {"text": "Hex", "strength": 1.0},
        {"text": " ", "strength": 0},
        {"text": "bolts", "strength": 0.444},
    ]
    near = {"word": "bolts", "similarity": 0.444, "shared": ["lts", "ts#"]}
    words = {"word": "blts", "exact": False, "nearest": [near]}
    assert found["words"][1] == words


def test_what_the_card_says(models, tmp_path, caplog):
    page = SearchPage(models)
    assert page.models()["models"][1]["card"] == {}
    card = tmp_path / "card.json"
    export = {
        "date": "2026-11-22T10:00:00Z",
        "documents": 16_562,
        "run": {"name": "run", "config": {}, "facts": {}},
    }
    old, new = ({**export, "models": {"shop": v}} for v in (2, 3))
    new["documents"] = 7
    card.write_text(json.dumps({"exports": [old, new]}))
    first, second = page.models()["models"]
    assert first["card"] == {}
    assert second["card"] == {
        "date": "2026-11-22", "documents": 7, "run": "run",
    }  # fmt: skip
    card.write_text("{")
    assert page.models()["models"][1]["card"] == {}
    assert "the page does without the card" in caplog.text


def test_the_results_of_a_hybrid_say_why(tiny_models):
    page = SearchPage(ModelRegistry(tiny_models))
    found = page.search({"model": "hybrid", "text": "bolt", "k": 2})
    scores = [f"{hit['score'] / 2:.3f}" for hit in found["hits"]]
    assert [hit["why"] for hit in found["hits"]] == [
        f"towers {score}, bm25 {score} (bolt 0.250)" for score in scores
    ]
    found = page.search({"model": "retriever", "text": "bolt", "k": 2})
    assert [hit.keys() for hit in found["hits"]] == 2 * [
        {"id", "title", "score"}
    ]


def test_words():
    assert words_of(["CSV writer", "the csv file"]) == [
        "csv", "writer", "the", "file",
    ]  # fmt: skip
    assert words_of(["a b c", "d"], maximum=2) == ["a", "b"]
    assert len(words_of([" ".join(map(str, range(999)))])) == 200


def test_a_misspelled_word_shares_trigrams():
    similarity = letter_similarity(["aray", "of"], ["array", "of", "mean"])
    # #ar, ray and ay# of 4 + 5 trigrams.
    np.testing.assert_allclose(similarity, [[6 / 9, 0, 0], [0, 1, 0]])
    nearest = [{"word": "array", "similarity": 0.667,
                "shared": ["#ar", "ray", "ay#"]}]  # fmt: skip
    assert nearest_words(
        ["aray", "x"], ["array", "of"], similarity[:, :2] * [[1], [0]], 0.4
    ) == [{"word": "aray", "exact": False, "nearest": nearest}]
    strength = word_similarities(["array", "of", "mean"], similarity, 0.4)
    assert strength == {"array": 6 / 9, "of": 1}
    assert word_similarities([], np.zeros((2, 0)), 0.4) == {}
    parts = [[*p.values()] for p in highlighted("Mean of an ARRAY.", strength)]
    assert parts == [
        ["Mean ", 0], ["of", 1], [" an ", 0], ["ARRAY", 0.667], [".", 0],
    ]  # fmt: skip


@pytest.mark.parametrize(("title", "parts"), [
    ("hex-bolt, M8", ["hex", "-", "bolt", ", ", "M8"]),
    ("Quikrete™ (10,000mAh)", ["Quikrete", "™ (", "10,000mAh", ")"]),
    ("3½ in.", ["3", "½", " ", "in", "."]),
    ("हिन्दी-किताब", ["हिन्दी", "-", "किताब"]),
    ("e\u0301te\u0301", ["e\u0301te\u0301"]),
    ("-" * 90 + "bolt", ["-" * 90 + "bolt"]),  # too long to be divided
])  # fmt: skip
def test_words_of_a_title_are_marked_as_it_is_written(title, parts):
    every_word = dict.fromkeys(words_of([title]), 1.0)
    found = highlighted(title, every_word)
    assert [part["text"] for part in found] == parts
    assert {part["text"]: part["strength"] for part in found} == {
        part: float(bool(words_of([part]))) for part in parts
    }
    assert highlighted(title, {"glue": 1.0}) == [{"text": title, "strength": 0}]


def test_words_of_the_page_are_normalised_and_cut():
    assert words_of(["Größe Große™", "10,000"]) == ["grösse", "grosse", "10000"]
    assert words_of(["w" * 80]) == ["w" * 64]


@settings(deadline=None)
@given(st.text(), st.text(max_size=9))
def test_parts_give_the_title_and_similarities_are_shares(title, query):
    asked, words = words_of([query]), words_of([title])
    similarity = letter_similarity(asked, words)
    assert ((similarity >= 0) & (similarity <= 1)).all()
    for row, word in enumerate(asked):
        for column, other in enumerate(words):
            same = trigrams(word) == trigrams(other)
            assert not same or similarity[row, column] == 1
    parts = highlighted(title, word_similarities(words, similarity, 0.4))
    assert "".join(part["text"] for part in parts) == title


JSON = {"content_type": "application/json"}
SEARCH = "/page/search"
HOSTILE = "<script>document.title = 'broken'</script> & <b>bolt</b>"
TITLES = (HOSTILE, "steel angle", "hex bolt", "w" * 80)
RESULTS = "[...document.querySelectorAll('.results li')]"
SHOWN = f"{RESULTS}.map(line => line.querySelector('.title').textContent)"
STATUS = "document.getElementById('status').textContent"


def test_nothing_is_loaded_from_elsewhere(server):
    for path in ("", "page/page.js", "page/page.css", "page/icon.svg"):
        with urllib.request.urlopen(f"{server.http_address}/{path}") as reply:
            policy = reply.headers["content-security-policy"]
            text = reply.read().decode()
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "innerHTML" not in text and " style=" not in text
        # The name of SVG's elements is no address that a browser loads.
        assert re.findall(r"https?://[^\"]*", text) == (
            ["http://www.w3.org/2000/svg"] if path.endswith("svg") else []
        )


def asked(text: str, k: int = 3, **more: object) -> str:
    return json.dumps({"model": "retriever", "text": text, "k": k, **more})


def test_models_and_results(send):
    code, reply = send("GET", "/page/models")
    assert (code, reply["clicks"]) == (200, True)
    listed = [(each["name"], each["versions"]) for each in reply["models"]]
    assert listed == [("hybrid", [1]), ("retriever", [1])]
    code, reply = send("POST", SEARCH, asked("bolt"), **JSON)
    assert code == 200
    assert [reply["model"], reply["version"]] == ["retriever", 1]
    assert [hit["id"] for hit in reply["hits"]] == [
        "bolt", "steel angle", "shelf bracket",
    ]  # fmt: skip
    assert reply["hits"][0]["score"] == pytest.approx(1)
    assert reply["hits"][0]["title"] == [{"text": "bolt", "strength": 1}]
    # Query and document encoder of version 1 are not both served.
    assert reply["similarity"] == "letters"
    assert reply["words"][0]["nearest"][0]["word"] == "bolt"
    empty = send("POST", SEARCH, asked(""), **JSON)
    assert empty[0] == 200 and empty[1]["words"] == []


@pytest.mark.parametrize(("body", "code", "message"), [
    ("[]", 400, "Is not object"),
    ('{"model": "retriever"}', 400, "'text' must be a string"),
    (asked("a" * 1001), 400, "'text' has more than 1,000 letters"),
    (asked("\ud800"), 400, "The surrogate pair in string is invalid"),
    (asked("a", **{"\udfff": 1}), 400, "surrogate pair in string"),
    (asked("a", k=51), 400, "'k' must be a whole number, 1 to 50"),
    (asked("a", version="1"), 400, "'version' must be a whole number"),
    (asked("a", version=9), 404, "Servable not found"),
    (asked("a", model="numbers"), 400, "numbers is no retriever"),
    (asked("a", model="foo"), 404, "Servable not found"),
])  # fmt: skip
def test_wrong_searches(send, body, code, message):
    status, reply = send("POST", SEARCH, body, **JSON)
    assert status == code
    assert message in reply["error"]


def test_clicks_are_those_of_results(click_log, send):
    before = click_log.read_text()
    hits = send("POST", SEARCH, asked("a\tbolt"), **JSON)[1]["hits"]
    click = json.dumps({"click": hits[1]["click"]})
    for new in (True, False):
        reply = send("POST", "/page/click", click, **JSON)
        assert reply == (200, {"written": new})
    title = "".join(part["text"] for part in hits[1]["title"])
    assert click_log.read_text() == f"{before}a bolt\t{title}\n"
    for forged in ("", "AAAA", hits[0]["click"][:-4]):
        body = json.dumps({"click": forged})
        code, reply = send("POST", "/page/click", body, **JSON)
        assert code == 400
        assert "not a result of this server" in reply["error"]
    # A form of another site cannot send JSON.
    code, _ = send("POST", "/page/click", click, content_type="text/plain")
    assert code == 415
    assert click_log.read_text().count("\n") == before.count("\n") + 1


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """A retriever of two versions, with titles that look like HTML.

    The first title depends on the length of the query, and on the version.
    """
    models = tmp_path_factory.mktemp("hostile")

    def search(text: tf.Tensor, k: tf.Tensor, offset: int) -> Any:
        first = tf.strings.length(text)[:, None] + offset
        rows = (first + tf.range(len(TITLES))) % len(TITLES)
        scores = 1 - tf.range(len(TITLES), dtype="float32") / 4
        return {
            "ids": tf.gather(tf.constant(TITLES), rows),
            "scores": tf.repeat(scores[None], tf.size(text), 0)
            + 0 * tf.cast(k[:, None], tf.float32),
        }

    for offset in (0, 1):
        save_function(
            models / "retriever" / str(offset + 1),
            lambda text, k, offset=offset: search(text, k, offset),
            **{"text": "string", "k": "int32"},
        )
    return models


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[Page]:
    with browser_page(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")
def test_the_page_in_a_browser(hostile, page, tmp_path):
    clicks = tmp_path / "clicks.tsv"
    with PredictionServer(
        hostile, port=0, http_port=0, versions=2, click_log=clicks
    ) as server:
        url = server.http_address
        page.screen(1200, 800)
        page.open(url)
        # What is searched, and examples, until there is a query.
        greeting = "document.getElementById('greeting')"
        page.wait_for(f"!{greeting}.hidden")
        assert page.evaluate("document.getElementById('card').innerText") == (
            "retriever, version 2"
        )
        examples = f"[...{greeting}.querySelectorAll('a')]"
        assert page.evaluate(f"{examples}.map(link => link.innerText)") == [
            "steel angle", "hex bolt", f"{'w' * 64} {'w' * 16}",
        ]  # fmt: skip
        # The query has the focus: typing searches.
        page.wait_for("document.activeElement.id === 'query'")
        page.type("bolt")
        # Version 2 begins with the title at (4 + 1) % 4.
        page.wait_for(f"{SHOWN}[0] === 'steel angle'")
        assert page.evaluate(SHOWN) == [
            "steel angle", "hex bolt", "w" * 80, HOSTILE,
        ]  # fmt: skip
        # Titles are text: nothing in them runs, or is an element.
        assert page.evaluate("document.title") == "Search"
        inside = f"{RESULTS}.flatMap(x => [...x.querySelectorAll('b, script')])"
        assert page.evaluate(f"{inside}.length") == 0
        marks = "[...document.querySelectorAll('mark')].map(m => m.innerText)"
        assert page.evaluate(marks) == ["bolt", "bolt"]
        assert "1.000" in page.evaluate(f"{RESULTS}[0].innerText")
        assert page.evaluate("document.querySelector('.near').title") == (
            "shared letter trigrams: #bo bol olt lt#"
        )

        # Keys: down twice, follow; the same again counts once.
        page.press("ArrowDown")
        page.press("ArrowDown")
        active = "document.querySelector('.active .title').textContent"
        assert page.evaluate(active) == "hex bolt"
        page.press("Enter")
        page.wait_for(f"{STATUS} === 'Saved as a click: hex bolt'")
        page.press("Enter")
        page.wait_for(f"{STATUS} === 'Saved before: hex bolt'")
        page.evaluate(f"{RESULTS}[3].click()")
        page.wait_for(f"{STATUS}.includes('<script>')")
        assert clicks.read_text() == (f"bolt\thex bolt\nbolt\t{HOSTILE}\n")
        # Escape clears; "back" searches again, and a link searches at once.
        page.press("Escape")
        page.wait_for(f"{RESULTS}.length === 0 && !{greeting}.hidden")
        assert page.evaluate("location.search") == ""
        page.evaluate("history.back()")
        page.wait_for(f"{RESULTS}.length === 4")
        assert page.evaluate("location.search") == "?q=bolt&model=retriever"
        page.open(f"{url}/?q=bolt&model=retriever%3A1&with=retriever")
        page.wait_for(f"{RESULTS}.length === 8")
        assert page.evaluate(f"{SHOWN}[0]") == f"{HOSTILE}▲3"
        page.open(url)
        page.wait_for(f"!{greeting}.hidden")
        page.evaluate(f"{examples}[0].click()")
        page.wait_for(f"{RESULTS}.length === 4")
        assert page.evaluate("location.search") == (
            "?q=steel+angle&model=retriever"
        )
        page.evaluate("history.back()")
        page.wait_for(f"{RESULTS}.length === 0 && !{greeting}.hidden")
        page.evaluate("history.forward()")
        page.wait_for(f"{RESULTS}.length === 4")
        page.press("Escape")
        page.wait_for(f"{RESULTS}.length === 0")
        page.evaluate("document.activeElement.blur()")
        page.press("/")
        assert page.evaluate("document.activeElement.id") == "query"
        assert page.evaluate("document.activeElement.value") == ""

        # Two versions side by side, with the changes of rank.
        page.evaluate(
            "{const right = document.getElementById('right');"
            "right.value = 'retriever:1';"
            "right.dispatchEvent(new Event('change'))}"
        )
        page.type("bolt")
        page.wait_for(f"{RESULTS}.length === 8")
        notes = "[...document.querySelectorAll('.note')].map(x => x.innerText)"
        assert page.evaluate(notes) == [
            "▲1", "▲1", "▲1", "▼3", "▲3", "▼1", "▼1", "▼1",
        ]  # fmt: skip
        # A late reply to an earlier query is dropped.
        page.evaluate(
            "window.fetch = (fetch => (path, options) => fetch(path,"
            " {...options, signal: undefined}).then(reply =>"
            " new Promise(done => setTimeout(() => done(reply),"
            " options?.body?.includes('slow') ? 600 : 0))))(window.fetch)"
        )
        query = "document.getElementById('query')"
        for text in ("slow", "fast!"):
            page.evaluate(
                f"{query}.value = '{text}';"
                f"{query}.dispatchEvent(new Event('input'))"
            )
            page.evaluate("new Promise(done => setTimeout(done, 200))")
        page.evaluate("new Promise(done => setTimeout(done, 700))")
        assert page.evaluate(f"{SHOWN}[0]") == "hex bolt▲1"

        # A phone: nothing is wider than the screen.
        for scheme in ("light", "dark"):
            page.screen(390, 800, scheme)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width == 390
            page.screenshot(tmp_path / f"{scheme}.png")
        assert page.problems() == []
        assert page.hosts() == {url.split("/")[2]}

    # The server is gone, and comes back on the same port.
    page.evaluate("document.getElementById('query').focus()")
    page.type("?")
    page.wait_for(f"{STATUS}.includes('does not answer; trying again')")
    assert page.evaluate("document.body.classList.contains('offline')")
    port = int(url.rsplit(":", 1)[1])
    with PredictionServer(hostile, port=0, http_port=port, versions=2):
        page.wait_for(f"{SHOWN}[0]?.startsWith('www')")
        assert not page.evaluate("document.body.classList.contains('offline')")


@pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")
def test_reasons_in_a_browser(page, tiny_models, tmp_path):
    shutil.copytree(tiny_models / "hybrid", tmp_path / "hybrid")
    with PredictionServer(tmp_path, port=0, http_port=0) as server:
        page.open(f"{server.http_address}/?q=bolt")
        page.wait_for(f"{RESULTS}.length > 0")
        found = page.evaluate(
            "[...document.querySelectorAll('.why')].map(x => x.innerText)"
        )
    reason = re.compile(r"towers (\d\.\d{3}), bm25 \1 \(bolt 0\.250\)")
    assert found and all(map(reason.fullmatch, found))
