// One head, large: its map in each model and their difference, as weights, scores, gate or weighted by
// values; what it reads and what it writes. A click on a cell switches that edge off.
import { Rgb, differenceColour, weightColour } from "../colour";
import { LoadedReport, visible } from "../data";
import { closeAndStep, headButtons, numbersTable, roleLine } from "../detail";
import { element, number, scrolled } from "../dom";
import { Cell, LargeMap } from "../large_map";
import { ramp } from "../legend";
import { change, state, subscribe } from "../state";
import { HeadNumbers, Run, Source, TokenEffect } from "../source";
import { isOff, toggle } from "../changes";
import { place } from "../place";

type Kind = "weights" | "scores" | "gate" | "value-weighted";
const kKinds: [Kind, string][] = [
  ["weights", "weights"], ["scores", "scores"], ["gate", "gate"], ["value-weighted", "weights \u00d7 values"],
];

type Numbers = (query: number, key: number) => number | null;

const at = (query: number, key: number): number => (query * (query + 1)) / 2 + key;

// The numbers of a kind, and what they are divided by for their colour; scores have both signs.
function valuesOf(head: HeadNumbers, kind: Kind): Numbers {
  if (kind === "scores") return (i, j) => head.scores?.[at(i, j)] ?? null;
  if (kind === "gate") return (i, j) => (head.gate ? head.gate[at(i, j)]! : 1);
  if (kind === "weights") return (i, j) => head.weights[at(i, j)]!;
  const norms = head.value_norms ?? head.tokens.map(() => 1);
  const most = Math.max(...norms) || 1;
  return (i, j) => (head.weights[at(i, j)]! * norms[j]!) / most;
}

function largest(size: number, values: Numbers): number {
  let most = 0;
  for (let i = 0; i < size; ++i) for (let j = 0; j <= i; ++j) most = Math.max(most, Math.abs(values(i, j) ?? 0));
  return most || 1;
}

// The kinds of numbers that there are of a head.
function kindsOf(heads: HeadNumbers[]): Kind[] {
  const some = (of: (head: HeadNumbers) => unknown): boolean => heads.some((head) => of(head) !== null);
  return [
    "weights", ...(some(({ scores }) => scores) ? (["scores"] as const) : []), ...(some(({ gate }) => gate) ? (["gate"] as const) : []),
    ...(some(({ value_norms }) => value_norms) ? (["value-weighted"] as const) : []),
  ];
}

function readsTable(head: HeadNumbers): HTMLElement | null {
  if (head.reads === null) return null;
  const rows = head.reads.map(({ token, share, raises, lowers, own_effect, own_rank }) =>
    element("tr", {}, element("th", { scope: "row" }, visible(token)), element("td", {}, `${(100 * share).toFixed(0)} %`),
      element("td", {}, visible(raises)), element("td", {}, visible(lowers)),
      element("td", {}, `${own_effect >= 0 ? "+" : "\u2212"}${Math.abs(own_effect).toFixed(2)} (rank ${own_rank})`)));
  const top = ["reads", "share", "raises most", "lowers most", "itself"].map((name) => element("th", { scope: "col" }, name));
  return element("table", { class: "reads" }, element("caption", {}, "What it reads here, and what that writes to the logits for a weight of 1"),
    element("thead", {}, element("tr", {}, ...top)), element("tbody", {}, ...rows));
}

function writesTable(head: HeadNumbers): HTMLElement | null {
  if (head.writes === null) return null;
  const cell = (effect: TokenEffect | undefined): HTMLElement[] => [
    element("td", { class: "word" }, effect ? visible(effect.token) : ""),
    element("td", {}, effect ? effect.effect.toFixed(2) : ""),
  ];
  const { query, raises, lowers } = head.writes;
  const rows = raises.map((raised, n) => element("tr", {}, ...cell(raised), ...cell(lowers[n])));
  const top = ["raises", "logit", "lowers", "logit"].map((name) => element("th", { scope: "col" }, name));
  return element("table", { class: "writes" },
    element("caption", {}, `What it writes to the logits at \u201c${visible(head.tokens[query]!)}\u201d (${query})`),
    element("thead", {}, element("tr", {}, ...top)), element("tbody", {}, ...rows));
}

// The large maps of the models and of their difference, linked by the pointer.
function mapsRow(heads: HeadNumbers[], kind: Kind, name: string, clicked: ((cell: Cell) => void) | null): HTMLElement[] {
  const { tokens } = heads[0]!;
  const values = heads.map((head) => valuesOf(head, kind));
  const columns = heads.length === 2 ? 3 : 1;
  // Side by side where there is room, else below one another.
  const beside = window.innerWidth >= 900 ? columns : 1;
  const side = Math.max(170, Math.min(460, (window.innerWidth - 120) / beside - 120, window.innerHeight - 200));
  const readout = element("output", { class: "readout", id: "readout" });
  const rest = "Point at a cell: rows are queries, columns are keys. Bars: what each query gives, what each key gets." + (clicked ? " A click switches an edge off." : "");
  readout.textContent = rest;
  const large: LargeMap[] = [];
  const pointed = (cell: Cell | null): void => {
    for (const map of large) map.draw(cell);
    if (!cell) return void (readout.textContent = rest);
    const said = heads.map((head, m) => `${head.model} ${number(values[m]!(cell.query, cell.key), 4)}`);
    readout.textContent =
      `query ${cell.query} \u201c${visible(tokens[cell.query]!)}\u201d \u2192 ` +
      `key ${cell.key} \u201c${visible(tokens[cell.key]!)}\u201d: ${said.join(", ")}`;
  };
  const switched = clicked === null ? {} : { clicked, crossed: (i: number, j: number) => isOff(`${name}.pattern@${i}<-${j}`) };
  const most = kind === "scores" ? Math.max(...values.map((of) => largest(tokens.length, of))) : 1;
  const range = kind === "scores" ? `scores, \u00b1${number(most, 1)}` : `${kind === "gate" ? "gate" : "weights"}, 0 to 1`;
  const colour = (x: number | null): Rgb => (kind === "scores" ? differenceColour(x === null ? null : x / most) : weightColour(x ?? 0));
  heads.forEach((head, m) =>
    large.push(
      new LargeMap({ title: head.model, subtitle: range, name: `model-${m}`, tokens, side, pointed, ...switched,
        sums: { rows: head.row_sums, columns: head.column_sums }, colour: (i, j) => colour(values[m]!(i, j)) }),
    ),
  );
  if (heads.length === 2) {
    const less: Numbers = (i, j) => {
      const a = values[0]!(i, j);
      const b = values[1]!(i, j);
      return a === null || b === null ? null : b - a;
    };
    const scale = largest(tokens.length, less);
    large.push(
      new LargeMap({ title: "difference", subtitle: `${heads[1]!.model} less ${heads[0]!.model}, \u00b1${number(scale, 2)}`,
        name: "difference", tokens, side, pointed, ...switched, sums: { rows: [], columns: [] },
        colour: (i, j) => {
          const x = less(i, j);
          return differenceColour(x === null ? null : x / scale);
        } }),
    );
  }
  return [element("div", { class: "row" }, ...large.map((map) => map.root)), readout];
}

// `run` is what the models were asked last.
export function headView(loaded: LoadedReport, source: Source, run: () => Run, failed: (error: unknown) => void): HTMLElement {
  const dialog = element("dialog", { id: "detail", "aria-labelledby": "detail-title" });
  let kind: Kind = "weights";
  let query = -1; // where it writes; negative: at the last token
  let current = new AbortController();

  const kinds = (known: Kind[]): HTMLElement | null => {
    if (known.length === 1) return null;
    const buttons = kKinds.filter(([value]) => known.includes(value)).map(([value, text]) => {
      const made = element("button", { type: "button", "data-kind": value, "aria-pressed": String(kind === value) }, text);
      made.addEventListener("click", () => {
        kind = value;
        show();
      });
      return made;
    });
    return element("div", { class: "kinds", role: "group", "aria-label": "what the maps show" }, ...buttons);
  };
  const queries = ({ tokens, writes }: HeadNumbers): HTMLElement | null => {
    if (writes === null) return null;
    const select = element("select", { id: "query", "aria-label": "token at which it writes" },
      ...tokens.map((token, n) => element("option", { value: String(n) }, `${n} ${visible(token)}`)));
    select.value = String(query < 0 ? tokens.length - 1 : query);
    select.addEventListener("change", () => {
      query = Number(select.value);
      void ask();
    });
    return element("label", {}, "writes at ", select);
  };

  let heads: HeadNumbers[] = [];
  const show = (): void => {
    const { head } = state();
    if (head === null || heads.length === 0) return;
    const name = loaded.report.models[0]!.heads[head]!;
    const known = kindsOf(heads);
    if (!known.includes(kind)) kind = "weights";
    const off = source.changeable ? element("button", { type: "button", id: "toggle" }, isOff(name) ? "switch on" : "switch off") : null;
    off?.addEventListener("click", () => toggle(name));
    const switchEdge = ({ query: i, key: j }: Cell): void => toggle(`${name}.pattern@${i}<-${j}`);
    const parts = [
      headButtons(loaded, `Head ${name}`),
      roleLine(loaded, head),
      element("div", { class: "tools" }, kinds(known), ramp(), queries(heads[0]!), off),
      ...mapsRow(heads, kind, name, source.changeable ? switchEdge : null),
      numbersTable(loaded, head),
      ...(heads[0]!.reads === null ? [] : [element("div", { class: "row" }, ...heads.map((one) =>
        element("section", { class: "does", "aria-label": `what ${name} of ${one.model} reads and writes` },
          element("h3", {}, one.model),
          element("div", { class: "tables" }, ...[readsTable(one), writesTable(one)].flatMap((table) => (table ? [scrolled(table)] : []))))))]),
    ];
    const top = dialog.scrollTop;
    dialog.replaceChildren(...parts.filter((part) => part !== null));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = top;
    dialog.dataset["shown"] = `${name} ${kind} ${JSON.stringify(run())}`;
  };
  const ask = async (): Promise<void> => {
    current.abort();
    current = new AbortController();
    const { signal } = current;
    const { head } = state();
    if (head === null) return dialog.close();
    const { prompt } = run();
    if (prompt === "") return dialog.close();
    if (query >= loaded.prompt().tokens.length) query = -1;
    try {
      const found = await source.head(run(), loaded.report.models[0]!.heads[head]!, query, signal);
      if (signal.aborted) return;
      heads = found;
      show();
    } catch (error) {
      failed(error);
      if (!signal.aborted) change({ head: null }); // what it shows is of another run, and hides what is said
    }
  };
  subscribe((now, before) => {
    if (now.head !== before.head && now.head !== null && place().at !== null) query = place().at!;
    if (now.head !== before.head || (now.prompt !== before.prompt && now.head !== null)) void ask();
    else if (now.theme !== before.theme || now.marks !== before.marks) show();
  });
  closeAndStep(dialog, loaded);
  return dialog;
}
