// A sentence with arcs between its tokens: the first model's above, the second's below.
import { visible } from "../data";
import { element } from "../dom";
import { Look, cutByHead, isCut } from "../source";

export interface CarryingHead {
  name: string;
  weight: number;
}

// What one token takes from another, by the heads that do it, the strongest first.
export interface Edge {
  query: number;
  key: number;
  heads: CarryingHead[];
}

export const strength = (edge: Edge): number => edge.heads[0]!.weight;

// The edges of a token, both ways, of heads from `first` to before `end` that carry at least `least`:
// a head that is off carries nothing, whatever its weights.
export function edgesOf({ maps, cut }: Look, names: string[], token: number, first: number, end: number, least: number): Edge[] {
  const edges: Edge[] = [];
  const cuts = cutByHead(names, cut);
  const add = (query: number, key: number): void => {
    const heads: CarryingHead[] = [];
    for (let h = first; h < end; ++h) {
      const weight = maps[h]!.at(query, key);
      if (weight > 0 && weight >= least && !isCut(cuts[h]!, query, key)) heads.push({ name: names[h]!, weight });
    }
    if (heads.length > 0) edges.push({ query, key, heads: heads.sort((a, b) => b.weight - a.weight) });
  };
  for (let key = 0; key <= token; ++key) add(token, key);
  for (let query = token + 1; query < maps[0]!.size; ++query) add(query, token);
  return edges;
}

const kLine = 15; // font size
const kGap = 10; // between tokens
const kHigh = 150; // the highest arc
const rise = (distance: number): number => 10 + 0.24 * distance;

function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>, ...children: Node[]): SVGElementTagNameMap[K] {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

let measuring: CanvasRenderingContext2D | null = null;
function widthOf(text: string): number {
  measuring ??= document.createElement("canvas").getContext("2d")!;
  measuring.font = `${kLine}px system-ui, sans-serif`;
  return measuring.measureText(text).width;
}

// Brings the chosen token of arcs that are in the page into the middle of what is seen of them.
export function showChosen(box: HTMLElement): void {
  const middle = Number(box.querySelector(".chosen")?.getAttribute("x") ?? 0);
  box.scrollLeft = middle - box.clientWidth / 2;
}

export interface ArcsOptions {
  tokens: string[];
  models: { name: string; edges: Edge[] }[];
  chosen: number; // token
  colour?: number; // of the first model; else its own
  fresh?: number; // tokens from here on are new
  chose: (token: number) => void;
  clicked?: (model: number, edge: Edge) => void;
}

export function arcs({ tokens, models, chosen, colour = 0, fresh = Infinity, chose, clicked }: ArcsOptions): HTMLElement {
  const shown = tokens.map(visible);
  let x = kGap;
  const middles = shown.map((text) => {
    const width = widthOf(text);
    const middle = x + width / 2;
    x += width + kGap;
    return middle;
  });
  // As high as the longest arc needs, within reason.
  const height = (edges: Edge[]): number =>
    Math.min(kHigh, Math.max(14, ...edges.map(({ query, key }) => rise(middles[query]! - middles[key]!))));
  const highs = models.map(({ edges }) => height(edges));
  const base = highs[0]! + 6; // top of the line of tokens
  const line = kLine + 8;
  const total = base + line + (highs[1] ?? 0) + 6; // one model has nothing below
  const drawn: Node[] = [];
  models.forEach(({ name, edges }, m) => {
    const y = m === 0 ? base : base + line;
    const up = m === 0 ? -1 : 1;
    for (const edge of edges) {
      const { query, key } = edge;
      const [from, to] = [middles[key]!, middles[query]!];
      const bend = Math.min(highs[m]!, rise(to - from)) * 1.3 * up;
      const path = query === key ? `M${to - 5} ${y}c-9 ${20 * up} 19 ${20 * up} 10 0` : `M${from} ${y}C${from} ${y + bend} ${to} ${y + bend} ${to} ${y}`;
      const said =
        `${name}: \u201c${shown[query]!}\u201d looks at \u201c${shown[key]!}\u201d \u2013 ` +
        edge.heads.slice(0, 6).map((head) => `${head.name} ${head.weight.toFixed(2)}`).join(", ");
      const arc = svg("path", { d: path, class: `arc model-${m + colour}${query === chosen ? "" : " out"}`, "stroke-width": 1 + 3.5 * strength(edge),
        "stroke-opacity": 0.25 + 0.75 * strength(edge), "data-edge": `${query}<-${key}`, "data-model": m });
      const title = svg("title", {});
      title.textContent = said;
      arc.append(title);
      if (clicked) arc.addEventListener("click", () => clicked(m, edge));
      drawn.push(arc);
    }
  });
  shown.forEach((text, n) => {
    const word = svg("text", { x: middles[n]!, y: base + line / 2, class: `word${n === chosen ? " chosen" : ""}${n >= fresh ? " fresh" : ""}`, "font-size": kLine,
      "text-anchor": "middle", "dominant-baseline": "central", tabindex: 0, role: "button", "data-token": n, "aria-pressed": String(n === chosen) });
    word.textContent = text;
    word.addEventListener("click", () => chose(n));
    word.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") event.preventDefault(), chose(n);
    });
    drawn.push(word);
  });
  const picture = svg("svg", { width: Math.ceil(x), height: Math.ceil(total), viewBox: `0 0 ${Math.ceil(x)} ${Math.ceil(total)}`,
    class: "arcs", role: "group", "aria-label": "arcs between tokens" }, ...drawn);
  const box = element("div", { class: "scroll" });
  box.append(picture);
  return box;
}
