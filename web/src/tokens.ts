// The prompt's tokens as buttons. Pointing at one shows, in the small maps of all heads, its row (what
// it looks at) and its column (what looks at it), and says which heads look hardest from it.
import { LoadedReport, visible } from "./data";
import { element } from "./dom";
import { Look, cutByHead, isCut } from "./source";
import { subscribe } from "./state";

const kMostSaid = 3; // edges of each model
const kLeastSaid = 0.05;

interface Edge {
  head: number;
  key: number;
  weight: number;
}

// The strongest edge of every head from this query, the strongest heads first; none of heads that are off.
function edgesFrom({ maps, cut }: Look, names: string[], query: number): Edge[] {
  const cuts = cutByHead(names, cut);
  const edges = maps.map((map, head) => {
    let best: Edge = { head, key: 0, weight: 0 };
    for (let key = 0; key <= query; ++key)
      if (map.at(query, key) > best.weight && !isCut(cuts[head]!, query, key)) best = { head, key, weight: map.at(query, key) };
    return best;
  });
  return edges.filter((edge) => edge.weight >= kLeastSaid).sort((a, b) => b.weight - a.weight);
}

// `grid` gets the place of the token as variables of its style, which all maps follow at once.
export function tokensView(loaded: LoadedReport, grid: HTMLElement): HTMLElement {
  const line = element("div", { class: "tokens", "aria-label": "tokens of the prompt" });
  const readout = element("output", { class: "readout", id: "token-readout" });
  const rest = "Point at a token: its row and column are shown in every head.";

  const point = (token: number | null): void => {
    const { tokens } = loaded.prompt();
    grid.classList.toggle("pointed", token !== null);
    if (token === null) return void (readout.textContent = rest);
    grid.style.setProperty("--tokens", String(tokens.length));
    grid.style.setProperty("--token", String(token));
    const said = loaded.report.models.map((model, m) => {
      const edges = edgesFrom(loaded.looks[m]!, model.heads, token);
      const some = edges
        .slice(0, kMostSaid)
        .map((edge) => `${model.heads[edge.head]!} \u2192 ${visible(tokens[edge.key]!)} ${edge.weight.toFixed(2)}`);
      return `${model.name} (${edges.length} heads): ${some.join(", ") || "nothing"}`;
    });
    readout.title = readout.textContent =
      `\u201c${visible(tokens[token]!)}\u201d looks at \u2013 ${said.join(" \u00b7 ")}`;
  };

  const buttonOf = (token: string, n: number): HTMLElement => {
    const button = element("button", { type: "button", class: "token", "data-token": String(n) }, visible(token));
    button.addEventListener("pointerenter", () => point(n));
    button.addEventListener("pointerleave", () => point(null));
    button.addEventListener("focus", () => point(n));
    button.addEventListener("blur", () => point(null));
    return button;
  };
  // A text mostly grows at its end: the buttons of what stood there before stay.
  let drawn: string[] = [];
  const draw = (): void => {
    const { tokens } = loaded.prompt();
    let same = 0;
    while (same < drawn.length && same < tokens.length && drawn[same] === tokens[same]) ++same;
    while (line.children.length > same) line.lastElementChild!.remove();
    line.append(...tokens.slice(same).map((token, n) => buttonOf(token, same + n)));
    drawn = tokens;
    point(null);
  };
  subscribe((now, before) => {
    if (now.prompt !== before.prompt) draw();
  });
  draw();
  return element("div", { class: "prompt" }, line, readout);
}
