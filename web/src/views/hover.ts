// Pointing at a cell of a small map: the same head of the other model is marked, and the weight of
// the same two tokens named for both.
import { number, element } from "../dom";
import { LoadedReport, visible } from "../data";

export function linkHover(loaded: LoadedReport, grid: HTMLElement, changeable: boolean): HTMLElement {
  const readout = element("output", { class: "readout", id: "cell-readout" });
  const rest = "Point at a map: rows look at columns. Click for the large map" + (changeable ? ", Shift-click switches the head off." : ".");
  readout.textContent = rest;
  let marked: Element[] = [];
  const clear = (): void => {
    for (const twin of marked) twin.classList.remove("twin");
    marked = [];
    readout.textContent = rest;
  };
  grid.addEventListener("pointermove", (event) => {
    const button = (event.target as Element).closest<HTMLElement>(".head");
    clear();
    if (!button) return;
    const name = button.dataset["head"]!;
    marked = [...grid.querySelectorAll(`.head[data-head="${name}"]`)];
    for (const twin of marked) twin.classList.add("twin");
    const box = button.querySelector(".map")!.getBoundingClientRect();
    const { tokens } = loaded.prompt();
    const place = (from: number, size: number): number => Math.floor((from / size) * tokens.length);
    const query = place(event.clientY - box.top, box.height);
    const key = place(event.clientX - box.left, box.width);
    const head = loaded.report.models[0]!.heads.indexOf(name);
    if (query < 0 || query >= tokens.length || key < 0 || key > query) return void (readout.textContent = name);
    const weights = loaded.report.models.map((model, m) => `${model.name} ${number(loaded.maps()[m]![head]!.at(query, key))}`);
    readout.textContent =
      `${name}: \u201c${visible(tokens[query]!)}\u201d (${query}) looks at ` +
      `\u201c${visible(tokens[key]!)}\u201d (${key}) \u2013 ${weights.join(", ")}`;
  });
  grid.addEventListener("pointerleave", clear);
  return readout;
}
