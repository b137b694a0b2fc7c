// What the large view of a head has around its maps: its buttons and keys, roles, statistics.
import { roleStripe } from "./colour";
import { LoadedReport } from "./data";
import { element, number } from "./dom";
import { change, state } from "./state";

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

export function numbersTable(loaded: LoadedReport, head: number): HTMLElement | null {
  const { models, statistics } = loaded.report;
  if (statistics.length === 0) return null;
  const rows = statistics.filter((row) => !row.over).map((row) =>
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
