"""A report in a real browser, where there is one: headless Chromium."""

import html
import json
import re
import shutil
import subprocess

import pytest

from keras_lstm_dssm.drawing import drawing
from keras_lstm_dssm.html_report import (
    Bar,
    HtmlList,
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    Strong,
    write_html_report,
)

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser",
                                    "google-chrome"))), None
)  # fmt: skip
WIDTHS = (390, 1280)
# The picture is 12 inches wide: wider than either screen.
FRAME = """<iframe width={width} srcdoc="{page}" onload="
  const page = this.contentDocument;
  this.replaceWith('@' + JSON.stringify({{
    width: page.documentElement.scrollWidth,
    pictures: [...page.images].map(image => image.naturalWidth),
    shown: [...page.images].map(image => image.width),
    bars: [...page.querySelectorAll('.bar')].map(bar => bar.offsetWidth),
    scripts: page.scripts.length,
    colour: this.contentWindow.getComputedStyle(page.body).color,
  }}) + '@')"></iframe>"""
LONG = "w" * 99
HOSTILE = "<script>document.body.style.color = 'red'</script>"


@pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")
def test_it_opens_without_errors_and_fits_a_phone(tmp_path) -> None:
    path = tmp_path / "wide.png"
    with drawing(path, figsize=(12, 1)) as (axis,):
        axis.plot([1, 2])
    wide = HtmlTable(["System"] * 12, [[LONG, *["12.34 ± 0.56"] * 11]], LONG)
    words = HtmlTable(
        ["Word", "Effect", "Title"],
        [[HOSTILE, Bar(1, 2), LONG], [Strong(LONG), Bar(2, 2), f"a {HOSTILE}"]],
        text_columns=[2],
    )
    blocks = [wide, words, HtmlPicture(LONG, path, LONG), HtmlList([LONG])]
    report = tmp_path / "report.html"
    sections = [HtmlSection(LONG, blocks, LONG)]
    write_html_report(report, f"{HOSTILE} {LONG}", sections, LONG)
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
    phone, screen = [
        json.loads(html.unescape(one))
        for one in re.findall(r"@(\{.*?\})@", done.stdout)
    ]
    for width, shown in zip(WIDTHS, (phone, screen), strict=True):
        assert shown["width"] <= width
        assert shown["pictures"] == [1800]
        assert shown["scripts"] == 0
        assert shown["colour"] == "rgb(17, 17, 17)"
        half, full = shown["bars"]
        assert half == pytest.approx(full / 2, abs=1)
    # It shrinks, on a phone to half of its size at most.
    assert phone["shown"] == [1152 // 2]
    assert 1000 < screen["shown"][0] <= 1152
