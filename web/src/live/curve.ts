// How much of a task's effect is there with the first k parts kept: a line a model, which grows while it
// is measured.
import { element } from "../dom";

const kWide = 460;
const kHigh = 220;
const kLeft = 40;
const kBottom = 34;

function svg(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.textContent = text;
  return made;
}

export function curveView(curves: Record<string, [number, number][]>, models: string[], level: number): HTMLElement {
  const all = Object.values(curves).flat();
  const most = Math.max(1, ...all.map(([kept]) => kept));
  const low = Math.min(0, ...all.map(([, effect]) => effect));
  const high = Math.max(1.05, ...all.map(([, effect]) => effect));
  // Small circuits are what one looks for: the square root of the number gives them room.
  const x = (kept: number): number => kLeft + Math.sqrt(kept / most) * (kWide - kLeft - 16);
  const y = (effect: number): number => 8 + ((high - effect) / (high - low)) * (kHigh - kBottom - 8);
  const picture = svg("svg", { width: kWide, height: kHigh, viewBox: `0 0 ${kWide} ${kHigh}`, class: "curve", role: "img",
    "aria-label": "explained effect by number of parts kept" });
  for (const effect of [0, 0.5, 1]) {
    picture.append(svg("line", { x1: kLeft, x2: kWide, y1: y(effect), y2: y(effect), class: "grid" }));
    picture.append(svg("text", { x: kLeft - 6, y: y(effect), "text-anchor": "end", "dominant-baseline": "central" }, `${100 * effect} %`));
  }
  picture.append(svg("line", { x1: kLeft, x2: kWide, y1: y(level), y2: y(level), class: "level" }));
  for (const kept of [0, 1, 4, 16, 64, most].filter((one, n, list) => one <= most && list.indexOf(one) === n))
    picture.append(svg("text", { x: x(kept), y: kHigh - kBottom + 14, "text-anchor": "middle" }, String(kept)));
  picture.append(svg("text", { x: (kLeft + kWide) / 2, y: kHigh - 4, "text-anchor": "middle" }, "parts kept"));
  for (const [label, points] of Object.entries(curves)) {
    const sorted = [...points].sort((a, b) => a[0] - b[0]);
    const path = sorted.map(([kept, effect], n) => `${n === 0 ? "M" : "L"}${x(kept).toFixed(1)} ${y(effect).toFixed(1)}`).join("");
    const m = Math.max(0, models.indexOf(label));
    picture.append(svg("path", { d: path, class: `line model-${m}` }));
    for (const [kept, effect] of sorted) picture.append(svg("circle", { cx: x(kept), cy: y(effect), r: 1.8, class: `model-${m}` }));
  }
  const figure = element("figure", {}, element("figcaption", {}, "Explained effect: ",
    ...models.map((name, m) => element("span", { class: `key model-${m}` }, `${name} `))));
  figure.append(picture);
  return figure;
}
