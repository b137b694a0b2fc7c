// A graph of features that can be moved, enlarged, pinned and grouped: tokens from left to right, layers
// from the bottom to what is predicted.
import { visible } from "../data";
import { element } from "../dom";

export interface GraphNode {
  node: number;
  kind: string;
  name: string;
  layer: number | null;
  position: number;
  activation: number | null;
  influence: number;
}
export interface GraphEdge {
  source: number;
  target: number;
  effect: number;
  influence: number;
  heads: { head: string; loading: number }[] | null;
}
export interface Graph {
  model: string;
  tokens: string[];
  nodes: GraphNode[];
  edges: GraphEdge[];
}

// Pinned nodes that are shown as one.
export interface Group {
  name: string;
  nodes: number[];
}

interface Drawn {
  label: string;
  nodes: GraphNode[];
  x: number;
  y: number;
}

const kColumn = 66;
const kRow = 26;
const kLeft = 10;
const kEdges = 250; // drawn, the most influential

function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>, text = ""): SVGElementTagNameMap[K] {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  if (text) made.textContent = text;
  return made;
}

// The wheel enlarges around the pointer, dragging moves.
function zoomable(picture: SVGSVGElement, width: number, height: number): void {
  let [x, y, w, h] = [0, 0, width, height];
  const show = (): void => picture.setAttribute("viewBox", `${x} ${y} ${w} ${h}`);
  picture.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) return; // the page scrolls
    event.preventDefault();
    const factor = Math.min(width / w, Math.max(0.1 * (width / w), Math.exp(event.deltaY / 400)));
    const box = picture.getBoundingClientRect();
    const [u, v] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    [x, y] = [x + u * w * (1 - factor), y + v * h * (1 - factor)];
    [w, h] = [w * factor, h * factor];
    show();
  }, { passive: false });
  let from: { x: number; y: number } | null = null;
  picture.addEventListener("pointerdown", (event) => {
    if (event.target === picture) from = { x: event.clientX, y: event.clientY };
  });
  picture.addEventListener("pointermove", (event) => {
    if (!from) return;
    const scale = w / picture.getBoundingClientRect().width;
    [x, y] = [x - (event.clientX - from.x) * scale, y - (event.clientY - from.y) * scale];
    from = { x: event.clientX, y: event.clientY };
    show();
  });
  for (const end of ["pointerup", "pointerleave"] as const) picture.addEventListener(end, () => (from = null));
  show();
}

export interface GraphOptions {
  graph: Graph;
  most: number; // nodes, the most influential; pinned ones are shown in any case
  pins: number[];
  groups: Group[];
  pin: (nodes: number[]) => void; // or take the pins away
}

// Where nodes are drawn: those of one token and layer beside each other, groups in the middle of theirs.
function layOut({ graph, most, pins, groups }: GraphOptions): { drawn: Drawn[]; width: number; height: number } {
  const grouped = groups.flatMap(({ nodes }) => nodes);
  const ranked = [...graph.nodes].sort((a, b) => b.influence - a.influence);
  const shown = graph.nodes.filter((node) => node.kind === "target" || pins.includes(node.node) || grouped.includes(node.node) || ranked.indexOf(node) < most);
  const layers = Math.max(...graph.nodes.map(({ layer }) => layer ?? 0)) + 2;
  const rowOf = ({ kind, layer }: GraphNode): number => (kind === "embedding" ? 0 : (layer ?? 0) + 1);
  const places = new Map<string, GraphNode[]>();
  for (const node of shown) {
    const key = `${node.position} ${rowOf(node)}`;
    places.set(key, [...(places.get(key) ?? []), node]);
  }
  const height = layers * kRow + 66;
  const single: Drawn[] = [...places.values()].flatMap((nodes) =>
    nodes.map((node, n) => ({ label: node.name, nodes: [node], x: kLeft + node.position * kColumn + 6 + (n + 0.5) * ((kColumn - 12) / nodes.length),
      y: height - 40 - rowOf(node) * kRow })));
  const drawn = single.filter(({ nodes }) => !grouped.includes(nodes[0]!.node));
  for (const { name, nodes } of groups) {
    const own = single.filter((one) => nodes.includes(one.nodes[0]!.node));
    if (own.length === 0) continue;
    const mean = (of: (one: Drawn) => number): number => own.reduce((sum, one) => sum + of(one), 0) / own.length;
    drawn.push({ label: name, nodes: own.map((one) => one.nodes[0]!), x: mean(({ x }) => x), y: mean(({ y }) => y) });
  }
  return { drawn, width: kLeft + graph.tokens.length * kColumn + 60, height };
}

export function featureGraph(options: GraphOptions): HTMLElement {
  const { graph, pins, pin } = options;
  const { drawn, width, height } = layOut(options);
  const picture = svg("svg", { width: "100%", height: Math.min(height, 620), class: "features", role: "group", "aria-label": `graph of features of ${graph.model}` });
  const at = new Map<number, Drawn>();
  for (const one of drawn) for (const { node } of one.nodes) at.set(node, one);
  const edges = graph.edges
    .filter(({ source, target }) => at.has(source) && at.has(target) && at.get(source) !== at.get(target))
    .sort((a, b) => Math.abs(b.influence) - Math.abs(a.influence))
    .slice(0, kEdges);
  const most = Math.max(...edges.map(({ influence }) => Math.abs(influence)), 1e-9);
  const touched = (one: Drawn): boolean => one.nodes.some(({ node }) => pins.includes(node));
  for (const edge of edges) {
    const [from, to] = [at.get(edge.source)!, at.get(edge.target)!];
    const strong = touched(from) || touched(to);
    const line = svg("line", { x1: from.x, y1: from.y, x2: to.x, y2: to.y, class: `edge ${edge.effect < 0 ? "negative" : "positive"}${strong ? " strong" : ""}`,
      "stroke-width": 0.5 + 3.5 * Math.sqrt(Math.abs(edge.influence) / most) });
    line.append(svg("title", {}, `${from.label} \u2192 ${to.label}: ${edge.effect.toFixed(3)}${edge.heads ? `, by ${edge.heads.map(({ head, loading }) => `${head} ${loading.toFixed(3)}`).join(", ")}` : ""}`));
    picture.append(line);
  }
  for (const one of drawn) {
    const [first] = one.nodes;
    const ids = one.nodes.map(({ node }) => node);
    const pinned = touched(one);
    const dot = svg("circle", { cx: one.x, cy: one.y, r: one.nodes.length > 1 ? 9 : 5, class: `node ${first!.kind}${pinned ? " pinned" : ""}`, tabindex: 0, role: "button",
      "aria-pressed": String(pinned), "aria-label": `${one.label} at ${visible(graph.tokens[first!.position] ?? "")}`, "data-node": ids.join("+") });
    dot.append(svg("title", {}, `${one.label} at \u201c${visible(graph.tokens[first!.position] ?? "")}\u201d${first!.activation === null ? "" : `, active ${first!.activation.toFixed(2)}`}, influence ${first!.influence.toFixed(3)}`));
    dot.addEventListener("click", () => pin(ids));
    dot.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") event.preventDefault(), pin(ids);
    });
    picture.append(dot);
    if (pinned || one.nodes.length > 1 || first!.kind === "target") picture.append(svg("text", { x: one.x + 8, y: one.y - 6 }, one.label));
  }
  graph.tokens.forEach((token, n) => picture.append(svg("text", { x: kLeft + n * kColumn + kColumn / 2, y: height - 12, "text-anchor": "middle", class: "word" }, visible(token))));
  zoomable(picture, width, height);
  const box = element("div", { class: "scroll" });
  box.append(picture);
  return box;
}
