// All responses to a prompt, and one response with its turns and tokens.
import { address, ask, badge, copy, h, link, number, shown } from "./dom.js";
import { tokens } from "./tokens.js";

const SHOWN = new Set(["file", "row", "step", "task_id", "prompt", "response", "passed", "score", "reward", "advantage", "length", "stop", "feedback", "turns", "parts", "meta", "group", "sample", "label", "tokens"]);

export async function group(parameters) {
  const source = parameters.get("source"), found = await ask("group", parameters), rows = found.rows;
  const sort = parameters.get("by") ?? "sample", by = { sample: () => 0, reward: (a, b) => (b.reward ?? -Infinity) - (a.reward ?? -Infinity), length: (a, b) => b.length - a.length }[sort];
  const right = rows.filter((r) => r.passed === true).length, judged = rows.filter((r) => r.passed !== null).length;
  const texts = new Map();
  for (const r of rows) texts.set(r.response, (texts.get(r.response) ?? 0) + 1);
  const near = (step) => link({ view: "group", source, step, task: parameters.get("task") }, step < found.step ? "← step before" : "step after →");
  const steps = (await ask("steps", { source, "is.task_id": parameters.get("task") })).map((s) => s.step);
  const before = steps.filter((s) => s < found.step).at(-1), after = steps.find((s) => s > found.step);
  return [
    h("h1", {}, `Step ${found.step}, task ${parameters.get("task")}`),
    h("p", { class: "row" }, h("span", {}, `${right} of ${judged} judged right`), h("span", { class: "soft" }, `${rows.length} responses, ${texts.size} different`),
      before !== undefined && near(before), after !== undefined && near(after),
      link({ view: "task", source, task: parameters.get("task") }, "this task at every step"),
      link({ view: "groups", source, "min.step": found.step, "max.step": found.step }, "all groups of the step")),
    h("pre", { class: "prompt", tabindex: 0 }, rows[0].prompt),
    h("p", { class: "row bar" }, "Sorted by", ["sample", "reward", "length"].map((name) => { const p = new URLSearchParams(parameters); p.set("by", name); return h("a", { href: `/?${p}`, "aria-current": name === sort ? "true" : null }, name); }),
      h("a", { class: "button", download: "samples.jsonl", href: `/api/export?${new URLSearchParams([["source", source], ...rows.map((r) => ["key", `${r.file}:${r.row}`])])}` }, "Export JSONL")),
    h("div", { class: "sides" }, [...rows].sort(by).map((row) => response(row, source))),
  ];
}

function response(row, source) {
  return h("section", { class: "card response" },
    h("div", { class: "row" }, badge(row.passed), facts(row), h("span", { class: "grow" }), link({ view: "sample", source, file: row.file, row: row.row }, "open")),
    h("pre", { tabindex: 0 }, shown(row.response || "(empty)")),
    terms(row), parts(row.parts),
    row.feedback && h("p", { class: "small" }, h("span", { class: "soft" }, "feedback "), row.feedback));
}

function facts(row) {
  return [["reward", row.reward], ["score", row.score], ["advantage", row.advantage], ["tokens", row.length]].filter(([, v]) => v !== null && v !== undefined).map(([name, v]) => h("span", { class: "small" }, h("span", { class: "soft" }, `${name} `), number(v)))
    .concat(h("span", { class: "small" }, h("span", { class: "soft" }, "stop "), row.stop));
}

function terms(row) {
  const found = Object.entries(row).filter(([k, v]) => k.startsWith("reward/") && v !== null);
  return found.length > 0 && h("p", { class: "row small" }, h("span", { class: "soft" }, "terms"), found.map(([k, v]) => h("span", {}, `${k.slice(7)} `, h("strong", {}, number(v)))));
}

function parts(found) {
  const entries = found && typeof found === "object" ? Object.entries(found) : [];
  return entries.length > 0 && h("details", { class: "small", open: entries.length <= 6 }, h("summary", {}, `${entries.length} parts of the verdict`),
    h("ul", { class: "parts" }, entries.map(([name, v]) => h("li", {}, h("span", { class: `badge ${v === 1 ? "right" : v === null || name.includes(" | ") ? "abstains" : v === 0 ? "wrong" : ""}` }, v === null ? "?" : number(v)), " ", name))));
}

export async function sample(parameters) {
  const source = parameters.get("source"), row = await ask("sample", parameters), number_ = Number(parameters.get("row"));
  const to = (n) => address({ view: "sample", source, file: row.file, row: n });
  const rest = Object.entries(row).filter(([k, v]) => !SHOWN.has(k) && !k.startsWith("reward/") && v !== null && typeof v !== "object");
  document.onkeydown = (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey) return;
    if (event.key === "j") document.getElementById("after").click();
    if (event.key === "k" && number_ > 0) document.getElementById("before").click();
  };
  return [
    h("h1", {}, `Sample ${number_} of step ${row.step}`),
    h("p", { class: "row" }, badge(row.passed), facts(row), number_ > 0 && h("a", { id: "before", href: to(number_ - 1) }, "← before"), h("a", { id: "after", href: to(number_ + 1) }, "after →"),
      link({ view: "group", source, step: row.step, task: row.task_id, group: row.group }, "its group"), link({ view: "task", source, task: row.task_id }, "its task"),
      h("button", { type: "button", onclick: () => copy(JSON.stringify({ ...row, tokens: undefined })) }, "Copy JSON"), h("button", { type: "button", onclick: () => copy(location.href) }, "Copy link")),
    h("h2", {}, "Prompt"), h("pre", { class: "prompt", tabindex: 0 }, row.prompt),
    h("h2", {}, "Response"), row.tokens ? tokens(row, parameters) : [h("pre", { class: "tall" }, shown(row.response || "(empty)")), turns(row.turns)],
    h("h2", {}, "Verdict"), h("div", { class: "card" }, badge(row.passed), row.feedback && h("pre", { tabindex: 0 }, row.feedback), terms(row), parts(row.parts)),
    rest.length > 0 && [h("h2", {}, "What else is stored"), h("div", { class: "card" }, h("table", { class: "facts" }, h("tbody", {}, rest.map(([k, v]) => h("tr", {}, h("td", {}, k), h("td", {}, typeof v === "number" ? number(v) : String(v)))))))],
    !row.tokens && h("p", { class: "soft small" }, "Values of single tokens are stored with run.rollout_tokens = true."),
  ];
}

export function turns(found) {
  if (!Array.isArray(found) || !found.length) return null;
  return h("section", {}, h("h2", {}, `${found.length} turns`), found.map((t) => h("details", { class: "card" },
    h("summary", {}, `Turn ${t.index} `, t.valid === false && h("span", { class: "badge wrong" }, "could not be taken"), h("span", { class: "soft" }, ` tokens ${t.start} to ${t.end}, reward ${number(t.reward)}, advantage ${number(t.advantage)}`)),
    t.text && h("pre", { tabindex: 0 }, t.text),
    (t.calls ?? []).map((c) => h("pre", { class: "call", tabindex: 0 }, `${c.name}(${JSON.stringify(c.arguments)})${c.problem ? `  ${c.problem}: ${c.reason}` : ""}`)),
    t.error && h("p", { class: "loss" }, t.error))));
}
