"""The page in a real browser, where there is one: headless Chromium."""

import html
import json
import re
import shutil
import subprocess

import pytest

from keras_lstm_dssm.analysis.analysis_report import Material, write_report
from keras_lstm_dssm.analysis.claims import LABELS, Claim
from keras_lstm_dssm.analysis.report_input import Options
from keras_lstm_dssm.analysis.word_statistics import Finding
from keras_lstm_dssm.models import TwoTower
from tests.conftest import TOPICS
from tests.encoders.small import small_encoder

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser",
                                    "google-chrome"))), None
)  # fmt: skip
WIDTHS = (390, 1280)
FRAME = """<iframe width={width} srcdoc="{page}" onload="
  const page = this.contentDocument;
  this.replaceWith('@' + JSON.stringify({{
    width: page.documentElement.scrollWidth,
    images: [...page.images].map(image => image.naturalWidth),
    colour: this.contentWindow.getComputedStyle(page.body).color,
  }}) + '@')"></iframe>"""


@pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")
def test_it_opens_without_errors_and_fits_a_phone(tmp_path) -> None:
    encoder = small_encoder("bilstm")
    report = tmp_path / "report.html"
    titles = [title for _, title in TOPICS.values()]
    claims = [
        Claim(name, "title", "untrained", Finding(0.5, 0.4, 0.001, 10_000))
        for name in LABELS
    ]
    write_report(
        report,
        Material(
            TwoTower(encoder, encoder), "wood glue for " + "w" * 99, titles[0],
            ["wood glue"], titles, [{"epoch": 1, "loss": 1.0}], claims,
        ),
        Options(map="pca"),
    )  # fmt: skip
    page = html.escape(report.read_text())
    frames = [FRAME.format(width=width, page=page) for width in WIDTHS]
    both = tmp_path / "both.html"
    both.write_text(f'<meta charset="utf-8"><body>{"".join(frames)}')
    done = subprocess.run(
        [str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu",
         "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'user'}",
         "--virtual-time-budget=10000", "--dump-dom", both.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not re.findall(r".*CONSOLE.*", done.stderr)
    found = [
        json.loads(html.unescape(one))
        for one in re.findall(r"@(\{.*?\})@", done.stdout)
    ]
    for width, one in zip(WIDTHS, found, strict=True):
        assert one["width"] <= width
        assert len(one["images"]) == 11
        assert min(one["images"]) > 100
        assert one["colour"] == "rgb(17, 17, 17)"
