// An evaluation, two of them, and records in JSON.
import { ask, badge, h, link, number, percent, table } from "./dom.js";
import { chart } from "./chart.js";
import { interval, pair } from "./runs.js";

export async function evaluation(parameters) {
  const id = parameters.get("id"), [found, all] = await Promise.all([ask("evaluation", { id }), ask("home")]), m = found.metrics;
  const ks = Object.keys(m).filter((k) => /^pass@\d+$/.test(k)), sources = Object.keys(m).filter((k) => k.endsWith("/pass@1"));
  const c = found.calibration, others = all.evaluations.map((e) => e.id);
  return [
    h("h1", {}, id), h("p", { class: "row" }, h("span", { class: "soft" }, `${found.label}, weights of step ${found.step}`), link({ view: "samples", source: id }, "samples"), link({ view: "groups", source: id }, "by task")),
    h("div", { class: "tiles" }, ks.slice(0, 4).map((k) => h("div", { class: "card tile" }, h("div", { class: "soft small" }, k), h("div", { class: "value" }, percent(m[k])), h("div", { class: "soft small" }, interval(m, k)))),
      [["tasks", number(m.tasks)], ["samples", number(m.samples)], ["mean length", number(m["length/mean"])], ["truncated", percent(m.truncated)], ["abstained", percent(m.abstained)]].map(([n, v]) => h("div", { class: "card tile" }, h("div", { class: "soft small" }, n), h("div", { class: "value" }, v)))),
    sources.length > 0 && [h("h2", {}, "By source"), h("div", { class: "card" }, table(["source", "pass@1", "95 %"], sources.map((k) => [k.slice(0, -"/pass@1".length), percent(m[k]), interval(m, k)]), { "aria-label": "By source" }))],
    c && [h("h2", {}, "Calibration"), h("div", { class: "charts" }, chart(`accuracy by confidence; expected calibration error ${number(c.error)}`, { "this evaluation": c.bins.map((b) => [b.confidence, b.accuracy, b.low, b.high]), calibrated: [[0, 0], [1, 1]] }, { bounds: [0, 1] })), table(["mean confidence", "accuracy", "95 %", "samples"], c.bins.map((b) => [number(b.confidence), percent(b.accuracy), `${percent(b.low)} to ${percent(b.high)}`, number(b.samples)]))],
    found.answers.length > 0 && [h("h2", {}, "Tasks whose answers differ most"), h("div", { class: "card" }, table(["task", "answers given"], found.answers.slice(0, 50).map((r) => [link({ view: "group", source: id, step: found.step, task: r.task }, r.task), r.answers.map((a) => h("div", {}, badge(a.passed), ` ${a.samples} × `, a.answer))]), { class: "left" }))],
    others.length > 1 && pair(others, others[0] === id ? others[1] : others[0], id),
  ];
}

const points = (x) => `${x > 0 ? "+" : x < 0 ? "−" : ""}${Math.abs(100 * x).toFixed(1)}`;

export async function between(parameters) {
  const found = await ask("between", parameters), d = found.difference;
  const list = (title, rows, kind, count) => [h("h2", {}, `${title}: ${number(count)} ${count === 1 ? "task" : "tasks"}`), rows.length ? h("div", { class: "card" }, table(["task", "before", "after", "responses"], rows.map((r) => [[h("div", { class: "one wide" }, r.prompt), h("span", { class: "soft" }, r.task)], percent(r.before), h("span", { class: kind }, percent(r.after)), [link({ view: "group", source: found.a, step: found.steps[0], task: r.task }, "before"), " ", link({ view: "group", source: found.b, step: found.steps[1], task: r.task }, "after")]]), { "aria-label": title, class: "left" })) : h("p", { class: "soft" }, "None.")];
  return [
    h("h1", {}, "Gained and lost"), h("p", {}, link({ view: "evaluation", id: found.a }, found.a), " → ", link({ view: "evaluation", id: found.b }, found.b)),
    h("div", { class: "tiles" }, [["share right before", percent(found.before), ""], ["share right after", percent(found.after), ""], ["difference, points", points(d.value), `95 %: ${points(d.low)} to ${points(d.high)}, paired by task`], ["tasks in both", number(found.tasks), `${number(found.unchanged)} unchanged`]].map(([n, v, more]) => h("div", { class: "card tile" }, h("div", { class: "soft small" }, n), h("div", { class: "value" }, v), h("div", { class: "soft small" }, more)))),
    list("Gained", found.gained, "gain", found.counts.gained), list("Lost", found.lost, "loss", found.counts.lost),
  ];
}

export async function record(parameters) {
  const found = await ask("record", parameters), content = found.content ?? {};
  const body = { comparison, lab, league, "audit record": audit, audit }[found.what]?.(content, found.id) ?? null;
  return [h("h1", {}, found.id), h("p", { class: "soft" }, found.what), body, h("details", {}, h("summary", {}, "The whole record"), tree(content))];
}

const rate = (r) => (r && r.value !== null ? `${percent(r.value)} [${percent(r.low)}, ${percent(r.high)}], ${r.count} of ${r.total}` : "–");

function comparison(c, id) {
  const place = id.split("/").slice(0, -1).join("/");
  const line = (r) => [r.status === "finished" ? link({ view: "run", id: `${place}/runs/${r.task}/seed-${r.seed}/${r.method}/run` }, r.method) : r.method, r.task, number(r.seed), r.status, short(r.final), r.error ?? ""];
  return [c.verdict && h("p", { class: "card state" }, typeof c.verdict === "string" ? c.verdict : c.verdict.join(" ")), h("h2", {}, "Methods"), h("div", { class: "card" }, facts(c.methods)), h("h2", {}, "Pairs"), h("div", { class: "card" }, Array.isArray(c.pairs) && c.pairs.length ? rows(c.pairs) : facts(c.pairs)),
    Array.isArray(c.runs) && [h("h2", {}, "Runs"), h("div", { class: "card" }, table(["method", "task", "seed", "status", "score", "error"], c.runs.slice(0, 400).map(line), { "aria-label": "Runs" }))]];
}

function lab(c) {
  return [h("p", { class: "card state" }, c.claim), h("p", {}, `${c.better} against ${c.baseline}, by ${c.measure}`), Array.isArray(c.runs) && h("div", { class: "card" }, rows(c.runs))];
}

function league(c) {
  const effect = (e) => (e === null ? "baseline" : `${points(e.value)} [${points(e.low)}, ${points(e.high)}]`), p = (v) => (v < 0.001 ? "< 0.001" : v.toFixed(3));
  const head = ["method", `effect on ${c.measure === "area" ? "the area under pass@1" : "pass@1 at the end"}, points`, "p, Holm", "p, signs", "seeds", "measure", "pass@1", "pass@16", "tokens", "step", "beside", "tuned", "ran at"];
  const line = (r) => [r.label, effect(r.effect), ...(r.effect === null ? ["", ""] : [p(r.p), p(r.flip)]), `${r.seeds}${r.fell ? `; ${r.fell} fell` : ""}`, percent(r.measure), percent(r.final), percent(r.wide), number(r.tokens), `${r.cost.toFixed(2)} ×`, percent(r.beside), [r.tuned, ...r.unsettled].join("; "), r.where.join("; ")];
  return [h("h2", {}, `Setting ${c.setting}: methods against ${c.baseline}, on the same seeds`),
    c.methods.length ? h("div", { class: "card" }, table(head, c.methods.map(line), { "aria-label": `Methods in ${c.setting}` })) : h("p", { class: "card state" }, `${c.baseline} has not run ${c.least} seeds yet, so nothing can be compared.`),
    c.waiting.length > 0 && h("p", { class: "soft" }, `With fewer than ${c.least} seeds beside ${c.baseline}'s, or of another version of the setting: `, c.waiting.map((w) => `${w.label} (${w.seeds}${w.other ? ", another version" : ""})`).join(", ")),
    h("div", { class: "charts" }, chart("held-out pass@1 over responses sampled, mean over seeds, 95 % interval", c.curves))];
}

function audit(c) {
  const categories = Object.entries(c.categories ?? {});
  return [h("div", { class: "tiles" }, [["right answers rejected", rate(c.false_negative_rate)], ["wrong answers accepted", rate(c.false_positive_rate)]].map(([n, v]) => h("div", { class: "card tile" }, h("div", { class: "soft small" }, n), h("div", {}, v)))),
    c.attacks && [h("h2", {}, "Attacks"), h("div", { class: "card" }, facts(c.attacks))],
    categories.length > 0 && [h("h2", {}, "By category"), h("div", { class: "card" }, table(["category", "right rejected", "wrong accepted"], categories.map(([n, v]) => [n, rate(v.false_negative_rate), rate(v.false_positive_rate)])))]];
}

function rows(list) {
  const names = [...new Set(list.flatMap((r) => Object.keys(r)))].slice(0, 12);
  return table(names, list.slice(0, 400).map((r) => names.map((n) => short(r[n]))));
}

function facts(o) {
  return h("table", { class: "facts" }, h("tbody", {}, Object.entries(o ?? {}).map(([k, v]) => h("tr", {}, h("td", {}, k), h("td", {}, typeof v === "object" && v !== null ? tree(v) : short(v))))));
}

const short = (v) => (v === null || v === undefined ? "–" : typeof v === "number" ? number(v) : typeof v === "object" ? JSON.stringify(v).slice(0, 200) : String(v));

// Nested values, each level made when it is opened.
function tree(v) {
  if (typeof v !== "object" || v === null) return h("span", {}, short(v));
  const entries = Object.entries(v);
  if (entries.every(([, x]) => typeof x !== "object" || x === null) && entries.length <= 8) return h("span", { class: "small" }, entries.map(([k, x]) => [h("span", { class: "soft" }, `${k} `), short(x), "  "]));
  return h("ul", { class: "tree" }, entries.slice(0, 500).map(([k, x]) => {
    if (typeof x !== "object" || x === null) return h("li", {}, h("span", { class: "soft" }, `${k}: `), short(x));
    const d = h("details", { ontoggle: () => { if (d.open && d.childElementCount === 1) d.append(tree(x)); } }, h("summary", {}, k, h("span", { class: "soft" }, ` ${Array.isArray(x) ? `${x.length} items` : `${Object.keys(x).length} fields`}`)));
    return h("li", {}, d);
  }));
}
