"""The search page: how it compares words, what it asks for, and a browser."""

import http.client
import json
import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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
    reasons,
    trigrams,
    word_similarities,
    word_similarity,
    words_of,
)
from lstm_dssm_client.signatures import ExplainedHit
from tests.browser import BROWSER, Page, browser_page
from tests.serving.tiny_models import save_encoder, save_function


def glue_and_bolts(text: tf.Tensor, k: tf.Tensor) -> dict[str, tf.Tensor]:
    """The outputs of a retriever; the third column is empty."""
    rows = tf.size(text) + 0 * tf.size(k)
    return {
        "ids": tf.repeat([["g", "b", ""]], rows, 0),
        "titles": tf.repeat([["Wood glue", "Hex bolts", ""]], rows, 0),
        "scores": tf.repeat([[-0.5, -1.0, -2.0]], rows, 0),
        "weak": tf.repeat([[False, True, True]], rows, 0),
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
        {"text": "bolt", "misspelled": False},
        {"text": "steel angle", "misspelled": False},
        {"text": "shelf barcket", "misspelled": True},
    ]
    assert (second["name"], second["versions"]) == ("shop", [3])
    examples = [[*each.values()] for each in second["examples"]]
    assert examples == [["wood glue", False], ["hex blots", True]]
    asked = {"model": "retriever", "text": "of blot", "k": 1}
    found = page.search(asked)
    (hit,) = found["hits"]
    assert hit["id"] == "bolt" and not hit.keys() & {"click", "weak"}
    # The tiny encoders compare [words + 1, bytes]: equal for words of a length.
    assert hit["title"] == [{"text": "bolt", "strength": 1}]
    assert found["words"]["blot"][0] == "bolt"
    assert found["words"].keys() == {"blot"}  # "of" is a stop word
    assert hit["why"] == ["“blot” is near “bolt”"]
    # No trigram is in both words.
    found = page.search({**asked, "letters": True})
    assert found["words"] == {"blot": []}
    assert found["hits"][0]["title"] == [{"text": "bolt", "strength": 0}]

    # No encoder has the version of this retriever.
    found = page.search({"model": "shop", "text": "hex blts", "k": 2})
    glue, bolts = found["hits"]
    assert (glue["id"], glue["score"], glue["weak"]) == ("g", -0.5, False)
    assert (bolts["id"], bolts["score"], bolts["weak"]) == ("b", -1, True)
    assert bolts["title"] == [
        {"text": "Hex", "strength": 1.0},
        {"text": " ", "strength": 0},
        {"text": "bolts", "strength": 0.444},
    ]
    assert found["words"] == {"blts": ["bolts"]}
    assert (glue["why"], bolts["why"]) == ([], ["“blts” is near “bolts”"])
    assert found["more"]  # as many hits as asked for
    assert not page.search({"model": "shop", "text": "hex", "k": 3})["more"]


def test_letters_tell_misspelled_words_and_cosines_the_others():
    """A word that titles have is compared by meaning, and with itself."""
    asked, words = ["waar", "sofa", "zzz"], ["war", "couch", "sofa"]
    cosines = np.array([[0.2, 0.9, 0.1], [0.1, 0.8, 0.7], [0.25, 0.1, -0.3]])
    similarity = word_similarity(asked, words, cosines)
    # #wa and ar# of 4 + 3 trigrams.
    np.testing.assert_allclose(
        similarity, [[4 / 7, 0, 0], [0, 0.8, 1], [0, 0, 0]]
    )
    assert nearest_words(asked, words, similarity) == {
        "waar": ["war"], "zzz": [],
    }  # fmt: skip
    assert word_similarities(words, similarity) == {
        "war": 4 / 7, "couch": 0.8, "sofa": 1,
    }  # fmt: skip
    by_letters = word_similarity(asked, words)
    np.testing.assert_allclose(
        by_letters, [[4 / 7, 0, 0], [0, 0, 1], [0, 0, 0]]
    )


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
    # The next export, whose version is not served yet, replaces the entry.
    next_one = {**export, "models": {"shop": 4}, "documents": 8}
    card.write_text(json.dumps({"exports": [next_one]}))
    assert page.models()["models"][1]["card"]["documents"] == 7
    assert SearchPage(models).models()["models"][1]["card"] == {}
    assert [*page._cards] == [("shop", 3)]
    (tmp_path / "shop" / "3").rename(tmp_path / "shop" / "4")
    models.refresh()
    assert page.models()["models"][1]["card"]["documents"] == 8
    assert [*page._cards] == [("shop", 4)]
    card.write_text("{")
    assert page.models()["models"][1]["card"] == {}
    assert "the page shows no date of the export" in caplog.text


def test_the_results_of_a_hybrid_say_why(tiny_models):
    page = SearchPage(ModelRegistry(tiny_models))
    reason = ["50 % learned from clicks", "50 % words of the query: bolt"]
    asked = {"model": "hybrid", "text": "bolt", "k": 2}
    found = page.search(asked)
    assert [hit["why"] for hit in found["hits"]] == [reason] * 2
    (hit,) = page.search({**asked, "tags": ["kind:angle"]})["hits"]
    assert (hit["id"], hit["why"]) == ("steel angle", reason)
    found = page.search({**asked, "model": "retriever"})
    assert [hit["why"] for hit in found["hits"]] == [[], []]


def test_reasons_leave_out_stop_words_and_parts_that_add_nothing():
    words = {
        "bm25": {"gears": 0.1, "of": 0.15, "war": 0.05},
        "words": {"of": 0.01, "gears": -0.02},
    }
    parts = {"towers": -0.1, "words": 0.1, "bm25": 0.3}
    assert reasons(ExplainedHit("g", 0.3, parts, words)) == [
        "75 % words of the query: gears, war",
        "25 % words of a similar meaning",
    ]
    nothing = dict.fromkeys(parts, 0.0)
    assert reasons(ExplainedHit("g", 0.0, nothing, {})) == []


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
    similarity = word_similarity(["aray", "of"], ["array", "of", "mean"])
    strength = word_similarities(["array", "of", "mean"], similarity)
    assert strength == {"array": 6 / 9, "of": 1}
    assert word_similarities([], np.zeros((2, 0))) == {}
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
    similar = word_similarity(asked, words)
    parts = highlighted(title, word_similarities(words, similar))
    assert "".join(part["text"] for part in parts) == title


JSON = {"content_type": "application/json"}
SEARCH = "/page/search"
HOSTILE = "<script>document.title = 'broken'</script> & <b>bolt</b>"
TITLES = (HOSTILE, "steel angle", "hex bolt", "w" * 80)
RESULTS = "[...document.querySelectorAll('.results > li')]"
NOTES = "[...document.querySelectorAll('.results .note')].map(x => x.innerText)"
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
        assert not re.search("[\"'`]/\\w", text)  # addresses are relative
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
    assert reply["words"] == {} and reply["more"]
    empty = send("POST", SEARCH, asked(""), **JSON)
    assert empty[0] == 200 and empty[1]["words"] == {}


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


QUERY = "document.getElementById('query')"
GREETING = "document.getElementById('greeting')"
EXAMPLES = f"[...{GREETING}.querySelectorAll('a')]"
FOCUS = "document.activeElement"


def choose(page: Page, select: str, value: str) -> None:
    """Chooses a value of a select, as a user does."""
    page.evaluate(
        f"{{const select = document.querySelector('{select}');"
        f"select.value = '{value}';"
        "select.dispatchEvent(new Event('change'))}"
    )


@pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")
def test_the_page_in_a_browser(hostile, page, tmp_path):
    clicks = tmp_path / "clicks.tsv"
    with PredictionServer(
        hostile, port=0, http_port=0, versions=2, click_log=clicks
    ) as server:
        url = server.http_address
        page.screen(1200, 800)
        page.open(url)
        # Examples, until there is a query.
        page.wait_for(f"!{GREETING}.hidden")
        card = "document.getElementById('card').textContent"
        assert page.evaluate(card) == "retriever, version 2"
        assert page.evaluate(f"{EXAMPLES}.map(link => link.innerText)") == [
            "steel angle", "hex bolt", "w" * 64,
        ]  # fmt: skip
        # The query has the focus: typing searches.
        page.wait_for(f"{FOCUS}.id === 'query'")
        page.type("bolt")
        # Version 2 begins with the title at (4 + 1) % 4.
        page.wait_for(f"{SHOWN}[0] === 'steel angle'")
        assert page.evaluate(SHOWN) == [
            "steel angle", "hex bolt", "w" * 80, HOSTILE,
        ]  # fmt: skip
        assert page.evaluate(STATUS).startswith("4 results in ")
        # Titles are text: nothing in them runs, or is an element.
        assert page.evaluate("document.title") == "Search"
        inside = f"{RESULTS}.flatMap(x => [...x.querySelectorAll('b, script')])"
        assert page.evaluate(f"{inside}.length") == 0
        marks = "[...document.querySelectorAll('mark')].map(m => m.innerText)"
        assert page.evaluate(marks) == ["bolt", "bolt"]
        assert page.evaluate(f"{RESULTS}[0].innerText") == "steel angle\n1.00"

        # Keys: down twice, follow; the same again counts once.
        page.press("ArrowDown")
        page.press("ArrowDown")
        assert page.evaluate(f"{FOCUS}.textContent") == "hex bolt"
        page.press("Enter")
        page.wait_for(f"{STATUS} === 'Saved as a click: hex bolt'")
        page.press("Enter")
        page.wait_for(f"{STATUS} === 'Saved before: hex bolt'")
        page.evaluate(f"{RESULTS}[3].querySelector('.title').click()")
        page.wait_for(f"{STATUS}.includes('<script>')")
        assert clicks.read_text() == (f"bolt\thex bolt\nbolt\t{HOSTILE}\n")
        for _ in range(2):
            page.press("ArrowUp")
        assert page.evaluate(f"{FOCUS}.id") == "query"
        # Escape clears; "back" searches again, and a link searches at once.
        page.press("Escape")
        page.wait_for(f"{RESULTS}.length === 0 && !{GREETING}.hidden")
        assert page.evaluate("location.search") == ""
        page.evaluate("history.back()")
        page.wait_for(f"{RESULTS}.length === 4")
        assert page.evaluate("location.search") == "?q=bolt&model=retriever"
        page.open(f"{url}/?q=bolt&model=retriever%3A1&with=retriever")
        page.wait_for(f"{RESULTS}.length === 8")
        assert page.evaluate(f"{SHOWN}[0]") == HOSTILE
        assert page.evaluate(f"{NOTES}[0]") == "▲3"
        page.open(url)
        page.wait_for(f"!{GREETING}.hidden")
        page.evaluate(f"{EXAMPLES}[0].click()")
        page.wait_for(f"{RESULTS}.length === 4")
        assert page.evaluate("location.search") == (
            "?q=steel+angle&model=retriever"
        )
        page.evaluate("history.back()")
        page.wait_for(f"{RESULTS}.length === 0 && !{GREETING}.hidden")
        page.evaluate("history.forward()")
        page.wait_for(f"{RESULTS}.length === 4")
        page.press("Escape")
        page.wait_for(f"{RESULTS}.length === 0")
        page.evaluate(f"{FOCUS}.blur()")
        page.press("/")
        assert page.evaluate(f"{FOCUS}.id") == "query"
        assert page.evaluate(f"{FOCUS}.value") == ""

        # Two versions side by side, with the changes of rank.
        choose(page, "#right", "retriever:1")
        page.type("bolt")
        page.wait_for(f"{RESULTS}.length === 8")
        assert page.evaluate(NOTES) == [
            "▲1", "▲1", "▲1", "▼3", "▲3", "▼1", "▼1", "▼1",
        ]  # fmt: skip
        # A late reply to an earlier query is dropped.
        page.evaluate(
            "window.fetch = (fetch => (path, options) => fetch(path,"
            " {...options, signal: undefined}).then(reply =>"
            " new Promise(done => setTimeout(() => done(reply),"
            " options?.body?.includes('slow') ? 600 : 0))))(window.fetch)"
        )
        for text in ("slow", "fast!"):
            page.evaluate(
                f"{QUERY}.value = '{text}';"
                f"{QUERY}.dispatchEvent(new Event('input'))"
            )
            page.evaluate("new Promise(done => setTimeout(done, 200))")
        page.evaluate("new Promise(done => setTimeout(done, 700))")
        assert page.evaluate(f"{SHOWN}[0]") == "hex bolt"

        # A phone: nothing is wider than the screen.
        for width in (390, 320):
            page.screen(width, 800)
            assert width == page.evaluate(
                "document.documentElement.scrollWidth"
            )
        # An unknown model leaves no results of another one.
        page.open(f"{url}/?q=bolt&model=gone")
        page.wait_for(f"{STATUS} === 'This server has no model “gone”.'")
        assert page.evaluate(f"{RESULTS}.length") == 0
        assert page.problems() == []
        assert page.hosts() == {url.split("/")[2]}
        page.open(f"{url}/?q=bolt")
        page.wait_for(f"{RESULTS}.length === 4")

    # The server is gone, and comes back on the same port.
    page.evaluate(f"{QUERY}.focus()")
    page.type("?")
    page.wait_for(f"{STATUS}.includes('does not answer; trying again')")
    assert page.evaluate(f"{RESULTS}.length") == 0
    port = int(url.rsplit(":", 1)[1])
    with PredictionServer(hostile, port=0, http_port=port, versions=2):
        page.wait_for(f"{SHOWN}[0] === 'hex bolt'")


@contextmanager
def below_a_path(address: str, prefix: str) -> Iterator[str]:
    """Starts a reverse proxy, and yields the address below which a server is.

    The proxy removes the prefix of paths, and has nothing beside it.
    """

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith(f"{prefix}/"):
                self.send_error(404)
                return
            size = int(self.headers.get("content-length", 0))
            server = http.client.HTTPConnection(address.split("/")[2])
            server.request(
                self.command,
                self.path.removeprefix(prefix),
                self.rfile.read(size),
                {"content-type": self.headers.get("content-type", "")},
            )
            reply = server.getresponse()
            data = reply.read()
            server.close()
            self.send_response(reply.status)
            for name in ("content-type", "content-security-policy"):
                self.send_header(name, reply.headers[name])
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Prints nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}{prefix}"
        finally:
            proxy.shutdown()
            thread.join()


TITLE_COUNT = 25


@pytest.fixture(scope="module")
def shop(tiny_models, tmp_path_factory) -> Path:
    """A hybrid retriever with tags, and one of many titles, some weak."""
    models = tmp_path_factory.mktemp("shop")
    (models / "hybrid").symlink_to(tiny_models / "hybrid")
    ids = [f"{number}" for number in range(TITLE_COUNT)]

    def search(text: tf.Tensor, k: tf.Tensor) -> Any:
        width = tf.minimum(tf.reduce_max(k), TITLE_COUNT)
        scores = 1 - tf.range(width, dtype=tf.float32) / TITLE_COUNT
        outputs = {
            "ids": tf.constant(ids)[:width],
            "titles": "bolt " + tf.constant(ids)[:width],
            "scores": scores,
            "weak": scores < 0.9,
        }
        rows = tf.size(text)
        return {n: tf.repeat(v[None], rows, 0) for n, v in outputs.items()}

    inputs = {"text": "string", "k": "int32"}
    save_function(models / "many" / "1", search, **inputs)
    return models


@pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")
def test_a_shops_page_below_a_path(page, shop):
    """Reasons, facets, weak matches and more results, behind a proxy."""
    ids = "[...document.querySelectorAll('.id')].map(x => x.innerText)"
    with (
        PredictionServer(shop, port=0, http_port=0) as server,
        below_a_path(server.http_address, "/shop") as url,
    ):
        page.events.clear()
        page.screen(390, 800)
        page.open(f"{url}/")
        page.wait_for(f"!{GREETING}.hidden")
        typo = f"{GREETING}.querySelector('li:last-child .note').innerText"
        assert page.evaluate(typo) == "with a typo"
        page.open(f"{url}/?q=the%20bolt")
        page.wait_for(f"{RESULTS}.length === 3")
        # Reasons are folded; the keyboard opens them.
        why = f"{RESULTS}[0].querySelector('details')"
        assert page.evaluate(f"{why}.innerText") == "Why?"
        assert page.evaluate(f"{FOCUS}.id") == "query"
        for name in ("SELECT", "BUTTON", "SUMMARY"):
            page.press("Tab")
            assert page.evaluate(f"{FOCUS}.tagName") == name
        page.press("Enter")
        assert page.evaluate(f"{why}.innerText").split("\n")[1:] == [
            "50 % learned from clicks", "50 % words of the query: bolt",
        ]  # fmt: skip
        top = page.evaluate(f"{RESULTS}[0].getBoundingClientRect().top")
        assert top < 300
        # A facet restricts the search, and the address has it.
        kind = "#tags select"
        values = f"[...document.querySelector('{kind}').options]"
        assert page.evaluate(f"{values}.map(x => x.text)") == [
            "any", "angle", "bracket", "bolt",
        ]  # fmt: skip
        choose(page, kind, "kind:angle")
        page.wait_for(f"{RESULTS}.length === 1")
        assert page.evaluate(SHOWN) == ["steel angle"]
        assert page.evaluate("location.pathname + location.search") == (
            "/shop/?q=the+bolt&model=hybrid&tag=kind%3Aangle"
        )
        # A tag that no choice has leaves no results, and can be removed.
        page.open(f"{url}/?q=bolt&tag=kind%3Aangel")
        page.wait_for(f"{STATUS}.includes('such as kind:angle')")
        assert page.evaluate(f"{RESULTS}.length") == 0
        page.evaluate("document.querySelector('#tags button').click()")
        page.wait_for(f"{RESULTS}.length === 3")

        page.open(f"{url}/?q=bolt&model=many")
        page.wait_for(f"{RESULTS}.length === 10")
        assert page.evaluate(NOTES) == ["weak match"] * 7
        more = "document.getElementById('more')"
        for count in (20, 25):
            assert not page.evaluate(f"{more}.hidden")
            page.evaluate(f"{more}.click()")
            page.wait_for(f"{RESULTS}.length === {count}")
        assert page.evaluate(f"{more}.hidden")
        assert page.evaluate(ids) == [f"{n}" for n in range(TITLE_COUNT)]
        problems = [
            problem
            for problem in page.problems()
            if "400" not in str(problem)  # of the wrong tag
        ]
        assert problems == [] and len(page.hosts()) > 0
