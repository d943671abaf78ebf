"""Packed parts of the HTML report, and the script that shows them.

Nearly all of a report is listings and drawings, and a reader looks at only a few of them. They are
kept compressed, a block a kernel, and put in place when they are looked at::

    <details data-z="z3:7"><summary>...</summary></details>     filled when it is opened
    <div data-z="z3:8"></div>                                   filled when it is scrolled to
    <script type="text/plain" id="z3">base64</script>           zlib of JSON: [[7, html], [8, html]]

A block compresses better where similar parts follow each other, so its parts are sorted by kind.
The script is in the page, loads nothing from elsewhere, and works from a file. The page allows no
other script (its content security policy names the hash of this one), so text of users cannot run
one. What people read first (results, tables, messages, headings) is plain HTML; where the script
does not run, or the browser is too old, the page says at the top what is missing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from html import escape as esc
from typing import Final

from ..core.visible import visible
from .table_script import TABLE_SCRIPT

__all__ = ["POLICY", "Pack", "notice", "script"]

_SCRIPT: Final = """
(() => {
  if (typeof DecompressionStream === "undefined") return;
  const root = document.documentElement, blocks = new Map();
  root.className = "unpacks";
  const unpack = async id => {
    const packed = atob(document.getElementById(id).textContent);
    const bytes = new Uint8Array(packed.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = packed.charCodeAt(i);
    const stream = new DecompressionStream("deflate"), writer = stream.writable.getWriter();
    const written = writer.write(bytes).then(() => writer.close());
    const text = await new Response(stream.readable).text();
    await written;
    return new Map(JSON.parse(text));
  };
  const block = id => {
    if (!blocks.has(id)) blocks.set(id, unpack(id));
    return blocks.get(id);
  };
  const put = (place, parts) => {
    if (!place.hasAttribute("data-z")) return;
    const html = parts.get(Number(place.dataset.z.split(":")[1]));
    place.removeAttribute("data-z");
    place.insertAdjacentHTML("beforeend", html);
  };
  const fill = async place => {
    try {
      put(place, await block(place.dataset.z.split(":")[0]));
    } catch (error) {
      place.dataset.fault = String(error);
    }
  };
  const seen = new IntersectionObserver(found => {
    for (const one of found) {
      if (one.isIntersecting) {
        seen.unobserve(one.target);
        if (one.target.dataset.z) fill(one.target);
      }
    }
  }, {rootMargin: "800px"});
  document.addEventListener("toggle", event => {
    if (event.target.open && event.target.dataset.z) fill(event.target);
  }, true);
  const reached = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const place = id && document.getElementById(id);
    if (!place) return;
    const kernel = place.closest("section");
    const fold = kernel && kernel.querySelector(":scope > details.kernel");
    if (!fold || fold.open) return;
    fold.open = true;
    place.scrollIntoView();
  };
  const folds = (open) => {
    for (const fold of document.querySelectorAll("details.kernel")) fold.open = open;
  };
  let busy = false, stopped = false;
  const rest = () => new Promise(done => setTimeout(done, 0));
  // A few parts at a time, from the top: the page is there and can be scrolled meanwhile.
  const everything = async () => {
    const groups = new Map(), shown = document.getElementById("unpacking");
    for (const place of document.querySelectorAll("[data-z]")) {
      const id = place.dataset.z.split(":")[0];
      if (!groups.has(id)) groups.set(id, []);
      groups.get(id).push(place);
    }
    const ids = [...groups.keys()], began = performance.now();
    const sizes = ids.map(id => document.getElementById(id)?.textContent.length || 1);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    let since = began, size = 0, end = Infinity;
    // By the size of what is done; an estimate that turns out too short is not shown any longer.
    const time = () => {
      const now = performance.now(), left = (now - began) / size * (total - size);
      if (size < total / 20) return "";
      end = Math.min(end, now + left);
      return left > 1.2 * (end - now) + 1000 ? "" :
        `, about ${Math.max(1, Math.ceil((end - now) / 1000))} s left`;
    };
    busy = true;
    stopped = false;
    root.classList.add("unpacking");
    for (let i = 0; i < ids.length && !stopped; i++) {
      shown.textContent = `${i} of ${ids.length}${time()}`;
      size += sizes[i];
      if (i + 1 < ids.length) block(ids[i + 1]).catch(() => {});
      let parts;
      try {
        parts = await block(ids[i]);
      } catch (error) {
        for (const place of groups.get(ids[i])) place.dataset.fault = String(error);
        continue;
      }
      for (const place of groups.get(ids[i])) {
        put(place, parts);
        if (performance.now() - since > 40) {
          await rest();
          since = performance.now();
        }
      }
      const fold = groups.get(ids[i])[0].closest("details.kernel");
      if (fold) fold.open = true;
    }
    busy = false;
    shown.textContent = "";
    root.classList.remove("unpacking");
    if (stopped) return;
    folds(true);
    root.className = "unpacked";
  };
  document.addEventListener("keydown", event => {
    if (event.key === "Escape") stopped = true;
  });
  const all = async () => {
    if (location.hash === "#open") folds(true);
    if (location.hash === "#fold") folds(false);
    reached();
    if (location.hash !== "#everything") return;
    if (!busy && root.className !== "unpacked") await everything();
  };
  window.addEventListener("hashchange", all);
  document.addEventListener("click", event => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) all();
  });
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("div[data-z]").forEach(place => seen.observe(place));
    all();
  });
})();
"""
_WHOLE: Final = _SCRIPT + TABLE_SCRIPT
_HASH: Final = base64.b64encode(hashlib.sha256(_WHOLE.encode()).digest()).decode()
POLICY: Final = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_HASH}'"
"""The content security policy of the page: styles in it, this script, nothing else."""


def script() -> str:
    """The script, for the head of the page."""
    return f"<script>{_WHOLE}</script>"


def notice() -> str:
    """The notice at the top: how to unpack everything at once, or why packed parts stay packed."""
    return (
        '<p class="facts packed-ok">Listings and drawings are unpacked where they are looked at. '
        '<a href="#everything">Unpack everything</a> to search or print the whole page; '
        '<a href="#open" id="open">open</a> or <a href="#fold" id="fold">fold</a> all kernels.</p>'
        '<p class="facts packed-busy">Unpacking <span id="unpacking"></span>; '
        "the escape key stops it.</p>"
        '<p class="facts packed-all" id="everything">Everything is unpacked.</p>'
        '<p class="bad packed-not">Listings, diffs and drawings are packed in this file and are '
        "not shown here: that needs a browser that runs the script in this page and can unpack "
        "(Chrome 80, Firefox 113, Safari 16.4, or later). Tables and messages are all here; the "
        "JSON report has the rest.</p>"
    )


class Pack:
    """The packed parts of a section. name: of its block, no other has it."""

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._parts: Final[list[tuple[str, int, str]]] = []

    def details(self, title: str, body: str, kind: str) -> str:
        """A folded part; ``body`` is packed. kind: parts of one kind are stored together."""
        place = self._put(body, kind)
        return f"<details {place}><summary>{esc(title)}</summary></details>"

    def later(self, body: str, kind: str) -> str:
        """A part that is shown when the reader scrolls to it."""
        return f"<div {self._put(body, kind)}></div>" if body else ""

    def _put(self, body: str, kind: str) -> str:
        number = len(self._parts)
        self._parts.append((kind, number, visible(body)))
        return f'data-z="{self._name}:{number}"'

    def block(self) -> str:
        """Everything that was packed; empty if nothing was."""
        if not self._parts:
            return ""
        parts = [[number, body] for _, number, body in sorted(self._parts)]
        text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
        packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
        return f'<script type="text/plain" id="{self._name}">{packed}</script>'
