// What is on the screen as a file, as a command, as a link.
import { element } from "../dom";
import { state } from "../state";
import { Served, exported } from "./api";
import { commandOf } from "./command";
import { generateOptions } from "./generate_view";
import { LiveReport } from "./live_report";
import { link, onPlace, place } from "../place";
import { Run } from "../source";
import { save } from "./save";

const kFormats = ["svg", "pdf", "png", "json", "npz"];
const kFiles: Record<string, string[]> = { heads: ["maps"], tokens: ["tokens"], lens: ["lens", "attribution"], generate: ["generate"] };

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
  // What each kind of file is asked for with.
  const asked = (view: string): object => {
    const { at, layer, least, kind } = place();
    const { tokens } = live.prompt();
    const clicked = at !== null && at < tokens.length ? { at } : {};
    const own: Record<string, object> = {
      maps: { heads: chosen()?.join(",") ?? "*", kind }, tokens: { ...clicked, ...(layer === null ? {} : { layer }), least },
      lens: {}, attribution: at !== null && at > 0 && at < tokens.length ? { at } : { answer: next() }, generate: { ...generateOptions(), least },
    };
    return { ...run(), view, format: format.value, theme: state().theme, ...own[view] };
  };
  button.addEventListener("click", async () => {
    said.textContent = "\u2026";
    try {
      let bytes = 0;
      for (const view of kFiles[place().view] ?? []) {
        const file = await exported(asked(view));
        save(file, `filigree-${view}.${format.value}`);
        bytes += file.size;
      }
      said.textContent = `${(bytes / 1000).toFixed(0)} kB`;
    } catch (error) {
      said.textContent = "";
      failed(error);
    }
  });
  // Results of jobs have buttons of their own.
  const show = (): void => {
    const files = kFiles[place().view];
    format.hidden = button.hidden = files === undefined;
    for (const option of format.options) option.hidden = option.value === "npz" && place().view !== "heads";
    if (format.value === "npz" && place().view !== "heads") format.value = "svg";
    button.title = files === undefined ? "" : `save ${files.join(" and ")}`;
  };
  const copy = (id: string, label: string, text: () => string): HTMLElement => {
    const made = element("button", { type: "button", id }, label);
    made.addEventListener("click", () => {
      // Also where the clipboard is not to be had, it can be selected.
      said.textContent = text();
      navigator.clipboard?.writeText(text()).catch(() => {});
    });
    return made;
  };
  onPlace(() => {
    said.textContent = "";
    show();
  });
  show();
  return element("div", { class: "export", id: "exports" }, format, button,
    copy("command", "copy the command", () => commandOf(place(), run(), served, chosen(), next())), copy("link", "copy the link", link), said);
}
