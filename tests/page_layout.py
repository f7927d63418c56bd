"""Where the texts of a page are in a browser: does one lie on another, is one cut off?"""

from __future__ import annotations

from typing import Any

TEXTS = """scrolling => {
  // Each line of each text that is shown: what it says, its box, and the box that it is cut off by, if any.
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("script, title, [hidden]") || !parent.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const scrolls = parent.closest(scrolling);
    const box = scrolls ? scrolls.getBoundingClientRect() : document.documentElement.getBoundingClientRect();
    for (const it of range.getClientRects()) {
      const at = [it.left, it.top + scrollY, it.right, it.bottom + scrollY];
      if (it.width > 0.5) found.push({text: node.data.trim(), at, within: [box.left, box.right]});
    }
  }
  return found;
}"""
"""Takes a selector of the boxes that scroll."""

LEADING = 3.0
"""Pixels by which two lines, one below the other, may overlap: the boxes of a font are higher than its letters."""


def overlaps(texts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Pairs of texts of which one lies on the other."""
    found = []
    texts = sorted(texts, key=lambda item: item["at"][1])
    for number, one in enumerate(texts):
        left, _, right, bottom = one["at"]
        for other in texts[number + 1 :]:
            if other["at"][1] >= bottom - LEADING:
                break
            if other["at"][0] < right - 0.5 and left < other["at"][2] - 0.5:
                found.append((one["text"], other["text"]))
    return found
