// Which view the address names; links within the page change it without loading the page anew.
import { forgetAsked, h } from "./dom.js";
import { home, run, runs } from "./runs.js";
import { groups, samples, task } from "./samples.js";
import { group, sample } from "./group.js";
import { between, evaluation, record } from "./evaluation.js";

const views = { home, run, runs, samples, groups, group, sample, task, evaluation, between, record };
const main = document.getElementById("main");
let drawn = 0;

async function show({ keep = false } = {}) {
  const mine = ++drawn, parameters = new URLSearchParams(location.search), name = parameters.get("view") ?? "home";
  forgetAsked();
  document.onkeydown = null;
  main.setAttribute("aria-busy", "true");
  try {
    const view = Object.hasOwn(views, name) ? views[name] : null;
    if (!view) throw new Error(`there is no view ${name}`);
    const shown = await view(parameters, () => mine === drawn && show({ keep: true }));
    if (mine !== drawn) return;
    const focus = keep ? document.activeElement?.id : null;
    main.replaceChildren(...[shown].flat(Infinity).filter(Boolean));
    document.title = `${main.querySelector("h1")?.textContent ?? name} · assay view`;
    if (focus) document.getElementById(focus)?.focus();
    else if (!keep) window.scrollTo(0, 0);
  } catch (error) {
    if (mine !== drawn || error.name === "AbortError") return;
    main.replaceChildren(h("h1", {}, "This cannot be shown"), h("p", { role: "alert" }, error.message), h("p", {}, h("a", { href: "/" }, "Everything there is")));
  }
  where(parameters);
  main.removeAttribute("aria-busy");
}

function where(parameters) {
  const path = document.getElementById("path"), source = parameters.get("source") ?? parameters.get("id");
  path.replaceChildren(...(source ? [h("span", {}, source)] : []));
}

export function go(href, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", href);
  return show({ keep: replace });
}

document.addEventListener("click", (event) => {
  const a = event.target.closest?.("a[href^='/']");
  if (!a || a.hasAttribute("download") || a.getAttribute("href").startsWith("/api/") || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(a.getAttribute("href"));
});
document.addEventListener("go", (event) => go(event.detail.href, event.detail));
window.addEventListener("popstate", () => show());
show();
