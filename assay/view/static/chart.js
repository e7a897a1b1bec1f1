// Curves of one quantity: a figure with a name, the values at the pointer, and the same as a table.
import { h, number, svg, table } from "./dom.js";

const W = 460, H = 190, RIGHT = 10, TOP = 10, BOTTOM = 24;
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 2", "10 4"];

// lines: {name: [[x, y, low?, high?], ...]}
export function chart(title, lines, { bounds = null } = {}) {
  const named = Object.entries(lines).filter(([, points]) => points.length);
  if (!named.length) return null;
  const every = named.flatMap(([, points]) => points), xs = every.map((p) => p[0]), ys = every.flatMap((p) => [p[1], p[2] ?? p[1], p[3] ?? p[1]]);
  let [x0, x1] = [Math.min(...xs), Math.max(...xs)], [y0, y1] = bounds ?? [Math.min(...ys), Math.max(...ys)];
  if (x0 === x1) [x0, x1] = [x0 - 1, x1 + 1];
  // Values that rounding alone tells apart are one value: between them there is no tick to be drawn.
  if (y1 - y0 <= 1e-12 * Math.max(Math.abs(y0), Math.abs(y1))) [y0, y1] = [y0 - (Math.abs(y0) || 1) / 10, y1 + (Math.abs(y1) || 1) / 10];
  const marks = ticks(y0, y1), LEFT = Math.max(46, 14 + 6.6 * Math.max(...marks.map((y) => number(y).length)));
  const X = (x) => LEFT + ((x - x0) / (x1 - x0)) * (W - LEFT - RIGHT), Y = (y) => H - BOTTOM - ((y - y0) / (y1 - y0)) * (H - TOP - BOTTOM);
  const grid = marks.map((y) => [svg("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: Y(y), y2: Y(y) }), svg("text", { class: "tick", x: LEFT - 6, y: Y(y) + 4, "text-anchor": "end" }, number(y))]);
  const below = ticks(x0, x1).filter((x) => Number.isInteger(x)).map((x) => svg("text", { class: "tick", x: X(x), y: H - 6, "text-anchor": "middle" }, number(x)));
  const drawn = named.map(([, points], i) => {
    const dash = DASHES[Math.floor(i / 6) % 6] || DASHES[i % 6];
    const path = points.map((p, k) => `${k ? "L" : "M"}${X(p[0]).toFixed(1)} ${Y(p[1]).toFixed(1)}`).join("");
    const whiskers = points.filter((p) => p.length > 2 && p[2] !== undefined).map((p) => svg("line", { class: "whisker", x1: X(p[0]), x2: X(p[0]), y1: Y(p[2]), y2: Y(p[3]) }));
    const dots = points.length <= 40 ? points.map((p) => svg("circle", { class: "point", cx: X(p[0]), cy: Y(p[1]), r: 2.6 })) : [];
    return svg("g", { class: `c${(i % 6) + 1}` }, svg("path", { class: "line", d: path, "stroke-dasharray": dash }), whiskers, dots);
  });
  const cursor = svg("line", { class: "cursor", x1: 0, x2: 0, y1: TOP, y2: H - BOTTOM }), told = h("div", { class: "told small", "aria-hidden": "true" }, " ");
  const picture = svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${named.map(([n, p]) => `${n} from ${number(p[0][1])} to ${number(p.at(-1)[1])}`).join("; ")}` }, grid, below, drawn, cursor);
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect(), x = x0 + (((event.clientX - box.left) / box.width) * W - LEFT) / (W - LEFT - RIGHT) * (x1 - x0);
    const near = named.map(([n, points]) => [n, points.reduce((a, b) => (Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a))]);
    cursor.setAttribute("x1", X(near[0][1][0])); cursor.setAttribute("x2", X(near[0][1][0])); cursor.classList.add("on");
    told.textContent = near.map(([n, p]) => `${named.length > 1 ? `${n}: ` : ""}${number(p[1])} at ${number(p[0])}`).join("  ·  ");
  });
  picture.addEventListener("pointerleave", () => { cursor.classList.remove("on"); told.textContent = " "; });
  const legend = named.length > 1 && h("div", { class: "legend" }, named.map(([n], i) => h("span", { class: `key c${(i % 6) + 1}` }, h("i"), n)));
  const numbers = h("details", { class: "small", ontoggle: () => {
    if (numbers.open && numbers.childElementCount === 1) numbers.append(table(["at", ...named.map(([n]) => n)], [...new Set(xs)].sort((a, b) => a - b).map((x) => [number(x), ...named.map(([, p]) => number(p.find((q) => q[0] === x)?.[1]))])));
  } }, h("summary", {}, "As a table"));
  return h("section", { class: "card" }, h("h3", {}, title), legend, picture, told, numbers);
}

function ticks(low, high, count = 4) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const out = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) out.push(Math.abs(t) < step * 1e-9 ? 0 : Number(t.toPrecision(12)));
  return out;
}
