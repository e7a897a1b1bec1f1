// Elements made of text: nothing that a model or a person wrote is ever read as HTML.

export function h(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  fill(node, attributes);
  node.append(...flat(children));
  return node;
}

export function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  fill(node, attributes);
  node.append(...flat(children));
  return node;
}

function fill(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "vars") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else node.setAttribute(key, value === true ? "" : value);
  }
}

function flat(children) {
  return children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : String(c)));
}

export function number(x, digits = 3) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  if (Number.isInteger(x) && Math.abs(x) < 1e15) return x.toLocaleString("en").replace("-", "−");
  const size = Math.abs(x);
  const text = size >= 1e6 || size < 1e-4 ? x.toExponential(digits - 1) : String(Number(x.toPrecision(Math.max(digits, Math.ceil(Math.log10(size))))));
  return text.replace("-", "−");
}

export const percent = (x) => (x === null || x === undefined ? "–" : `${(100 * x).toFixed(1)} %`);

export function badge(passed) {
  const [word, kind] = passed === true ? ["right", "right"] : passed === false ? ["wrong", "wrong"] : ["abstains", "abstains"];
  return h("span", { class: `badge ${kind}` }, word);
}

export function table(columns, rows, attributes = {}) {
  const head = h("tr", {}, columns.map((c) => h("th", { scope: "col" }, c)));
  const body = rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell))));
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": attributes["aria-label"] ?? columns.map(textOf).join(", ") },
    h("table", attributes, h("thead", {}, head), h("tbody", {}, body)));
}

const textOf = (x) => (x instanceof Node ? x.textContent : String(x));

// A link within the page: parameters as the address has them.
export function link(parameters, ...children) {
  return h("a", { href: address(parameters) }, ...children);
}

export function address(parameters) {
  const out = new URLSearchParams();
  for (const [key, value] of parameters instanceof URLSearchParams ? parameters : Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== null && one !== undefined && one !== "") out.append(key, one);
  }
  return `/?${out}`;
}

let asking = new AbortController();

export function forgetAsked() {
  asking.abort();
  asking = new AbortController();
}

export async function ask(path, parameters = "") {
  const answer = await fetch(`/api/${path}?${parameters instanceof URLSearchParams ? parameters : new URLSearchParams(parameters)}`, { signal: asking.signal });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error ?? answer.statusText);
  return found;
}

export function say(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  place.classList.add("shown");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => place.classList.remove("shown"), 2500);
}

export async function copy(text) {
  await navigator.clipboard.writeText(text);
  say("Copied");
}

const PICTURE = /(data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2})/;

// A text with the pictures in it, as models that draw answer with, as pictures; `words` are marked in the rest.
export function shown(text, words = null) {
  return text.split(PICTURE).map((part, i) => (i % 2 ? h("img", { class: "drawn", alt: "picture", src: part }) : words === null ? part : marked(part, words)));
}

export function marked(text, words) {
  if (!words) return [text];
  const out = [], low = text.toLowerCase(), wanted = words.toLowerCase();
  // Where lower case has another length, places would not fit.
  if (low.length !== text.length) return [text];
  let at = 0;
  for (let next; (next = low.indexOf(wanted, at)) >= 0; at = next + wanted.length) out.push(text.slice(at, next), h("mark", {}, text.slice(next, next + wanted.length)));
  out.push(text.slice(at));
  return out;
}
