"""A report in a real browser, where there is one: headless Chromium."""

import html
import json
import re
import shutil
import subprocess

import pytest

from keras_lstm_dssm.analysis.drawing import drawing
from keras_lstm_dssm.analysis.html import (
    Bar,
    HtmlList,
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    Shaded,
    Strong,
    write_html_report,
)

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser",
                                    "google-chrome"))), None
)  # fmt: skip
WIDTHS = (390, 1280)
COLOURS = {"light": (17, 17, 17), "dark": (238, 238, 238)}
"""Colour scheme that the reader prefers -> the colour of the text."""
# The picture is 12 inches wide: wider than either screen.
FRAME = """<iframe width={width} srcdoc="{page}" onload="
  const page = this.contentDocument;
  this.replaceWith('@' + JSON.stringify({{
    width: page.documentElement.scrollWidth,
    pictures: [...page.images].map(image => image.naturalWidth),
    shown: [...page.images].map(image => image.width),
    bars: [...page.querySelectorAll('.bar')].map(bar => bar.offsetWidth),
    scripts: page.scripts.length,
    colours: [page.body, page.querySelector('.shaded')].map(element => {{
      const style = this.contentWindow.getComputedStyle(element);
      return [style.color, style.backgroundColor];
    }}),
  }}) + '@')"></iframe>"""
LONG = "w" * 99
HOSTILE = "<script>document.body.style.color = 'red'</script>"


def numbers(colour: str) -> list[float]:
    """Reads rgb(17, 17, 17) or rgba(0, 114, 178, 0.5)."""
    return [float(number) for number in re.findall(r"[\d.]+", colour)]


def luminance(colour: list[float]) -> float:
    """Computes the relative luminance of sRGB, see WCAG 2.2."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (number / 255 for number in colour)
    ]
    return sum(
        w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
    )


@pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")
@pytest.mark.parametrize("scheme", COLOURS)
def test_it_opens_without_errors_and_fits_a_phone(tmp_path, scheme):
    path = tmp_path / "wide.png"
    with drawing(path, figsize=(12, 1)) as (axis,):
        axis.plot([1, 2])
    wide = HtmlTable(["System"] * 12, [[LONG, *["12.34 ± 0.56"] * 11]], LONG)
    words = HtmlTable(
        ["Word", "Effect", "Title"],
        [
            [HOSTILE, Bar(1, 2), LONG],
            [Strong(LONG), Bar(2, 2), f"a {HOSTILE}"],
            [LONG, LONG, Shaded(f"{HOSTILE} {LONG}", 1, HOSTILE)],
        ],
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
         f"--blink-settings=preferredColorScheme={int(scheme == 'light')}",
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
        (ink, page_colour), (text, shade) = (
            [numbers(one) for one in pair] for pair in shown["colours"]
        )
        assert ink == text == list(COLOURS[scheme])
        *colour, opacity = shade
        assert (colour, opacity) == ([0, 114, 178], 0.5)
        # Legible on the page and on the strongest shade.
        mixed = [
            opacity * c + (1 - opacity) * p
            for c, p in zip(colour, page_colour, strict=True)
        ]
        for background in (page_colour, mixed):
            both_luminances = sorted(map(luminance, (ink, background)))
            assert (both_luminances[1] + 0.05) / (both_luminances[0] + 0.05) > 7
        half, full = shown["bars"]
        assert half == pytest.approx(full / 2, abs=1)
    # It shrinks, on a phone to half of its size at most.
    assert phone["shown"] == [1152 // 2]
    assert 1000 < screen["shown"][0] <= 1152
