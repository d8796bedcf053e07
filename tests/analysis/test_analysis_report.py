"""The report of the analysis: what it has for each kind of encoder."""

import sys
from pathlib import Path

import pytest

from keras_lstm_dssm import TwoTower
from keras_lstm_dssm.analysis import (
    ReportSettings,
    analyze_run,
    frame,
    keywords,
)
from keras_lstm_dssm.analysis.claims import measure_claims
from keras_lstm_dssm.analysis.tower_report import report_on_towers
from keras_lstm_dssm.encoders.activations import activations
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_csv
from keras_lstm_dssm.run_folder import RunFolder
from tests.analysis.html_page import HtmlPage, check_self_contained
from tests.conftest import TOPICS
from tests.encoders.small import small_encoder

PNG = b"\x89PNG\r\n"
TITLES = [title for _, title in TOPICS.values()]


def written(
    tmp_path: Path, model: TwoTower, settings: ReportSettings
) -> tuple[HtmlPage, str]:
    """Writes a report and its pictures, and reads the page."""
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("".join(f"{q}\t{t}\n" for q, t in TOPICS.values()))
    pictures = tmp_path / "pictures"
    report = report_on_towers(
        model, RunFolder(tmp_path), settings.replace(data=str(clicks)),
        pictures,
    )  # fmt: skip
    path = tmp_path / "report.html"
    report.write(path)
    return HtmlPage(path.read_text()), path.read_text()


@pytest.mark.parametrize(
    ("name", "pictures", "sections"), [("rnn", 7, 8), ("dssm", 3, 5)]
)
def test_a_page_has_what_the_encoder_can_show(
    tmp_path, name, pictures, sections
):
    encoder = small_encoder(name)
    rows = [
        {"epoch": e, "updates": e, "loss": 1 / e, "val_loss": 2 / e}
        for e in (1, 2, 3)
    ]
    write_csv(RunFolder(tmp_path).history, rows)
    settings = ReportSettings(
        "wood <glue> & co", "interior wood glue 8 oz", map="pca", cells=99
    )
    page, text = written(tmp_path, TwoTower(encoder, encoder), settings)
    active = [h2 for h2 in page.of("h2") if "most active" in h2]
    assert active == ["The 4 most active cells (Fig. 6)"] * (name == "rnn")
    images = check_self_contained(page, text)
    assert len(images) == pictures
    assert all(image.startswith(PNG) for image in images)
    assert len(page.of("h2")) == sections
    assert page.of("h2")[0] == "Training, epoch by epoch (Fig. 7)"
    assert "<glue>" in page.of("th") + page.of("strong")  # not a tag
    assert ("reads all words at once" in text) == (name == "dssm")
    assert "Cells, right to left" not in page.of("th")
    assert "reads from right to left" not in text
    assert "Parts of the vector" not in page.of("h2")
    widths = [
        int(names["width"] or 0) for tag, names in page.tags if tag == "img"
    ]
    assert 200 < min(widths) and max(widths) < 1500


def test_towers_of_two_kinds_have_what_both_can_show(tmp_path):
    model = TwoTower(small_encoder("lstm_None_keep"), small_encoder("clsm_3"))
    settings = ReportSettings("wood", "price $5_$", map="pca", queries=["wood"])
    page, text = written(tmp_path, model, settings)
    assert ", LSTMEncoder and CLSMEncoder. " in page.of("p")[0]
    assert "reads all words at once" in text
    assert len(page.of("h2")) == 4
    claims = measure_claims(model, list(TOPICS.values()), TITLES)
    assert {one.claim for one in claims if one.side == "document"} == {
        "stop_words_of_least_effect", "cosine_of_strong_half",
    }  # fmt: skip


def test_both_directions_are_counted_in_the_tables(tmp_path):
    encoder = small_encoder("bilstm")
    query = "wood glue for wood"
    settings = ReportSettings(
        query, TITLES[0], queries=["x"], change=0.1, share=0.2
    )
    page, _ = written(tmp_path, TwoTower(encoder, encoder), settings)
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


def test_a_combined_vector_is_shown_as_its_parts(tmp_path):
    encoder = small_encoder("combined")
    query, title = "wood glue for wood", TITLES[1]
    settings = ReportSettings(query, title, map="pca", queries=["x"])
    page, _ = written(tmp_path, TwoTower(encoder, encoder), settings)
    assert page.of("h2")[0] == "Parts of the vector"
    start = page.texts.index(("th", "LSTM output"))
    cells = [
        (tag, text)
        for tag, text in page.texts[start:]
        if tag in ("th", "strong", "td")
    ]
    rows = [[text for _, text in cells[5 * n :][:5]] for n in range(5)]
    assert [row[:2] for row in rows] == [
        ["LSTM output", "0 to 2"], ["trigram sum", "3 to 4"],
        ["word sketch", "5 to 8"], ["length norm", "9"],
        ["whole vector", "0 to 9"],
    ]  # fmt: skip
    assert [row[2] for row in rows[:2]] == ["12.5%", "25.0%"]
    assert rows[-1][2:4] == ["100.0%", "100.0%"]
    added = [float(row[4]) for row in rows]
    vectors = encoder.encode([query, title])
    assert added[-1] == pytest.approx(vectors[0] @ vectors[1], abs=1e-3)
    assert sum(added[:-1]) == pytest.approx(added[-1], abs=3e-3)
    # Pictures and counts of cells say which numbers they are about.
    note = "the first 3 of the vector's 10 numbers"
    assert len([text for text in page.of("p") if note in text]) == 2


def test_a_missing_package_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pandas is not installed: pip"):
        frame([])


def test_a_run_is_analysed_in_python(trained_run, tmp_path):
    path, settings = tmp_path / "r.html", ReportSettings("hex bolt", map="pca")
    with pytest.raises(InputError, match="csv is used by KeyVecs only"):
        analyze_run(trained_run, path, settings.replace(csv="folder"))
    assert not path.exists()
    report = analyze_run(trained_run, path, settings)
    assert [effect["word"] for effect in report.values["query"]] == [
        "hex", "bolt",
    ]  # fmt: skip
    assert report.values["claims"] == []
    page = HtmlPage(path.read_text())
    assert page.of("h2") == [section.title for section in report.sections]
