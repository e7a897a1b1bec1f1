// A response token by token, coloured by a quantity; values under the pointer and in a table.
import { h, number, table } from "./dom.js";
import { turns } from "./group.js";

const NAMES = { advantage: "advantage", logprob: "log-probability when sampled", entropy: "entropy, nats", shift: "log-ratio, policy to sampler", policy_logprobs: "log-probability, policy", policy_entropy: "entropy, policy", origin: "who wrote it", mask: "learned from" };
const ORIGINS = ["own", "teacher", "hint", "tool"];
const SIGNED = new Set(["advantage", "shift", "reward"]);
const RUN = 400; // tokens in a table at first

export function tokens(row, parameters) {
  const found = { ...row.tokens }, count = found.text.length;
  if (found.logprob && found.policy_logprobs) found.shift = found.policy_logprobs.map((x, i) => (x === null || found.logprob[i] === null ? null : x - found.logprob[i]));
  const quantities = Object.keys(found).filter((k) => k !== "text" && found[k]?.length === count && found[k].some((v) => v !== null));
  const chosen = quantities.includes(parameters.get("by")) ? parameters.get("by") : quantities.includes("advantage") ? "advantage" : quantities[0];
  const values = found[chosen] ?? [], { low, high } = ends(values, SIGNED.has(chosen));
  const value = (k, i) => (k === "origin" ? ORIGINS[found[k][i]] ?? "–" : number(found[k][i]));
  const told = h("div", { class: "told card", role: "status" }, "Point at a token, or go through them with the arrow keys.");
  const spans = found.text.map((text, i) => h("span", { class: "token " + colour(chosen, values[i], low, high), vars: strength(chosen, values[i], low, high), "data-i": i }, text || "␀"));
  const show = (i) => {
    told.replaceChildren(h("strong", {}, `token ${i} ${JSON.stringify(found.text[i])}`), ...quantities.map((k) => h("span", {}, h("span", { class: "soft" }, `${NAMES[k] ?? k} `), value(k, i))));
    box.querySelector(".token.on")?.classList.remove("on");
    spans[i].classList.add("on");
  };
  const box = h("div", { class: "tokens card", tabindex: 0, role: "group", "aria-label": `Tokens of the response, coloured by ${NAMES[chosen] ?? chosen}`, onpointerover: (e) => e.target.dataset.i && show(Number(e.target.dataset.i)), onkeydown: (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    e.preventDefault();
    show(Math.max(0, Math.min(count - 1, Number(box.querySelector(".token.on")?.dataset.i ?? -1) + step)));
  } }, folded(spans, found.origin, row.turns));
  const choice = quantities.map((k) => { const p = new URLSearchParams(parameters); p.set("by", k); return h("a", { href: `/?${p}`, class: "chip", "aria-current": k === chosen ? "true" : null }, NAMES[k] ?? k); });
  const numbers = h("details", { class: "card", ontoggle: () => { if (numbers.open && numbers.childElementCount === 1) more(0); } }, h("summary", {}, "As a table"));
  const more = (from) => {
    const to = Math.min(count, from + RUN), rows = [];
    for (let i = from; i < to; i++) rows.push([number(i), JSON.stringify(found.text[i]), ...quantities.map((k) => value(k, i))]);
    numbers.append(table(["token", "text", ...quantities.map((k) => NAMES[k] ?? k)], rows));
    if (to < count) { const button = h("button", { type: "button", onclick: () => { button.remove(); more(to); } }, `${count - to} more`); numbers.append(button); }
  };
  return [h("div", { class: "chips" }, choice), legend(chosen, low, high), box, told, numbers, turns(row.turns)];
}

// What others wrote, such as a tool's answer, is folded where it is long.
function folded(spans, origins, found) {
  const out = [], starts = new Map(Array.isArray(found) ? found.map((t) => [t.start, t]) : []);
  for (let i = 0; i < spans.length; ) {
    if (starts.has(i)) out.push(h("span", { class: "turn" }, `turn ${starts.get(i).index}`));
    let end = i + 1;
    while (end < spans.length && !starts.has(end) && (origins?.[end] ?? 0) === (origins?.[i] ?? 0)) end++;
    const kind = origins?.[i] ?? 0, run = spans.slice(i, end);
    out.push(kind && run.length > 12 ? h("details", { class: "fold" }, h("summary", {}, `${ORIGINS[kind]}, ${run.length} tokens`), run) : run);
    i = end;
  }
  return out;
}

function ends(values, signed) {
  const known = values.filter((v) => typeof v === "number").sort((a, b) => a - b);
  if (!known.length) return { low: 0, high: 1 };
  // The outermost hundredth does not pale the rest.
  const at = (q) => known[Math.min(known.length - 1, Math.floor(q * known.length))], low = at(0.01), high = at(0.99);
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  return signed ? { low: -most, high: most } : { low, high: high > low ? high : low + 1 };
}

function colour(name, v, low, high) {
  if (v === null || v === undefined) return "none";
  if (name === "origin") return `origin${v}`;
  if (SIGNED.has(name)) return v >= 0 ? "plus" : "minus";
  return "size";
}

function strength(name, v, low, high) {
  if (v === null || v === undefined || name === "origin") return {};
  const part = SIGNED.has(name) ? Math.abs(v) / high : name.includes("logprob") ? (high - v) / (high - low) : (Number(v) - low) / (high - low);
  return { "--strength": `${Math.round(70 * Math.max(0, Math.min(1, part)))}%` };
}

function legend(name, low, high) {
  if (name === "origin") return h("p", { class: "legend" }, ORIGINS.map((o, i) => h("span", {}, h("span", { class: `token origin${i}` }, o))));
  if (SIGNED.has(name)) return h("p", { class: "legend" }, h("span", { class: "token minus", vars: { "--strength": "70%" } }, number(low)), " 0 ", h("span", { class: "token plus", vars: { "--strength": "70%" } }, number(high)));
  const dark = name.includes("logprob") ? low : high, pale = name.includes("logprob") ? high : low;
  return h("p", { class: "legend" }, h("span", {}, number(pale)), h("span", { class: "token size", vars: { "--strength": "70%" } }, number(dark)));
}
