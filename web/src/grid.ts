// The two panels of small maps, one button a head.
import { roleColour, weightColour } from "./colour";
import { AttentionMap, LoadedReport, Model, headsInLayer } from "./data";
import { element, sharpCanvas } from "./dom";
import { fill, matrixImage } from "./matrix";
import { Order, change, state, subscribe } from "./state";

const kThumbnail = 96; // CSS pixels at most
const kMostInRow = 20; // heads of a layer that fit side by side
const kMostBeside = 6; // heads a layer of models whose panels fit side by side

export function mapImage(map: AttentionMap): HTMLCanvasElement {
  return matrixImage(map.size, map.size, (i, j) => (j > i ? null : weightColour(map.at(i, j))));
}

function headOrder(model: Model, order: Order): number[] {
  const heads = model.roles.map((_, head) => head);
  if (order === "role")
    // Stable, so that heads of one role stay in the order of layers.
    heads.sort((a, b) => model.roles[a]!.role.localeCompare(model.roles[b]!.role));
  return heads;
}

function thumbnail(model: Model, index: number, head: number, map: AttentionMap): HTMLElement {
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
      "aria-label": `${label} of ${model.name}: ${role}`,
      title: `${label} \u2013 ${role} (${confidence.toFixed(2)})`,
      style: `--role: ${roleColour(role)}`,
    },
    canvas,
    element("span", { class: "label" }, label),
  );
  button.addEventListener("click", () => change({ head }));
  return button;
}

export function gridView(loaded: LoadedReport): HTMLElement {
  const panels = loaded.report.models.map((model) => {
    const maps = element("div", { class: "maps" });
    const facts = model.facts.map(([name, value]) => `${name} ${value}`).join(" \u00b7 ");
    const panel = element(
      "section",
      { class: "panel" },
      element("h2", {}, model.name),
      element("p", { class: "facts" }, facts),
      maps,
    );
    return { panel, maps };
  });
  let drawing = 0;
  const draw = async (): Promise<void> => {
    const turn = ++drawing;
    const { prompt, order } = state();
    const all = await loaded.maps(prompt);
    if (turn !== drawing) return; // something else was chosen meanwhile
    loaded.report.models.forEach((model, m) => {
      const heads = headOrder(model, order);
      const inLayer = headsInLayer(model);
      const rows = order === "layer" && inLayer <= kMostInRow;
      panels[m]!.maps.classList.toggle("by-layer", rows);
      panels[m]!.maps.style.setProperty("--heads", String(inLayer));
      panels[m]!.maps.replaceChildren(
        ...heads.map((head) => thumbnail(model, m, head, all[m]![head]!)),
      );
    });
  };
  subscribe((now, before) => {
    if (now.prompt !== before.prompt || now.order !== before.order || now.theme !== before.theme)
      void draw();
  });
  void draw();
  const beside = loaded.report.models.every((model) => headsInLayer(model) <= kMostBeside);
  return element("div", { class: beside ? "grid beside" : "grid", id: "grid" }, ...panels.map(({ panel }) => panel));
}
