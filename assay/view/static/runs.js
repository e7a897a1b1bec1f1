// Everything there is; one run; runs side by side.
import { address, ask, h, link, number, percent, table } from "./dom.js";
import { chart } from "./chart.js";

const FIRST = ["reward/mean", "pass_rate", "length/mean", "entropy", "kl", "time/step"];

export async function home() {
  const found = await ask("home"), chosen = new Set();
  const compare = h("a", { class: "button", "aria-disabled": "true" }, "Side by side");
  const choose = (id, on) => { on ? chosen.add(id) : chosen.delete(id); chosen.size ? compare.setAttribute("href", address({ view: "runs", id: [...chosen] })) : compare.removeAttribute("href"); compare.setAttribute("aria-disabled", String(!chosen.size)); };
  const box = (id) => { const b = h("input", { type: "checkbox", "aria-label": `choose ${id}`, onchange: () => choose(id, b.checked) }); return b; };
  const evaluations = found.evaluations.filter((e) => !e.in_run), picked = [];
  return [
    h("h1", {}, "What there is"), h("p", { class: "soft small" }, found.roots.join(", ")),
    found.runs.length > 0 && [h("div", { class: "row" }, h("h2", {}, "Runs"), h("span", { class: "grow" }), compare, link({ view: "runs", id: found.runs.slice(0, 24).map((r) => r.id) }, "all side by side")),
      h("div", { class: "card" }, table(["run", "choose", "method", "model", "tasks", "seed", "step", "reward", "pass rate", "held-out pass@1", "state", "rollouts"], found.runs.map((r) => [link({ view: "run", id: r.id }, r.id), box(r.id), r.method || "–", r.model ?? "–", r.tasks ?? "–", number(r.seed), `${number(r.step)}${r.steps ? ` / ${number(r.steps)}` : ""}`, number(r.reward), percent(r.pass_rate), percent(r.measured?.metrics["pass@1"]), state(r), r.rollouts ? [link({ view: "samples", source: r.id }, "samples"), " ", link({ view: "groups", source: r.id }, "groups")] : "–"]), { "aria-label": "Runs" }))],
    evaluations.length > 0 && [h("h2", {}, "Evaluations"), h("div", { class: "card" }, table(["evaluation", "samples"], evaluations.map((e) => [link({ view: "evaluation", id: e.id }, e.id), link({ view: "samples", source: e.id }, "samples")]), { "aria-label": "Evaluations" }))],
    found.evaluations.length > 1 && pair(found.evaluations.map((e) => e.id)),
    found.records.length > 0 && [h("h2", {}, "Records"), h("div", { class: "card" }, table(["record", "kind"], found.records.map((r) => [link({ view: "record", id: r.id }, r.id), r.what]), { "aria-label": "Records" }))],
  ];
}

// What is known of a run from its files: it has ended, or it was last heard of so long ago.
const state = (r) => r.measured?.label === "after" ? "finished" : r.updated ? `${ago(Date.now() / 1000 - r.updated)} ago` : "begun";
const ago = (s) => s < 90 ? `${Math.max(0, Math.round(s))} s` : s < 5400 ? `${Math.round(s / 60)} min` : s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;

export function pair(ids, a = ids[0], b = ids.at(-1)) {
  const select = (id, value, label) => h("label", { for: id }, h("span", {}, label), h("select", { id }, ids.map((i) => h("option", { value: i, selected: i === value }, i))));
  const first = select("pair-a", a, "from"), second = select("pair-b", b, "to");
  const go = () => document.dispatchEvent(new CustomEvent("go", { detail: { href: address({ view: "between", a: first.querySelector("select").value, b: second.querySelector("select").value }) } }));
  return h("section", { class: "card filters" }, h("h2", {}, "What was gained and lost between two evaluations"), h("div", { class: "ranges" }, first, second, h("button", { type: "button", onclick: go }, "Compare")));
}

const started = (e) => e.metrics["pass@1"] === undefined ? null : [e.step, e.metrics["pass@1"], e.metrics["pass@1/low"], e.metrics["pass@1/high"]];

function evaluated(evaluations, id) {
  return table(["evaluation", "step", "pass@1", "95 %", "tasks", "length", "truncated", "abstained", "samples"], evaluations.map((e) => [link({ view: "evaluation", id: e.id }, e.label), number(e.step), percent(e.metrics["pass@1"]), interval(e.metrics, "pass@1"), number(e.metrics.tasks), number(e.metrics["length/mean"]), percent(e.metrics.truncated), percent(e.metrics.abstained), link({ view: "samples", source: e.id }, "samples")]), { "aria-label": `Evaluations of ${id}` });
}

export const interval = (m, name) => (m[`${name}/low`] === undefined ? "–" : `${percent(m[`${name}/low`])} to ${percent(m[`${name}/high`])}`);

export async function run(parameters) {
  const id = parameters.get("id"), [found, logged] = await Promise.all([ask("run", { id }), ask("metrics", { id })]);
  const signs = Array.isArray(found.signs) ? found.signs : [];
  return [
    h("h1", {}, id),
    h("p", { class: "row" }, h("span", {}, `step ${number(found.step)}${found.steps ? ` of ${number(found.steps)}` : ""}`), h("span", { class: "soft" }, [found.method, found.model, found.tasks].filter(Boolean).join(" · ")),
      found.rollouts && [link({ view: "samples", source: id }, "samples"), link({ view: "groups", source: id }, "groups")]),
    logged.notes.map((n) => h("p", { class: "card state" }, n)),
    signs.length > 0 && h("section", { class: "card gamed" }, h("h3", {}, "Signs that the reward is gamed"), signs.map((s) => h("details", {}, h("summary", {}, `step ${s.step}: ${s.kind} `, h("span", { class: "soft" }, s.text)), (s.examples ?? []).map((e) => h("div", {}, link({ view: "group", source: id, step: e.step, task: e.task_id }, `step ${e.step}, ${e.task_id}`), h("pre", { tabindex: 0 }, e.response)))))),
    found.stages.length > 0 && [h("h2", {}, "Stages"), h("div", { class: "card" }, table(["stage", "steps", "at most", "what is other in it"], found.stages.map((s) => [s.name, s.first === null ? "–" : `${number(s.first)} to ${number(s.last)}`, number(s.steps), s.changes || "–"]), { "aria-label": "Stages" }))],
    found.evaluations.length > 0 && [h("h2", {}, "Evaluations"), h("div", { class: "card" }, evaluated(found.evaluations, id)), found.evaluations.length > 1 && h("p", {}, link({ view: "between", a: found.evaluations[0].id, b: found.evaluations.at(-1).id }, "What was gained and lost from first to last"))],
    found.log && h("details", { class: "card" }, h("summary", {}, `What it said: ${number(found.log.trim().split("\n").length)} lines`), h("pre", { tabindex: 0 }, found.log)),
    curves(logged, [id]),
    h("h2", {}, "Configuration"), h("pre", { tabindex: 0 }, found.config || "config.toml is missing"),
  ];
}

function curves(logged, ids) {
  const names = Object.keys(logged.series), last = (name) => { const i = FIRST.indexOf(name); return i < 0 ? (name.startsWith("reward/") ? 90 : name.startsWith("time/") ? 200 : 100) : i; };
  names.sort((a, b) => last(a) - last(b) || a.localeCompare(b));
  const lines = Object.fromEntries(ids.map((id) => [id, (logged.evaluations[id] ?? []).map(started).filter(Boolean)]));
  const filter = h("input", { type: "search", id: "metric", "aria-label": "Find a metric", placeholder: "Find a metric", oninput: () => { for (const c of box.children) c.hidden = !c.querySelector("h3").textContent.includes(filter.value); } });
  const box = h("div", { class: "charts" }, chart("held-out pass@1, 95 % interval", lines), names.map((name) => chart(name, logged.series[name])));
  return [h("div", { class: "row" }, h("h2", {}, "Metrics"), h("span", { class: "grow" }), filter), box];
}

export async function runs(parameters) {
  const ids = parameters.getAll("id"), [logged, all] = await Promise.all([ask("metrics", new URLSearchParams(ids.map((id) => ["id", id]))), ask("home")]);
  const heads = ids.map((id) => all.runs.find((r) => r.id === id)).filter(Boolean);
  const last = (id, name) => logged.series[name]?.[id]?.at(-1)?.[1];
  const sum = (id, name) => (logged.series[name]?.[id] ?? []).reduce((s, [, y]) => s + y, 0);
  const end = (id) => logged.evaluations[id]?.at(-1)?.metrics ?? {};
  return [
    h("h1", {}, "Runs side by side"),
    h("div", { class: "card" }, table(["run", "method", "seed", "step", "pass@1 at the end", "95 %", "reward", "length", "seconds a step"], heads.map((r) => [link({ view: "run", id: r.id }, r.id), r.method || "–", number(r.seed), number(r.step), percent(end(r.id)["pass@1"]), interval(end(r.id), "pass@1"), number(r.reward), number(last(r.id, "length/mean")), number(r.step ? sum(r.id, "time/step") / (logged.series["time/step"]?.[r.id]?.length || 1) : null)]), { "aria-label": "Runs" })),
    curves(logged, ids),
  ];
}
