"""The script and style sheet of the widget; no other page and no network is needed."""

from __future__ import annotations

from typing import Final

__all__ = ["SCRIPT", "WIDGET_STYLE"]

SCRIPT: Final = """
const unpack = async data => {
  const bytes = new Uint8Array(data.buffer || data, data.byteOffset || 0, data.byteLength);
  const stream = new DecompressionStream("deflate"), writer = stream.writable.getWriter();
  const written = writer.write(bytes).then(() => writer.close());
  const text = await new Response(stream.readable).text();
  await written;
  return JSON.parse(text);
};
const made = (tag, attributes = {}, text = "") => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
};
const only = list => [...new Set(list)];
const choice = (label, names, chosen, changed) => {
  const box = made("label", {}, label + " "), select = made("select", {"aria-label": label});
  for (const name of names) {
    const option = made("option", {value: name}, name);
    option.selected = name === chosen;
    select.append(option);
  }
  select.addEventListener("change", () => changed(select.value));
  box.append(select);
  return box;
};
const render = async ({model, el}) => {
  const root = el.shadowRoot || el.attachShadow({mode: "open"});
  const style = made("style", {}, model.get("style_sheet"));
  const page = made("div", {class: "page"});
  root.replaceChildren(style, page);
  if (typeof DecompressionStream === "undefined") {
    page.append(made("p", {class: "bad"}, "This browser is too old to unpack the kernels: " +
      "Chrome 80, Firefox 113, Safari 16.4, or later; or use %%qd_inspect --static."));
    return;
  }
  let parts;
  try {
    parts = await unpack(model.get("data"));
  } catch (error) {
    page.append(made("p", {class: "bad"}, "The kernels cannot be unpacked: " + error));
    return;
  }
  const set = (name, value) => {
    model.set(name, value);
    model.save_changes();
    draw();
  };
  const draw = () => {
    const kernels = only(parts.map(part => part.kernel));
    const kernel = kernels.includes(model.get("kernel")) ? model.get("kernel") : kernels[0];
    const own = parts.filter(part => part.kernel === kernel);
    const backends = only(own.map(part => part.backend).filter(Boolean));
    const backend = backends.includes(model.get("backend")) ? model.get("backend") : backends[0];
    const seen = own.filter(part => !part.backend || part.backend === backend);
    const panels = only(seen.map(part => part.panel));
    const panel = panels.includes(model.get("panel")) ? model.get("panel") : panels[0];
    const bar = made("div", {class: "bar"});
    bar.append(choice("kernel", kernels, kernel, value => set("kernel", value)));
    if (backends.length)
      bar.append(choice("backend", backends, backend, value => set("backend", value)));
    const tabs = made("div", {class: "tabs", role: "tablist"});
    for (const name of panels) {
      const tab = made("button", {role: "tab", "aria-selected": String(name === panel)}, name);
      tab.addEventListener("click", () => set("panel", name));
      tabs.append(tab);
    }
    const body = made("div", {class: "panel", role: "tabpanel", "data-panel": panel});
    body.innerHTML = seen.filter(part => part.panel === panel).map(part => part.html).join("");
    page.replaceChildren(bar, tabs, body);
  };
  draw();
  for (const name of ["kernel", "backend", "panel"]) model.on(`change:${name}`, draw);
};
export default {render};
"""
WIDGET_STYLE: Final = """
:host{display:block}
.page{padding:8px 12px;border:1px solid var(--line);border-radius:6px}
.bar{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px}
.bar select{font:inherit}
.tabs{display:flex;flex-wrap:wrap;gap:2px;margin:8px 0;border-bottom:1px solid var(--line)}
.tabs button{all:unset;cursor:pointer;font-size:13px;padding:4px 10px;border-radius:6px 6px 0 0}
.tabs button[aria-selected=true]{background:var(--soft);color:var(--accent);font-weight:600}
.tabs button:focus-visible{outline:2px solid var(--accent)}
.panel{max-height:640px;overflow:auto}
"""
