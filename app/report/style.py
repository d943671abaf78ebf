"""A page of HTML, and the style sheet of the report: light and dark, readable without colour."""

from __future__ import annotations

from html import escape as esc
from typing import Final

__all__ = ["STYLE", "document"]

STYLE: Final = """
:root{color-scheme:light dark;--bg:#fff;--ink:#1f2328;--dim:#59636e;--line:#d1d9e0;--soft:#f6f8fa;
--accent:#0550ae;--add:#ddf4ff;--add2:#80ccff;--del:#fff1e5;--del2:#ffb77c;--move:#fbefff;
--bad:#a40e26;--run:#0969da;--run0:#d1d9e0;
--cfg-ink:var(--ink);--cfg-box:var(--soft);--cfg-edge:#818b98;--cfg-back:#bc4c00;--cfg-title:#0550ae}
@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--ink:#e6edf3;--dim:#9198a1;--line:#3d444d;
--soft:#151b23;--accent:#79c0ff;--add:#0c2d6b;--add2:#1158c7;--del:#5a1e02;--del2:#9b4215;
--move:#3c1e70;--bad:#ff7b72;--run:#58a6ff;--run0:#3d444d;--cfg-back:#f0883e;--cfg-title:#79c0ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1320px;margin:0 auto;padding:24px 20px 64px}
h1{font-size:26px;margin:0 0 4px}
h2{font-size:20px;margin:40px 0 6px;padding-top:14px;border-top:1px solid var(--line)}
h3{font-size:15px;margin:20px 0 6px}
p{margin:6px 0}
.facts{color:var(--dim);font-size:13px}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:8px 0;font-size:13px}
th,td{padding:4px 10px;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{font-weight:600;color:var(--dim);white-space:nowrap}
th.group{text-align:center;border-bottom:2px solid var(--accent);color:var(--accent)}
.whole{white-space:nowrap}
.num{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.matrix td{white-space:nowrap}
.matrix .reason{white-space:normal;min-width:14em;max-width:30em;text-align:left}
.matrixbox{max-height:86vh;overflow:auto;border-bottom:1px solid var(--line)}
@media(min-width:1360px){.matrixbox{width:calc(100vw - 56px);margin-left:calc(50% - 50vw + 28px)}
.matrixbox table{margin:0 auto}}
.matrix thead{position:sticky;top:0;background:var(--bg);z-index:2}
.matrix.brief{font-size:12px}.matrix.brief [data-more]{display:none}
.matrix.brief [data-g].reason{min-width:6em;max-width:10em;font-size:11px}
.matrix.brief th,.matrix.brief td{padding:4px 6px}
.matrix th button{all:unset;cursor:pointer;font:inherit}
.matrix th button:focus-visible{outline:2px solid var(--accent)}
.matrix th[aria-sort=ascending] button::after{content:" \\25B2"}
.matrix th[aria-sort=descending] button::after{content:" \\25BC"}
.matrix tbody tr:hover td{background:var(--soft)}
.tools{display:flex;flex-wrap:wrap;gap:4px 16px;align-items:center;font-size:13px;margin:10px 0}
.tools[hidden]{display:none}
.tools input[type=search]{font:inherit;padding:3px 6px;width:18em}
.kernel>summary{font-family:inherit;white-space:normal;padding:6px 0}
.kernel>summary .num{white-space:normal}
.kernel h2{border:0;margin:4px 0;padding:0}
.kernel[open]>summary{border-bottom:1px solid var(--line)}
.lines{white-space:pre}
.s-gutter,.s-dim{color:var(--dim)}.s-bad{color:var(--bad);font-weight:600}.s-warn{color:var(--cfg-back)}
.s-kw,.s-op{color:var(--accent)}.s-str,.s-const{color:var(--cfg-back)}
.s-comment{color:var(--dim);font-style:italic}.s-title,.s-head{font-weight:600}
.s-heat1{color:#b08800}.s-heat2{color:#d4622a}.s-heat3{color:#cf222e}
.matrix td:first-child,.matrix th:first-child{position:sticky;left:0;background:var(--bg)}
.none{color:var(--dim);font-style:italic}
.bad,.rule-failed td:first-child{color:var(--bad);font-weight:600}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}
code,pre,.diff{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{overflow-x:auto;background:var(--soft);padding:10px 12px;border-radius:6px;font-size:12px;
line-height:1.45;max-height:640px}
details{margin:4px 0;border:1px solid var(--line);border-radius:6px;padding:0 10px}
details[open]{padding-bottom:8px}
summary{cursor:pointer;padding:5px 0;font-size:13px;white-space:pre-wrap;
font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.diff{display:block;overflow-x:auto;font-size:12px;line-height:1.4;margin:0}
.diff td{border:0;padding:0 6px;white-space:pre}
.diff td:nth-child(1){color:var(--dim);text-align:right;min-width:36px;user-select:none}
.diff td:nth-child(2){user-select:none;font-weight:700}
.d-added td{background:var(--add)}.d-removed td{background:var(--del)}
.d-moved td{background:var(--move)}
.d-added mark{background:var(--add2);color:inherit}
.d-removed mark{background:var(--del2);color:inherit}
l-{color:var(--dim);user-select:none;display:inline-block;width:6ch;padding-right:1ch;
text-align:right}
n-{color:var(--dim);font-style:italic}o-{color:var(--accent)}
k-{font-weight:600}t-{color:var(--cfg-back)}
.fold td{color:var(--dim);background:var(--soft)}
td[class^=cache-]{white-space:nowrap}
.cache-miss{font-weight:600}.cache-damaged{color:var(--bad);font-weight:600}
.remarks{font-size:12px;color:var(--dim);margin:6px 0;padding-left:18px}
.error{border-left:4px solid var(--bad);padding:4px 12px;margin:10px 0;background:var(--soft)}
.error pre{margin:4px 0;padding:4px 0}
.plot{width:100%;max-width:980px;height:auto;display:block;margin:8px 0}
.plot circle{fill:var(--run);fill-opacity:.55}
.plot .median{stroke:var(--ink);stroke-width:2}
.plot .grid{stroke:var(--line);stroke-width:1}
.plot .tick{font-size:11px;fill:var(--dim)}
.plot .label{font-size:12px;fill:var(--ink);text-anchor:end}
.timeline{display:flex;max-width:980px;height:72px;margin:8px 0}
.timeline div{position:relative;display:flex;min-width:0;height:24px}
.timeline i{flex:1 1 1.5px;min-width:0;background:var(--run0);box-shadow:inset -.4px 0 var(--bg)}
.timeline .changed{background:var(--run)}.timeline .failed{background:var(--bad)}
.timeline em{position:absolute;left:0;top:0;padding:26px 0 0 3px;
font:11px/13px system-ui,sans-serif;color:var(--dim);border-left:1px solid var(--line);
white-space:nowrap;pointer-events:none}
.timeline .row1{padding-top:39px}.timeline .row2{padding-top:52px}
div[data-z]{min-height:80px}
section{content-visibility:auto;contain-intrinsic-size:auto 50px}
[data-fault]::after{content:"This part cannot be unpacked: " attr(data-fault);color:var(--bad)}
:root:not(.unpacks):not(.unpacked) [data-z]::after{content:"packed; see the top of the page";
color:var(--dim)}
:root:not(.unpacking) .packed-busy,:root:not(.unpacks) .packed-ok,
:root:not(.unpacked) .packed-all,.unpacks .packed-not,
.unpacked .packed-not{display:none}
.cfgs{display:flex;flex-wrap:wrap;gap:24px;overflow-x:auto;align-items:flex-start}
figure{margin:8px 0}figcaption{font-size:12px;color:var(--dim)}
.peak{color:var(--bad);font-weight:600;white-space:nowrap}
.sides{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:16px}
.sides figure{margin:0;min-width:0}.sides .ir{max-height:640px;overflow:auto}
.sides tr:target td{background:var(--move)}
.sides .diff td:nth-child(2){font-weight:400;white-space:nowrap}
@media(max-width:760px){.sides{grid-template-columns:minmax(0,1fr)}}
@media print{details{break-inside:avoid}.matrixbox{max-height:none}.tools{display:none}}
"""


def document(title: str, policy: str, head: str, body: str) -> str:
    """A page. policy: of the security of its content. head: styles and scripts."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{esc(title)}</title>{head}</head><body><main>{body}</main></body></html>\n"
    )
