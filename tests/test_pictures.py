"""Pages in a real browser: nothing overflows, overlaps or fades, and no script fails."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from generators.pictures import browser

from advisor.report.html import figure, render
from advisor.report.html import page as page_of
from advisor.report.model import Curve
from advisor.report.style import Style
from advisor.report.svg import Dot, ranges, scatter
from tests.advisor.report.report_samples import SAMPLE
from tests.advisor.report.test_pages import Seen, hostile

CHROMIUM = browser()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

PROBE = r"""
<script>
const found = {errors: [], wide: [], faint: [], overlapping: [], outside: []};
addEventListener("error", event => found.errors.push(event.message));
const all = () =>
  [...document.querySelectorAll("body *")].filter(one => one.getClientRects().length);
const numbers = colour => (colour.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
const over = (top, below) => {
  const [r, g, b, a = 1] = top;
  return [r, g, b].map((one, place) => a * one + (1 - a) * below[place]);
};
const behind = element => {
  const layers = [];
  for (let at = element; at; at = at.parentElement)
    layers.push(numbers(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
};
const light = colour => {
  const [r, g, b] = colour.map(one => one / 255).map(
    one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = one => {
  const style = getComputedStyle(one), svg = one.closest("svg");
  const back = behind(svg ? svg.parentElement : one);
  const levels = [light(over(numbers(svg ? style.fill : style.color), back)), light(back)];
  return (Math.max(...levels) + 0.05) / (Math.min(...levels) + 0.05);
};
const meet = (one, other) => one.left < other.right - 1 && other.left < one.right - 1 &&
  one.top < other.bottom - 3 && other.top < one.bottom - 3;
addEventListener("load", () => {
  document.querySelectorAll("details").forEach(one => { one.open = true; });
  found.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  found.width = innerWidth;
  if (document.documentElement.scrollWidth > innerWidth) found.wide.push("the page");
  for (const one of all()) {
    const right = one.getBoundingClientRect().right;
    if (!one.closest(".wide, pre") && right > innerWidth + 0.5)
      found.wide.push(one.outerHTML.slice(0, 90));
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (own && contrast(one) < 4.5)
      found.faint.push(`${contrast(one).toFixed(2)} ${one.textContent.slice(0, 40)}`);
  }
  for (const svg of document.querySelectorAll("figure > svg")) {
    const texts = [...svg.querySelectorAll("text")], around = svg.getBoundingClientRect();
    texts.forEach((one, place) => {
      const box = one.getBoundingClientRect();
      if (box.left < around.left - 1 || box.right > around.right + 1)
        found.outside.push(one.textContent);
      for (const other of texts.slice(place + 1))
        if (meet(box, other.getBoundingClientRect()))
          found.overlapping.push(`${one.textContent} / ${other.textContent}`);
    });
  }
  found.text = document.body.innerText;
  parent.postMessage(JSON.stringify(found), "*");
});
</script>
"""
# a window is never as narrow as a telephone, a frame may be
FRAME = """<!doctype html><meta name="color-scheme" content="light dark"><pre id="probe"></pre>
<script>
addEventListener("message", event => { document.querySelector("pre").textContent = event.data; });
</script><iframe src="page.html" style="border: 0; width: %dpx; height: 1500px"></iframe>"""

POINTS = tuple(
    (float(n), 0.4 + n / 900, 0.5 + n / 700, 0.7 + n / 300) for n in (1, 9, 80, 900, 4096)
)
CURVES = (Curve("N", 900.0, POINTS, (412.0,)), Curve("b", 9.0, POINTS[:3], (3.0, 7.0)))
PLOTS = (
    scatter("Times", [Dot(f"k{n}", n / 2, n, 3 * n, n * 1.2) for n in (1e-4, 3e-3, 0.2, 4)]),
    ranges("Machines", [Dot("a machine of long name", 1e-4, 2e-4, 0.3), Dot("sp2", 1, 2, 3)]),
)
PAGES = {
    "report": render(replace(SAMPLE, curves=lambda finding: CURVES), Style()),
    "hostile": render(replace(hostile(SAMPLE), curves=lambda finding: CURVES), Style()),
    "results": page_of("Results", ["One sentence."], map(figure, PLOTS)),
}


def probed(page: str, folder: Path, width: int, *, dark: bool) -> dict[str, Any]:
    assert CHROMIUM is not None
    (folder / "page.html").write_text(page.replace("</head>", f"{PROBE}</head>"), "utf-8")
    (folder / "frame.html").write_text(FRAME % width, "utf-8")
    shown = CHROMIUM.content(folder / "frame.html", 1400, dark=dark)
    told = re.search(r'<pre id="probe">(.*?)</pre>', shown, re.DOTALL)
    assert told is not None
    return json.loads(html.unescape(told[1]))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1300])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read(name: str, width: int, dark: bool, tmp_path: Path) -> None:
    found = probed(PAGES[name], tmp_path, width, dark=dark)
    assert (found["width"], found["dark"]) == (width, dark)
    for fault in ("errors", "wide", "faint", "overlapping", "outside"):
        assert found[fault] == [], fault
    # heads of a table are left out where its rows are folded into blocks
    unread = r"<(style|title|desc)\b.*?</\1>" + (r"|<tr><th></th>.*?</tr>" if width < 1000 else "")
    words = set(Seen(re.sub(unread, "", PAGES[name], flags=re.DOTALL)).text.split())
    shown = "".join(found["text"].split())
    assert [word for word in sorted(words) if word not in shown] == []
