// What is on the screen as a file, as a command, as a link.
import { element } from "../dom";
import { state } from "../state";
import { Run, Served, exported } from "./api";
import { commandOf } from "./command";
import { LiveReport } from "./live_report";
import { link, onPlace, place } from "./place";
import { save } from "./save";

const kFormats = ["svg", "pdf", "png", "npz", "json"];

// `heads` are those that the grid shows, in its order.
export function exportView(served: Served, live: LiveReport, run: () => Run, heads: () => number[], failed: (error: unknown) => void): HTMLElement {
  const { heads: names } = served.models[0]!;
  const format = element("select", { id: "format", "aria-label": "kind of file" }, ...kFormats.map((name) => element("option", { value: name }, name)));
  const button = element("button", { type: "button", id: "export" }, "export");
  const said = element("output", { class: "said", id: "exported" });
  // The open head alone, else what the grid shows; null: all, layer by layer.
  const chosen = (): string[] | null => {
    if (place().head !== null) return [place().head!];
    const shown = heads();
    return shown.length === names.length && shown.every((head, n) => head === n) ? null : shown.map((head) => names[head]!);
  };
  const next = (): string => live.looks[0]?.next[0]?.token ?? "";
  const view = (): string => (place().view === "lens" ? "lens" : "maps");
  button.addEventListener("click", () => {
    said.textContent = "\u2026";
    const asked = { ...run(), view: view(), format: format.value, theme: state().theme, heads: chosen()?.join(",") ?? "*", kind: place().kind };
    exported(asked).then(
      (file) => {
        save(file, `filigree-${view()}.${format.value}`);
        said.textContent = `${(file.size / 1000).toFixed(0)} kB`;
      },
      (error: unknown) => {
        said.textContent = "";
        failed(error);
      },
    );
  });
  const copy = (id: string, label: string, text: () => string): HTMLElement => {
    const made = element("button", { type: "button", id }, label);
    made.addEventListener("click", () => {
      // Also where the clipboard is not to be had, it can be selected.
      said.textContent = text();
      navigator.clipboard?.writeText(text()).catch(() => {});
    });
    return made;
  };
  onPlace((now, before) => {
    if (now !== before) said.textContent = "";
  });
  return element("div", { class: "export", id: "exports" }, format, button,
    copy("command", "copy the command", () => commandOf(place(), run().prompt, served, chosen(), next())), copy("link", "copy the link", link), said);
}
