// The two panels of small maps, one button a head.
import { roleColour, roleStripe, weightPixel } from "./colour";
import { AttentionMap, LoadedReport, Model, headsInLayer } from "./data";
import { element, sharpCanvas } from "./dom";
import { fill, fillForPrint, imageCanvas } from "./matrix";
import { Order, change, state, subscribe } from "./state";

const kThumbnail = 96; // CSS pixels at most
const kMostInRow = 20; // heads of a layer that fit side by side

type Clicked = (head: number, event: MouseEvent) => void;

export function mapImage(map: AttentionMap): HTMLCanvasElement {
  const image = new ImageData(map.size, map.size);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < map.size; ++i)
    for (let j = 0; j <= i; ++j) pixels[i * map.size + j] = weightPixel(map.at(i, j));
  return imageCanvas(image);
}

function headOrder(model: Model, order: Order): number[] {
  const heads = model.roles.map((_, head) => head);
  if (order === "role")
    // Stable, so that heads of one role stay in the order of layers.
    heads.sort((a, b) => model.roles[a]!.role.localeCompare(model.roles[b]!.role));
  return heads;
}

// The place of a head in the circuit that is marked, from 1; 0: it is not in it.
function rankOf(loaded: LoadedReport, model: number, label: string): number {
  return (loaded.report.tasks[state().task]?.heads[model]?.indexOf(label) ?? -1) + 1;
}

function mark(button: HTMLElement, rank: number): void {
  button.classList.toggle("member", rank > 0);
  button.querySelector(".rank")!.textContent = rank > 0 ? String(rank) : "";
}

function thumbnail(
  model: Model,
  index: number,
  head: number,
  map: AttentionMap,
  clicked: Clicked,
): HTMLElement {
  const { role, confidence } = model.roles[head]!;
  const label = model.heads[head]!;
  const canvas = sharpCanvas(kThumbnail, kThumbnail);
  fill(canvas, mapImage(map));
  const button = element(
    "button",
    {
      class: "head",
      type: "button",
      "data-model": String(index),
      "data-head": label,
      "aria-label": `${label} of ${model.name}${role && `: ${role}`}`,
      title: role ? `${label} \u2013 ${role} (${confidence.toFixed(2)})` : label,
      style: `--role: ${roleColour(role)}; --stripe: ${roleStripe(role)}`,
    },
    element("span", { class: "map" }, canvas),
    element("span", { class: "label" }, label),
    element("span", { class: "rank" }),
  );
  button.addEventListener("click", (event) => clicked(head, event));
  return button;
}

export function gridView(
  loaded: LoadedReport,
  clicked: Clicked = (head) => change({ head }),
): HTMLElement {
  const panels = loaded.report.models.map((model) => {
    const maps = element("div", { class: "maps" });
    const facts = model.facts.flatMap((fact, n) => [
      n > 0 ? " \u00b7 " : null,
      element("span", {}, fact.join(" ")),
    ]);
    const panel = element(
      "section",
      { class: "panel" },
      element("div", { class: "title" },
        element("h2", {}, model.name), element("p", { class: "facts" }, ...facts)),
      maps,
    );
    return { panel, maps };
  });
  let drawing = 0;
  let drawn: Order | null = null;
  const draw = async (): Promise<void> => {
    const turn = ++drawing;
    const { prompt, order } = state();
    const all = await loaded.maps(prompt);
    if (turn !== drawing) return; // something else was chosen meanwhile
    shown = all;
    if (drawn === order) return repaint(); // the same heads: what has the focus keeps it
    drawn = order;
    loaded.report.models.forEach((model, m) => {
      const heads = headOrder(model, order);
      const inLayer = headsInLayer(model);
      const rows = order === "layer" && inLayer <= kMostInRow;
      panels[m]!.maps.classList.toggle("by-layer", rows);
      panels[m]!.maps.style.setProperty("--heads", String(inLayer));
      panels[m]!.maps.style.setProperty("--layers", String(model.layers.length));
      panels[m]!.maps.replaceChildren(
        ...heads.map((head) => thumbnail(model, m, head, all[m]![head]!, clicked)),
      );
    });
    markMembers();
  };
  // With the colours of the theme, at once: printing does not wait.
  let shown: AttentionMap[][] = [];
  const repaint = (paint = fill): void =>
    shown.forEach((ofModel, m) =>
      panels[m]!.maps.querySelectorAll<HTMLElement>(".head").forEach((button) => {
        const head = loaded.report.models[m]!.heads.indexOf(button.dataset["head"]!);
        paint(button.querySelector("canvas")!, mapImage(ofModel[head]!));
      }),
    );
  const markMembers = (): void =>
    panels.forEach(({ maps }, m) =>
      maps.querySelectorAll<HTMLElement>(".head").forEach((button) =>
        mark(button, rankOf(loaded, m, button.dataset["head"]!)),
      ),
    );
  subscribe((now, before) => {
    if (now.prompt !== before.prompt || now.order !== before.order) void draw();
    if (now.theme !== before.theme) repaint(fillForPrint);
    if (now.task !== before.task) markMembers();
  });
  void draw();
  return element("div", { class: "grid", id: "grid" }, ...panels.map(({ panel }) => panel));
}
