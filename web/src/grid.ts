// The two panels of small maps, one button a head.
import { roleColour, roleStripe } from "./colour";
import { AttentionMap, LoadedReport, Model, headsInLayer } from "./data";
import { element } from "./dom";
import { state, subscribe } from "./state";
import { CanvasPainter, Painter } from "./thumbnail";

const kMostInRow = 20; // heads of a layer that fit side by side

type Clicked = (head: number, event: MouseEvent) => void;

// `places` are where the maps go, one a head, in `room`.
export type MakePainter = (places: HTMLElement[], room: HTMLElement) => Painter;

// The heads of a model that are shown, in their order.
export type Chosen = (model: number) => number[];

function byLayer(model: Model): number[] {
  return model.heads.map((_, head) => head);
}

export function byRole(model: Model): number[] {
  // Stable, so that heads of one role stay in the order of layers.
  return byLayer(model).sort((a, b) => model.roles[a]!.role.localeCompare(model.roles[b]!.role));
}

// The place of a head in the circuit that is marked, from 1; 0: it is not in it.
function rankOf(loaded: LoadedReport, model: number, label: string): number {
  return (loaded.report.tasks[state().task]?.heads[model]?.indexOf(label) ?? -1) + 1;
}

function same(a: number[], b: number[]): boolean {
  return a.length === b.length && a.every((head, n) => head === b[n]);
}

// One model's heads.
class Panel {
  readonly root: HTMLElement;
  private readonly maps = element("div", { class: "maps" });
  private readonly buttons: HTMLElement[];
  private readonly painter: Painter;
  private shown: number[] = [];

  constructor(
    private readonly loaded: LoadedReport,
    private readonly index: number,
    clicked: Clicked,
    painter: MakePainter,
  ) {
    const { model } = this;
    const places = model.heads.map(() => element("span", { class: "map" }));
    this.buttons = model.heads.map((label, head) => {
      const button = element(
        "button",
        { class: "head", type: "button", "data-model": String(index), "data-head": label },
        places[head]!,
        element("span", { class: "label" }, label),
        element("span", { class: "rank" }),
      );
      button.addEventListener("click", (event) => clicked(head, event));
      return button;
    });
    const facts = model.facts.flatMap((fact, n) => [n > 0 ? " \u00b7 " : null, element("span", {}, fact.join(" "))]);
    this.root = element(
      "section",
      { class: "panel", "aria-label": `heads of ${model.name}` },
      element("div", { class: "title" }, element("h2", {}, model.name), element("p", { class: "facts" }, ...facts)),
      element("div", { class: "room" }, this.maps),
    );
    this.maps.addEventListener("keydown", (event) => this.move(event));
    this.painter = painter(places, this.maps);
    this.mark();
  }

  private get model(): Model {
    return this.loaded.report.models[this.index]!;
  }

  // The heads that are there stay where they are, and what has the focus keeps it.
  arrange(heads: number[]): void {
    if (same(heads, this.shown)) return;
    this.shown = heads;
    const { model } = this;
    const inLayer = headsInLayer(model);
    const rows = inLayer <= kMostInRow && same(heads, byLayer(model));
    this.maps.classList.toggle("by-layer", rows);
    this.maps.style.setProperty("--heads", String(inLayer));
    this.maps.style.setProperty("--layers", String(model.layers.length));
    for (const button of this.buttons) button.remove();
    this.maps.append(...heads.map((head) => this.buttons[head]!));
    for (const button of this.buttons) button.tabIndex = -1;
    if (heads.length > 0) this.buttons[heads[0]!]!.tabIndex = 0;
  }

  // The arrow keys go from head to head, so that a panel is one stop of the tabulator.
  private move(event: KeyboardEvent): void {
    const buttons = this.shown.map((head) => this.buttons[head]!);
    const from = buttons.indexOf((event.target as Element).closest<HTMLElement>(".head")!);
    const inRow = buttons.filter(({ offsetTop }) => offsetTop === buttons[0]!.offsetTop).length;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -inRow, ArrowDown: inRow, Home: -from, End: buttons.length - 1 - from }[event.key];
    const to = by === undefined ? undefined : buttons[from + by];
    if (from < 0 || !to) return;
    event.preventDefault();
    buttons[from]!.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  }

  paint(maps: AttentionMap[]): void {
    this.painter.paint(this.shown, maps);
  }

  // Roles, and places in the circuit.
  mark(): void {
    const { model } = this;
    this.buttons.forEach((button, head) => {
      const label = model.heads[head]!;
      const { role, confidence } = model.roles[head]!;
      button.setAttribute("aria-label", `${label} of ${model.name}${role && `: ${role}`}`);
      button.title = role ? `${label} \u2013 ${role} (${confidence.toFixed(2)})` : label;
      // What is not known yet has no colour.
      button.style.cssText = role
        ? `--role: ${roleColour(role)}; --stripe: ${roleStripe(role)}`
        : "--role: transparent; --stripe: linear-gradient(transparent, transparent)";
      const rank = rankOf(this.loaded, this.index, label);
      button.classList.toggle("member", rank > 0);
      button.querySelector(".rank")!.textContent = rank > 0 ? String(rank) : "";
    });
  }
}

export function gridView(
  loaded: LoadedReport,
  clicked: Clicked,
  chosen: Chosen,
  painter: MakePainter = (places) => new CanvasPainter(places),
): HTMLElement {
  const panels = loaded.report.models.map((_, m) => new Panel(loaded, m, clicked, painter));
  const paint = (): void => {
    const maps = loaded.maps();
    if (maps.length === 0) return;
    panels.forEach((panel, m) => panel.arrange(chosen(m)));
    panels.forEach((panel, m) => panel.paint(maps[m]!));
  };
  subscribe((now, before) => {
    if (now.task !== before.task || now.marks !== before.marks) panels.forEach((panel) => panel.mark());
    if (now.prompt !== before.prompt || now.marks !== before.marks || now.theme !== before.theme) paint();
  });
  paint();
  return element("div", { class: "grid", id: "grid" }, ...panels.map(({ root }) => root));
}
