// Correlations between the maps of all heads, by layer or ordered by clustering.
import { differenceColour } from "./colour";
import { LoadedReport, Model, Pairs } from "./data";
import { element, number, sharpCanvas } from "./dom";
import { fill, matrixImage } from "./matrix";
import { change, subscribe } from "./state";

const kSide = 400;

function matrixView(model: Model, pairs: Pairs, clustered: boolean): HTMLElement {
  const count = pairs.matrix.length;
  const order = clustered ? pairs.order : pairs.order.map((_, n) => n);
  const canvas = sharpCanvas(kSide, kSide);
  const at = (i: number, j: number): number | null => pairs.matrix[order[i]!]![order[j]!] ?? null;
  fill(
    canvas,
    matrixImage(count, count, (i, j) => differenceColour(at(i, j))),
  );
  const readout = element("output", { class: "readout" });
  const cell = (event: PointerEvent | MouseEvent): [number, number] => {
    const box = canvas.getBoundingClientRect();
    const place = (x: number, side: number): number =>
      Math.min(count - 1, Math.max(0, Math.floor((x / side) * count)));
    return [place(event.clientY - box.top, box.height), place(event.clientX - box.left, box.width)];
  };
  canvas.addEventListener("pointermove", (event) => {
    const [i, j] = cell(event);
    const names = [order[i]!, order[j]!].map((head) => model.heads[head]!);
    readout.textContent = `${names.join(" and ")}: ${number(at(i, j), 3)}`;
  });
  canvas.addEventListener("pointerleave", () => (readout.textContent = ""));
  canvas.addEventListener("click", (event) => change({ head: order[cell(event)[0]]! }));
  return element("figure", {}, element("figcaption", {}, model.name), canvas, readout);
}

export function pairsView(loaded: LoadedReport): HTMLElement | null {
  const { models, pairs } = loaded.report;
  const measures = pairs[0]?.map((one) => one.measure) ?? [];
  if (measures.length === 0) return null;
  const row = element("div", { class: "row" });
  const measure = element("select", { "aria-label": "correlation" });
  measure.append(...measures.map((name, n) => element("option", { value: String(n) }, name)));
  const clustered = element("input", { type: "checkbox", id: "clustered", checked: "" });
  const draw = (): void =>
    row.replaceChildren(
      ...models.map((model, m) => matrixView(model, pairs[m]![Number(measure.value)]!, clustered.checked)),
    );
  measure.addEventListener("change", draw);
  clustered.addEventListener("change", draw);
  subscribe((now, before) => {
    if (now.theme !== before.theme) draw();
  });
  draw();
  return element(
    "section",
    { id: "pairs", class: "plain" },
    element("h2", {}, "Head pairs"),
    element("p", { class: "facts" },
      measure, " ", clustered, element("label", { for: "clustered" }, " ordered by clustering; "),
      "blue is -1, orange 1; grey is undefined"),
    row,
  );
}
