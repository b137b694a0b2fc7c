// The tab of all heads: the grid of both models, with what it is ordered and chosen by.
import { element } from "../dom";
import { gridView } from "../grid";
import { legendView } from "../legend";
import { change, subscribe } from "../state";
import { tokensView } from "../tokens";
import { Run, importance } from "./api";
import { isOff, toggle } from "./changes";
import { linkHover } from "./hover";
import { LiveReport } from "./live_report";
import { HeadOrder, orderChooser } from "./order";
import { MapKind, go, onPlace, place } from "./place";
import { SheetPainter } from "./sheet";
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

export function headsView(live: LiveReport, order: HeadOrder, run: () => Run, failed: (error: unknown) => void): View {
  const { heads } = live.report.models[0]!;
  const off = element("input", { type: "checkbox", id: "switch" });
  const grid = gridView(
    live,
    (head, event) => (event.shiftKey || off.checked ? toggle(heads[head]!) : change({ head })),
    order.chosen,
    (places, room) => new SheetPainter(places, room),
  );
  const markOff = (): void =>
    grid.querySelectorAll<HTMLElement>(".head").forEach((button) => button.classList.toggle("off", isOff(button.dataset["head"]!)));
  let current = new AbortController();
  const weigh = (): void => {
    current.abort();
    if (place().order !== "importance" || run().prompt === "") return;
    current = new AbortController();
    importance(run(), current.signal).then((found) => order.show(found.map(({ parts }) => parts)), failed);
  };
  onPlace((now, before) => {
    markOff();
    if (now.order !== before.order) weigh();
  });
  subscribe((now, before) => {
    if (now.prompt !== before.prompt || now.marks !== before.marks) markOff();
  });
  const root = element("div", {},
    element("div", { class: "above" }, kindChooser(), orderChooser(live), element("label", {}, off, " a click switches off"), legendView(live)),
    tokensView(live, grid), linkHover(live, grid), grid);
  return { id: "heads", label: "Heads", root, update: weigh };
}
