"""The page as a user makes it, and what a browser would need."""

import base64
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from keras_lstm_dssm.analysis import activations, keywords
from keras_lstm_dssm.analysis.analysis_report import Material, write_report
from keras_lstm_dssm.analysis.claims import LABELS, measure_claims
from keras_lstm_dssm.analysis.report_input import Options
from keras_lstm_dssm.data import write_collection
from keras_lstm_dssm.models import TwoTower
from keras_lstm_dssm.tools import analyze
from tests.conftest import TOPICS
from tests.encoders.small import small_encoder

PNG = b"\x89PNG\r\n"
TITLES = [title for _, title in TOPICS.values()]
VOID = {"meta", "link", "img"}


class Page(HTMLParser):
    """Reads a page, and fails where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        if data.strip():
            self.texts.append((self.open[-1], data.strip()))

    def of(self, tag: str) -> list[str]:
        return [text for inside, text in self.texts if inside == tag]


def check_self_contained(page: Page, text: str) -> list[bytes]:
    """Returns the pictures; nothing else may be asked for."""
    assert not {tag for tag, _ in page.tags} & {"script", "iframe", "object"}
    for _, attributes in page.tags:
        for name in ("src", "href"):
            assert attributes.get(name, "data:").startswith("data:")
    assert not re.search(r"https?:|url\(|@import", text)
    return [
        base64.b64decode(attributes["src"].split(",")[1])
        for tag, attributes in page.tags
        if tag == "img"
    ]


@pytest.mark.parametrize(
    ("name", "pictures", "sections"),
    [("rnn", 7, 8), ("dssm", 3, 5)],
)
def test_a_page_has_what_the_encoder_can_show(
    tmp_path, name, pictures, sections
) -> None:
    material = Material(
        TwoTower(small_encoder(name), small_encoder(name)),
        "wood <glue> & co",
        "interior wood glue 8 oz",
        [query for query, _ in TOPICS.values()],
        TITLES,
        [{"epoch": e, "loss": 1 / e, "val_loss": 2 / e} for e in (1, 2, 3)],
    )
    path = tmp_path / "report.html"
    write_report(path, material, Options(map="pca", cells=99))
    text = path.read_text()
    page = Page(text)
    active = [h2 for h2 in page.of("h2") if "most active" in h2]
    assert active == ["The 4 most active cells (Fig. 6)"] * (name == "rnn")
    images = check_self_contained(page, text)
    assert len(images) == pictures
    assert all(image.startswith(PNG) for image in images)
    assert len(page.of("h2")) == sections
    assert "<glue>" in page.of("th") + page.of("strong")  # not a tag
    assert ("takes all words at once" in text) == (name == "dssm")
    assert "Cells, right to left" not in page.of("th")
    assert "read from right to left" not in text
    # A picture is shown at its size, and shrinks to half of it.
    for tag, attributes in page.tags:
        if tag == "img":
            width = int(attributes["width"] or 0)
            assert 200 < width < 1500
            assert attributes["style"] == f"min-width:{width // 2}px"


def test_towers_of_two_kinds_have_what_both_can_show(tmp_path) -> None:
    model = TwoTower(
        small_encoder("lstm_None_keep"), small_encoder("clsm_3")
    )  # fmt: skip
    path = tmp_path / "report.html"
    material = Material(model, "wood", "price $5_$", ["wood"], TITLES)
    write_report(path, material, Options(map="pca"))
    page = Page(path.read_text())
    assert page.of("h1") == ["What LSTMEncoder and CLSMEncoder keep of a text"]
    assert "takes all words at once" in path.read_text()
    assert len(page.of("h2")) == 4
    claims = measure_claims(model, list(TOPICS.values()), TITLES)
    assert {one.claim for one in claims if one.side == "title"} == {
        "stop_words_of_least_effect", "cosine_of_strong_half",
    }  # fmt: skip


def test_both_directions_are_counted_in_the_tables(tmp_path) -> None:
    encoder = small_encoder("bilstm")
    query, options = "wood glue for wood", Options(change=0.1, share=0.2)
    write_report(
        tmp_path / "report.html",
        Material(TwoTower(encoder, encoder), query, TITLES[0], ["x"], TITLES),
        options,
        tmp_path / "pictures",
    )
    page = Page((tmp_path / "report.html").read_text())
    assert "Cells, right to left" in page.of("th")
    notes = [text for text in page.of("p") if "Cells from 2 on" in text]
    assert len(notes) == 2  # at the cells of the pair, and at the topics
    words = keywords(activations(encoder, query), change=0.1, share=0.2)
    both = [word.word for word in words if word.keyword]
    assert page.of("strong")[: len(both)] == both
    cells = [
        "-" if n is None else str(n) for word in words for n in word.counts
    ]
    found = [text for tag, text in page.texts if tag == "td"]
    assert [text for text in found if "." not in text][: len(cells)] == cells
    names = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert {"aligned.png", "activations_query_back.png"} <= names
    assert len(names) == 10  # no history, so no cost


@pytest.fixture
def run(trained_run, tmp_path) -> Path:
    """A run of this test's own, as the program writes into it."""
    return Path(shutil.copytree(trained_run, tmp_path / "run"))


def test_program(run, tmp_path, capsys) -> None:
    output, queries = tmp_path / "report.html", tmp_path / "queries.txt"
    queries.write_text("hex bolt\n\ngarden hose\n")
    command = [
        "lstm-dssm-analyze", f"--run={run}", "--query=wood glue",
        f"--document={TITLES[1]}", f"--queries={queries}", "--map=pca",
        f"--output={output}", f"--json={tmp_path / 'out.json'}",
        "--claims", "--projector",
    ]  # fmt: skip
    assert analyze.run(command) == 0
    page = Page(output.read_text())
    check_self_contained(page, output.read_text())
    assert "Words of 2 queries" in " ".join(page.of("p"))
    assert TITLES[1] in page.of("strong")  # among the nearest
    assert page.of("h2")[-1] == "The paper's claims as figures"
    out = json.loads((tmp_path / "out.json").read_text())
    given = [one for name in LABELS for one in out["claims"]
             if one["claim"] == name]  # fmt: skip
    rows = [text for text in page.of("th") if "trained" in text]
    assert rows == [f"{one['side']}, {one['model']}" for one in given]
    labels = [LABELS[name] for name in dict.fromkeys(c["claim"] for c in given)]
    assert page.of("h3")[-len(labels) :] == labels
    assert [one["word"] for one in out["query"]] == ["wood", "glue"]
    assert {one["model"] for one in out["claims"]} == {"trained", "untrained"}
    lines = (run / "logs/projector/titles.labels.tsv").read_text().splitlines()
    assert lines == TITLES
    printed = capsys.readouterr().out
    assert f"wrote {output}" in printed
    assert "Stop words among the keywords\n  query  trained" in printed


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--output={tmp}/no/report.html"], "there is no folder"),
        (["--run={tmp}"], "no model here"),
        (["--data={tmp}/none.tsv"], "none.tsv: no such file"),
        (["--queries={tmp}/none.txt"], "none.txt: cannot be read"),
        (["--queries={tmp}/blank.txt"], "blank.txt: found an empty file"),
        (["--data={tmp}/unjudged", "--claims"], "no query with a relevant"),
        (["--share=2"], "--share=2"),
        (["--map=circle"], "--map=circle"),
    ],
)
def test_wrong_input_is_one_line(
    trained_run, tmp_path, capsys, flags, message
) -> None:
    (tmp_path / "blank.txt").write_text("\n \n")
    unjudged = tmp_path / "unjudged"
    write_collection(
        unjudged, {"a": "glue"}, {"q": "wood"}, {"test": {"q": {"a": 0}}}, []
    )
    (unjudged / "clicks.train.tsv.gz").unlink()
    command = ["analyze", f"--run={trained_run}", f"--output={tmp_path}/r.html"]
    flags = [flag.format(tmp=tmp_path) for flag in flags]
    assert analyze.run([*command, *flags]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("error: ") and error.count("\n") == 1
    assert not (tmp_path / "r.html").exists()
