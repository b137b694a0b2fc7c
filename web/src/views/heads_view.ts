// The tab of all heads: the grid of both models, with what it is ordered and chosen by.
import { LoadedReport } from "../data";
import { element } from "../dom";
import { MakePainter, gridView } from "../grid";
import { Latest } from "../latest";
import { legendView } from "../legend";
import { change, subscribe } from "../state";
import { tokensView } from "../tokens";
import { Run, Source } from "../source";
import { toggle } from "../changes";
import { linkHover } from "./hover";
import { HeadOrder, orderChooser } from "./order";
import { MapKind, go, onPlace, place } from "../place";
import { View } from "./tabs";

function kindChooser(): HTMLElement {
  const kinds: [MapKind, string][] = [["weights", "weights"], ["value-weighted", "weights \u00d7 values"], ["gate", "gate"]];
  const select = element("select", { id: "kind", "aria-label": "what the maps show" },
    ...kinds.map(([value, text]) => element("option", { value }, text)));
  const show = (): void => void (select.value = place().kind);
  select.addEventListener("change", () => go({ kind: select.value as MapKind }));
  onPlace(show);
  show();
  return element("label", {}, "maps ", select);
}

// Whose circuit is marked, where there are several.
function circuitChooser({ report: { tasks } }: LoadedReport): HTMLElement | null {
  if (tasks.every((task) => task.heads.every((heads) => heads.length === 0))) return null;
  const select = element("select", { id: "circuit", "aria-label": "circuit that is marked" });
  tasks.forEach((task, n) => select.append(element("option", { value: String(n) }, task.name)));
  select.append(element("option", { value: "-1" }, "none"));
  select.addEventListener("change", () => change({ task: Number(select.value) }));
  return element("label", {}, "circuit of ", select);
}

export interface HeadsOptions {
  loaded: LoadedReport;
  source: Source;
  order: HeadOrder;
  run: () => Run;
  painter?: MakePainter;
  failed: (error: unknown) => void;
}

export function headsView({ loaded, source, order, run, painter, failed }: HeadsOptions): View {
  const { heads } = loaded.report.models[0]!;
  const off = element("input", { type: "checkbox", id: "switch" });
  const grid = gridView(
    loaded,
    (head, event) => (source.changeable && (event.shiftKey || off.checked) ? toggle(heads[head]!) : change({ head })),
    order.chosen,
    painter,
  );
  const markOff = (): void =>
    grid.querySelectorAll<HTMLElement>(".head").forEach((button) =>
      button.classList.toggle("off", loaded.isOff(Number(button.dataset["model"]), button.dataset["head"]!)));
  const latest = new Latest();
  const weigh = (): void => {
    latest.drop();
    if (place().order !== "importance" || run().prompt === "") return;
    latest.ask((signal) => source.importance(run(), signal), (found) => order.show(found), (error) => {
      order.show([]); // not those of another run
      failed(error);
    });
  };
  onPlace((now, before) => {
    if (now.order !== before.order) weigh();
  });
  subscribe((now, before) => {
    if (now.prompt !== before.prompt || now.marks !== before.marks) markOff(); // others may be there
  });
  markOff();
  const root = element("div", {},
    element("div", { class: "above" }, ...(source.changeable ? [kindChooser()] : []), orderChooser(loaded, source.weighs),
      ...(source.changeable ? [element("label", {}, off, " a click switches off")] : []), circuitChooser(loaded), linkHover(loaded, grid, source.changeable)),
    element("div", { class: "above" }, legendView(loaded)), tokensView(loaded, grid), grid);
  return { id: "heads", label: "Heads", root, update: weigh };
}
