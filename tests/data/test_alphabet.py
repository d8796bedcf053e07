from pathlib import Path

import pytest

from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.data.statistics import alphabet_warning


def log(path: Path, *lines: str) -> ClickLog:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return ClickLog(path)


def test_words_of_another_script_are_named(tmp_path):
    path = tmp_path / "clicks.tsv"
    russian = "\u043e\u0442\u0435\u043b\u044c"
    line = alphabet_warning(log(path, "a\tb c", f"{russian}\tHotel {russian}"))
    assert line == (
        "33% of the words are in letters other than a-z (such as"
        f" {russian!r}), which encoders without oov_buckets cannot"
        " distinguish: set oov_buckets=8192 (--oov_buckets=8192)"
    )


@pytest.mark.parametrize(
    "text",
    [
        "caf\u00e9 \uff22\uff2f\uff2c\uff34 12 & 5\u20ac \u2014 \u00bd",
        "hotel " * 200 + "\u4e0a\u6d77",  # fewer than 1 %
    ],
    ids=["accents, full width and signs", "rare"],
)
def test_no_warning(text, tmp_path):
    assert alphabet_warning(log(tmp_path / "a.tsv", f"a b\t{text}")) is None
