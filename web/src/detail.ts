// One head, large: its map in each model and their difference, with tokens and what the pointer is on.
import { differenceColour, roleStripe, weightColour } from "./colour";
import { AttentionMap, LoadedReport, visible } from "./data";
import { element, number } from "./dom";
import { Cell, LargeMap } from "./large_map";
import { ramp } from "./legend";
import { change, state, subscribe } from "./state";

// The largest absolute difference, so that small changes are seen; the scale is printed.
function largestDifference(a: AttentionMap, b: AttentionMap): number {
  let most = 0;
  for (let i = 0; i < a.size; ++i)
    for (let j = 0; j <= i; ++j) most = Math.max(most, Math.abs(b.at(i, j) - a.at(i, j)));
  return most;
}

export function step(loaded: LoadedReport, by: number): void {
  const { head } = state();
  const count = loaded.report.models[0]!.roles.length;
  if (head !== null) change({ head: (head + by + count) % count });
}

export function roleLine(loaded: LoadedReport, head: number): HTMLElement | null {
  if (loaded.report.roles.length === 0) return null;
  const parts = loaded.report.models.map((model) => {
    const { role, confidence } = model.roles[head]!;
    const dot = element("i", { class: "dot", style: `background: ${roleStripe(role)}` });
    return element("span", {}, dot, ` ${model.name}: ${role} (${confidence.toFixed(2)})`);
  });
  return element("p", { class: "roleline" }, ...parts);
}

function numbersTable(loaded: LoadedReport, head: number): HTMLElement | null {
  const { models, statistics } = loaded.report;
  if (statistics.length === 0) return null;
  const rows = statistics.map((row) =>
    element(
      "tr",
      {},
      element("th", {}, row.label),
      ...models.map((model) => element("td", {}, number(model.statistics[head]?.[row.name]))),
    ),
  );
  const top = element("tr", {}, element("th", {}), ...models.map((m) => element("th", {}, m.name)));
  return element("table", { class: "numbers" }, element("thead", {}, top), element("tbody", {}, ...rows));
}

export function headButtons(loaded: LoadedReport, title: string): HTMLElement {
  const make = (label: string, text: string, action: () => void): HTMLElement => {
    const made = element("button", { type: "button", "aria-label": label, title: label }, text);
    made.addEventListener("click", action);
    return made;
  };
  return element(
    "header",
    {},
    element("h2", { id: "detail-title" }, title),
    make("previous head (left arrow)", "\u2190", () => step(loaded, -1)),
    make("next head (right arrow)", "\u2192", () => step(loaded, 1)),
    make("close (Escape)", "\u00d7", () => change({ head: null })),
  );
}

// Escape, the backdrop and the arrow keys.
export function closeAndStep(dialog: HTMLDialogElement, loaded: LoadedReport): void {
  dialog.addEventListener("close", () => change({ head: null }));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) change({ head: null }); // the backdrop
  });
  document.addEventListener("keydown", (event) => {
    if (state().head === null) return;
    if (event.key === "ArrowLeft") step(loaded, -1);
    if (event.key === "ArrowRight") step(loaded, 1);
  });
}

export function detailView(loaded: LoadedReport): HTMLElement {
  const dialog = element("dialog", { id: "detail", "aria-labelledby": "detail-title" });
  const { models } = loaded.report;
  let drawing = 0;
  const draw = async (): Promise<void> => {
    const turn = ++drawing;
    const { head, prompt } = state();
    if (head === null) return dialog.close();
    const all = await loaded.maps(prompt);
    if (turn !== drawing) return;
    const maps = all.map((ofModel) => ofModel[head]!);
    const { tokens } = loaded.prompt(prompt);
    const columns = models.length === 2 ? 3 : 1;
    // Side by side where there is room, else below one another.
    const beside = window.innerWidth >= 900 ? columns : 1;
    const side = Math.max(180, Math.min(520, (window.innerWidth - 120) / beside - 90));
    const readout = element("output", { class: "readout", id: "readout" });
    const rest = "Point at a cell: rows are queries, columns are keys.";
    readout.textContent = rest;
    const large: LargeMap[] = [];
    const pointed = (cell: Cell | null): void => {
      for (const map of large) map.draw(cell);
      if (!cell) return void (readout.textContent = rest);
      const weights = models.map(
        (model, m) => `${model.name} ${number(maps[m]!.at(cell.query, cell.key), 4)}`,
      );
      readout.textContent =
        `query ${cell.query} \u201c${visible(tokens[cell.query]!)}\u201d \u2192 ` +
        `key ${cell.key} \u201c${visible(tokens[cell.key]!)}\u201d: ${weights.join(", ")}`;
    };
    models.forEach((model, m) =>
      large.push(
        new LargeMap({ title: model.name, subtitle: "weights 0 to 1", name: `model-${m}`, tokens, side, pointed,
          colour: (i, j) => weightColour(maps[m]!.at(i, j)) }),
      ),
    );
    if (models.length === 2) {
      const most = largestDifference(maps[0]!, maps[1]!) || 1;
      large.push(
        new LargeMap({ title: "difference", subtitle: `${models[1]!.name} less ${models[0]!.name}, \u00b1${number(most, 2)}`,
          name: "difference", tokens, side, pointed,
          colour: (i, j) => differenceColour((maps[1]!.at(i, j) - maps[0]!.at(i, j)) / most) }),
      );
    }
    const parts = [
      headButtons(loaded, `Head ${models[0]!.heads[head]!}`),
      roleLine(loaded, head),
      element("div", { class: "row" }, ...large.map((map) => map.root)),
      readout,
      ramp(),
      numbersTable(loaded, head),
    ];
    dialog.replaceChildren(...parts.filter((part) => part !== null));
    if (!dialog.open) dialog.showModal();
  };
  subscribe((now, before) => {
    if (now.head !== before.head || now.prompt !== before.prompt || now.theme !== before.theme)
      void draw();
  });
  closeAndStep(dialog, loaded);
  return dialog;
}
