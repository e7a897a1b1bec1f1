// Lists of samples and of groups, with filters; one task across steps and runs.
import { address, ask, badge, copy, h, link, marked, number, percent, say, shown, table } from "./dom.js";
import { chart } from "./chart.js";

const VERDICTS = ["right", "wrong", "abstains"];
const go = (href, replace = true) => document.dispatchEvent(new CustomEvent("go", { detail: { href, replace } }));

// The link's parameters with some changed; a list always begins anew.
function changed(parameters, changes) {
  const out = new URLSearchParams(parameters);
  out.delete("offset");
  for (const [key, value] of Object.entries(changes)) {
    out.delete(key);
    for (const one of [value].flat()) if (one !== null && one !== undefined && one !== "") out.append(key, one);
  }
  return out;
}

export async function samples(parameters, again) {
  const [found, columns] = await Promise.all([ask("samples", parameters), ask("columns", { source: parameters.get("source") })]);
  const source = parameters.get("source"), chosen = new Set(), offset = Number(parameters.get("offset") ?? 0);
  if (found.loading) setTimeout(again, 700);
  const sort = parameters.get("sort") ?? "";
  const heading = (column, word) => {
    const down = sort === `-${column}`, up = sort === column;
    return h("a", { href: address(changed(parameters, { sort: down ? column : up ? "" : `-${column}` })), "aria-label": `sort by ${word}` }, word, down ? " ↓" : up ? " ↑" : "");
  };
  const numeric = ["step", "reward", "advantage", "length", "confidence"].filter((c) => found.rows.some((r) => r[c] !== null)).concat(columns.terms.map((t) => `reward/${t}`));
  const rows = found.rows.map((row, i) => {
    const key = `${row.file}:${row.row}`, open = { view: "sample", source, file: row.file, row: row.row };
    const box = h("input", { type: "checkbox", "aria-label": `choose sample ${offset + i + 1}`, onchange: () => { box.checked ? chosen.add(key) : chosen.delete(key); tell(); } });
    return h("tr", { "data-href": address(open), tabindex: -1 },
      h("td", {}, box), h("td", {}, badge(row.passed)),
      h("td", { class: "text" }, h("div", { class: "one prompt" }, link({ view: "task", task: row.task_id, source }, row.task_id), " ", marked(row.prompt ?? "", parameters.get("q"))),
        h("a", { class: "one", href: address(open) }, shown(row.response || "(empty)", parameters.get("q"))),
        row.feedback && h("div", { class: "one soft" }, marked(row.feedback, parameters.get("q")))),
      numeric.map((c) => h("td", { "data-name": c }, c === "step" ? link({ view: "group", source, step: row.step, task: row.task_id, group: row.group }, number(row.step)) : number(row[c]))),
      h("td", {}, row.stop));
  });
  const chosenWord = h("span", { class: "soft" });
  const save = h("a", { class: "button", download: "samples.jsonl" }, "Export JSONL");
  const tell = () => {
    chosenWord.textContent = chosen.size ? `${chosen.size} chosen` : `all ${number(found.total)}`;
    const asked = new URLSearchParams(chosen.size ? { source } : parameters);
    for (const key of chosen) asked.append("key", key);
    save.href = `/api/export?${asked}`;
  };
  tell();
  keys(rows);
  return [
    h("h1", {}, "Samples"), tabs(parameters, "samples"),
    columns.notes.map((n) => h("p", { class: "card state" }, n)),
    filters(parameters, found, columns),
    h("div", { class: "row bar" }, h("strong", { id: "total" }, `${number(found.total)} samples`), found.loading ? h("span", { class: "soft" }, `reading, ${number(found.loading)} files to go`) : null,
      h("span", { class: "grow" }), chosenWord, save,
      h("button", { type: "button", onclick: async () => copy(await (await fetch(save.href)).text()) }, "Copy"),
      h("button", { type: "button", onclick: async () => copy(location.href) }, "Copy link")),
    rows.length ? h("div", { class: "scroll card" }, h("table", { class: "samples" },
      h("thead", {}, h("tr", {}, h("th", {}, h("span", { class: "hidden" }, "choose")), h("th", {}, "verdict"), h("th", { class: "text" }, "prompt and response"), numeric.map((c) => h("th", {}, heading(c, c))), h("th", {}, "stop"))),
      h("tbody", {}, rows))) : h("p", { class: "card" }, found.loading ? "Nothing yet; still reading." : "No sample passes these filters."),
    pages(parameters, found.total),
  ];
}

function tabs(parameters, view) {
  const source = parameters.get("source");
  return h("nav", { class: "row tabs", "aria-label": "Lists" }, ["samples", "groups"].map((name) => h("a", { href: address(changed(parameters, { view: name, sort: "" })), "aria-current": name === view ? "page" : null }, name[0].toUpperCase() + name.slice(1))), h("span", { class: "soft small" }, source));
}

function filters(parameters, found, columns) {
  const field = (name, label, type = "text") => {
    const id = `f-${name}`, box = h("input", { id, type, step: "any", value: parameters.get(name) ?? "", onchange: () => go(address(changed(parameters, { [name]: box.value.trim() }))) });
    return h("label", { for: id }, h("span", {}, label), box);
  };
  const range = (column, label) => h("fieldset", { class: "range" }, h("legend", {}, label), field(`min.${column}`, "from", "number"), field(`max.${column}`, "to", "number"));
  const facet = (column, label, values) => h("fieldset", {}, h("legend", {}, label), h("div", { class: "chips" }, values.map((value) => {
    const all = parameters.getAll(`is.${column}`), on = all.includes(value);
    return h("button", { type: "button", id: `chip-${column}-${value}`, class: "chip", "aria-pressed": String(on), onclick: () => go(address(changed(parameters, { [`is.${column}`]: on ? all.filter((v) => v !== value) : [...all, value] }))) }, value, " ", h("span", { class: "count" }, number(found.facets[column][value] ?? 0)));
  })));
  const stops = [...new Set([...Object.keys(found.facets.stop), ...parameters.getAll("is.stop")])];
  const open = [...parameters.keys()].some((k) => /^(min|max)\./.test(k) || k === "is.task_id");
  return h("section", { class: "card filters", "aria-label": "Filters" },
    field("q", "Search in prompts, responses, feedback and task ids  ( / )", "search"),
    h("div", { class: "row facets" }, facet("passed", "verdict", VERDICTS), facet("stop", "stop", stops)),
    h("details", { open }, h("summary", {}, "Numbers and task"), h("div", { class: "ranges" }, field("is.task_id", "task"), range("step", "step"), range("reward", "reward"), range("length", "length"), columns.terms.map((t) => range(`reward/${t}`, `term ${t}`)))),
    [...parameters.keys()].some((k) => k === "q" || /^(is|min|max)\./.test(k)) && h("p", {}, link({ view: parameters.get("view"), source: parameters.get("source") }, "Clear all filters")));
}

function pages(parameters, total) {
  const limit = 50, offset = Number(parameters.get("offset") ?? 0);
  if (total <= limit) return null;
  const to = (n) => { const p = new URLSearchParams(parameters); n ? p.set("offset", n) : p.delete("offset"); return `/?${p}`; };
  return h("nav", { class: "row pages", "aria-label": "Pages" },
    offset > 0 && h("a", { id: "previous", href: to(Math.max(0, offset - limit)) }, "← previous"),
    h("span", { class: "soft" }, `${number(offset + 1)} to ${number(Math.min(total, offset + limit))} of ${number(total)}`),
    offset + limit < total && h("a", { id: "next", href: to(offset + limit) }, "next →"));
}

// j and k go down and up, o or Enter opens, x chooses, / searches, n and p turn the page.
function keys(rows) {
  let at = -1;
  document.onkeydown = (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { j: 1, k: -1 }[event.key];
    if (step && rows.length) {
      at = Math.max(0, Math.min(rows.length - 1, at + step));
      rows.forEach((row, i) => row.classList.toggle("at", i === at));
      rows[at].focus();
    } else if ((event.key === "o" || (event.key === "Enter" && event.target === rows[at])) && at >= 0) go(rows[at].dataset.href, false);
    else if (event.key === "x" && at >= 0) rows[at].querySelector("input")?.click();
    else if (event.key === "/") document.getElementById("f-q")?.focus();
    else if (event.key === "n") document.getElementById("next")?.click();
    else if (event.key === "p") document.getElementById("previous")?.click();
    else return;
    event.preventDefault();
  };
}

export async function groups(parameters, again) {
  const source = parameters.get("source");
  const [found, counts, columns] = await Promise.all([ask("groups", parameters), ask("samples", changed(parameters, { limit: 1, sort: "" })), ask("columns", { source })]);
  if (found.loading) setTimeout(again, 700);
  const sort = parameters.get("sort") ?? "";
  const heading = (c, word) => h("th", {}, h("a", { href: address(changed(parameters, { sort: sort === `-${c}` ? c : sort === c ? "" : `-${c}` })) }, word, sort === `-${c}` ? " ↓" : sort === c ? " ↑" : ""));
  const rows = found.rows.map((r) => {
    const href = address({ view: "group", source, step: r.step, task: r.task_id, group: r.group });
    return h("tr", { "data-href": href, tabindex: -1 }, h("td", { class: "text" }, h("a", { class: "one", href }, r.prompt || r.task_id), h("div", { class: "one soft" }, r.task_id)),
      h("td", { "data-name": "step" }, number(r.step)), h("td", { "data-name": "right" }, share(r)), [["samples", r.samples], ["mean reward", r.reward], ["spread", r.spread], ["length", r.length]].map(([n, v]) => h("td", { "data-name": n }, number(v))));
  });
  keys(rows);
  return [h("h1", {}, "Groups"), tabs(parameters, "groups"), filters(parameters, counts, columns),
    h("p", { class: "bar" }, h("strong", {}, `${number(found.total)} groups`), " ", h("span", { class: "soft" }, "all responses to one prompt at one step")),
    h("div", { class: "scroll card" }, h("table", { class: "samples" }, h("thead", {}, h("tr", {}, h("th", { class: "text" }, "prompt"), heading("step", "step"), heading("rate", "right"), heading("samples", "samples"), heading("reward", "mean reward"), heading("spread", "spread"), heading("length", "length"))), h("tbody", {}, rows))),
    pages(parameters, found.total)];
}

function share(r) {
  return h("span", { class: "share", title: `${r.right} right, ${r.abstained} abstained of ${r.samples}` }, h("span", { class: "track", "aria-hidden": "true" }, h("i", { vars: { "--share": r.samples ? r.right / r.samples : 0 } })), ` ${r.right}/${r.samples - r.abstained}`);
}

export async function task(parameters) {
  const id = parameters.get("task"), sources = parameters.getAll("source"), everything = await ask("home");
  const found = await Promise.all(sources.map((source) => ask("steps", { source, "is.task_id": id })));
  const first = await ask("samples", { source: sources[0], "is.task_id": id, limit: 1 });
  const lines = (value) => Object.fromEntries(sources.map((s, i) => [s, found[i].map((r) => [r.step, value(r)]).filter(([, y]) => y !== null)]));
  const others = everything.runs.filter((r) => r.rollouts && !sources.includes(r.id));
  return [
    h("h1", {}, `Task ${id}`),
    first.rows[0] && h("pre", { class: "prompt", tabindex: 0 }, first.rows[0].prompt),
    h("div", { class: "charts" }, [["share right", (r) => (r.samples > r.abstained ? r.right / (r.samples - r.abstained) : null)], ["mean reward", (r) => r.reward], ["mean length", (r) => r.length]].map(([name, value]) => chart(name, lines(value)))),
    others.length > 0 && h("p", { class: "small" }, "Beside it: ", others.slice(0, 12).map((r) => [link({ view: "task", task: id, source: [...sources, r.id] }, r.id), " "])),
    sources.map((source, i) => [h("h2", {}, source), h("p", {}, link({ view: "samples", source, "is.task_id": id }, "All samples of it")),
      found[i].length ? h("div", { class: "card" }, table(["step", "right", "samples", "mean reward", "mean length"], found[i].slice(-200).map((r) => [link({ view: "group", source, step: r.step, task: id }, number(r.step)), share(r), number(r.samples), number(r.reward), number(r.length)]))) : h("p", { class: "soft" }, "It was not asked here.")]),
  ];
}
