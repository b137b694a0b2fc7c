// The tab of one token: where its information comes from and where it goes, as arcs over the sentence.
import { LoadedReport, headsInLayer, visible } from "../data";
import { element } from "../dom";
import { Source } from "../source";
import { subscribe } from "../state";
import { Edge, arcs, edgesOf, showChosen, strength } from "./arcs";
import { toggleAll } from "../changes";
import { go, keepTo, onPlace, place } from "../place";
import { View } from "./tabs";

const kRows = 12; // of a table

function switched(edge: Edge): void {
  toggleAll(edge.heads.map(({ name }) => `${name}.pattern@${edge.query}<-${edge.key}`));
}

function table(title: string, edges: Edge[], tokens: string[], other: (edge: Edge) => number, changeable: boolean): HTMLElement {
  const rows = edges.slice(0, kRows).map((edge) => {
    const off = element("button", { type: "button", class: "chip" }, "switch");
    off.title = "switch these edges off or on, in both models";
    off.addEventListener("click", () => switched(edge));
    const heads = edge.heads.slice(0, 4).map(({ name, weight }) => `${name} ${weight.toFixed(2)}`);
    const more = edge.heads.length - heads.length;
    return element("tr", {}, element("th", { scope: "row" }, `${visible(tokens[other(edge)]!)} (${other(edge)})`),
      element("td", { class: "word" }, heads.join(", ") + (more > 0 ? ` and ${more} more` : "")), changeable ? element("td", {}, off) : null);
  });
  const left = edges.length - rows.length;
  return element("table", { class: "edges" },
    element("caption", {}, edges.length === 0 ? `${title}: nothing` : `${title}${left > 0 ? ` (the strongest ${kRows} of ${edges.length})` : ""}`),
    element("tbody", {}, ...rows));
}

function slider(id: string, label: string, most: number, step: number): { root: HTMLElement; input: HTMLInputElement; said: HTMLElement } {
  const input = element("input", { type: "range", id, min: "0", max: String(most), step: String(step) });
  const said = element("output", { for: id });
  return { root: element("label", {}, `${label} `, input, " ", said), input, said };
}

export function tokensArcView(loaded: LoadedReport, { changeable }: Source): View {
  const { layers } = loaded.report.models[0]!;
  keepTo({ layers: layers.length });
  const layer = slider("layer", "layer", layers.length, 1); // 0: all of them
  const least = slider("least", "edges of at least", 0.95, 0.01);
  const body = element("div", { id: "arcs" });
  layer.input.addEventListener("input", () => go({ layer: layer.input.value === "0" ? null : Number(layer.input.value) - 1 }));
  least.input.addEventListener("input", () => go({ least: Math.max(0.01, Number(least.input.value)) }));

  const draw = (): void => {
    const { tokens } = loaded.prompt();
    if (tokens.length === 0) return body.replaceChildren();
    const now = place();
    const chosen = now.at !== null && now.at < tokens.length ? now.at : tokens.length - 1;
    const one = now.layer;
    layer.input.value = String(one === null ? 0 : one + 1);
    layer.said.textContent = one === null ? "all" : layers[one]!;
    least.input.value = String(now.least);
    least.said.textContent = `${Math.round(100 * now.least)} %`;
    const models = loaded.report.models.map((model, m) => {
      const inLayer = headsInLayer(model);
      const [first, end] = one === null ? [0, model.heads.length] : [one * inLayer, (one + 1) * inLayer];
      return { name: model.name, edges: edgesOf(loaded.looks[m]!, model.heads, chosen, first, end, now.least) };
    });
    const word = `\u201c${visible(tokens[chosen]!)}\u201d (${chosen})`;
    const picture = arcs({ tokens, models, chosen, chose: (at) => go({ at }), ...(changeable ? { clicked: (_: number, edge: Edge) => switched(edge) } : {}) });
    body.replaceChildren(
      element("p", { class: "facts" }, models.map(({ name }, m) => `${name} ${m === 0 ? "above" : "below"}`).join(", "),
        " \u00b7 thick arcs carry much; full ones bring something to the token, dashed ones take it on \u00b7 click a token" + (changeable ? ", or an arc to switch it off" : "") +
        (loaded.looks.some(({ cut }) => cut.length > 0) ? " \u00b7 heads have no arcs where they are off" : "")),
      picture,
      element("div", { class: "row" }, ...models.map(({ name, edges }) => {
        const sorted = [...edges].sort((a, b) => strength(b) - strength(a));
        return element("section", { class: "does" }, element("h3", {}, name),
          table(`${word} takes from`, sorted.filter(({ query }) => query === chosen), tokens, ({ key }) => key, changeable),
          table(`${word} gives to`, sorted.filter(({ query }) => query !== chosen), tokens, ({ query }) => query, changeable));
      })),
    );
    showChosen(picture);
  };
  const seen = (): boolean => place().view === "tokens";
  onPlace((now, before) => {
    if (seen() && (now.at !== before.at || now.layer !== before.layer || now.least !== before.least)) draw();
  });
  subscribe((now, before) => {
    if (seen() && now.theme !== before.theme) draw();
  });
  return { id: "tokens", label: "Tokens", root: element("div", {}, element("div", { class: "above" }, layer.root, least.root), body), update: draw };
}
