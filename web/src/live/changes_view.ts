// The changes as chips, and a form to make them by hand.
import { element } from "../dom";
import { Served } from "./api";
import { canRedo, canUndo, isOff, partOf, patch, redo, remove, removeAll, scale, toggle, undo } from "../changes";
import { Change, onPlace, place } from "../place";

function said(change: Change): string {
  const part = partOf(change);
  const value = change.text.slice(part.length + 1);
  if (change.kind === "ablate") return `${part} off`;
  return change.kind === "scale" ? `${part} \u00d7 ${value}` : `${part} from \u201c${value}\u201d`;
}

const kSingle = 8; // of one kind and value that have chips of their own

// What is shown as one chip.
function bundles(changes: Change[]): Change[][] {
  const found = new Map<string, Change[]>();
  for (const change of changes) {
    const key = `${change.kind} ${change.text.slice(partOf(change).length)}`;
    found.set(key, [...(found.get(key) ?? []), change]);
  }
  return [...found.values()].flatMap((alike) => (alike.length > kSingle ? [alike] : alike.map((one) => [one])));
}

function chipText(bundle: Change[]): string {
  const first = said(bundle[0]!);
  return bundle.length === 1 ? first : `${bundle.length} parts${first.slice(partOf(bundle[0]!).length)}`;
}

function button(id: string, text: string, action: () => void, title = text): HTMLButtonElement {
  const made = element("button", { type: "button", id, title }, text);
  made.addEventListener("click", action);
  return made;
}

// A part, what becomes of it, and how much or from where.
function form(served: Served): HTMLElement {
  const { layers, heads } = served.models[0]!;
  const names = [...heads, ...layers.map((layer) => `${layer}MLP`)];
  const part = element("input", { id: "part", list: "parts", size: "10", value: heads[0]!, "aria-label": "part of the model" });
  const list = element("datalist", { id: "parts" }, ...names.map((value) => element("option", { value })));
  const how = element("select", { id: "how", "aria-label": "what becomes of it" },
    element("option", { value: "off" }, "off"), element("option", { value: "scale" }, "times"), element("option", { value: "patch" }, "as in"));
  const factor = element("input", { type: "range", id: "factor", min: "0", max: "2", step: "0.05", value: "1", "aria-label": "factor" });
  const other = element("input", { id: "other", size: "28", placeholder: "another prompt, as long", "aria-label": "another prompt" });
  const apply = button("apply", "switch", () => (how.value === "off" ? toggle(part.value.trim()) : patch(part.value.trim(), other.value)));
  const show = (): void => {
    factor.hidden = how.value !== "scale";
    other.hidden = how.value !== "patch";
    apply.hidden = how.value === "scale";
    apply.textContent = how.value === "off" ? "switch" : "patch";
  };
  how.addEventListener("change", show);
  factor.addEventListener("input", () => scale(part.value.trim(), Number(factor.value)));
  show();
  return element("span", { class: "change" }, part, list, how, factor, other, apply);
}

export function changesView(served: Served): HTMLElement {
  const chips = element("span", { class: "chips", id: "off", role: "group", "aria-label": "what is changed" });
  const back = button("undo", "\u21b6", undo, "undo (Ctrl+Z)");
  const again = button("redo", "\u21b7", redo, "redo (Ctrl+Shift+Z)");
  const none = button("restore", "all on", removeAll, "take all changes back");
  const mlps = served.models[0]!.layers.map((layer) => {
    const made = button("", layer.slice(1), () => toggle(`${layer}MLP`), `${layer}MLP off or on`);
    made.removeAttribute("id");
    made.dataset["mlp"] = `${layer}MLP`;
    made.setAttribute("aria-label", `MLP of ${layer}`);
    return made;
  });
  const show = (): void => {
    chips.replaceChildren(
      ...bundles(place().changes).map((bundle) => {
        const chip = element("button", { type: "button", class: "chip", title: `take back ${bundle.map(partOf).join(", ")}` }, `${chipText(bundle)} \u00d7`);
        chip.addEventListener("click", () => remove(bundle));
        return chip;
      }),
    );
    back.disabled = !canUndo();
    again.disabled = !canRedo();
    none.hidden = place().changes.length === 0;
    for (const mlp of mlps) mlp.setAttribute("aria-pressed", String(isOff(mlp.dataset["mlp"]!)));
  };
  onPlace(show);
  addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || typing) return;
    event.preventDefault();
    (event.shiftKey ? redo : undo)();
  });
  show();
  return element("div", { class: "changes", id: "changes" },
    element("span", { class: "label" }, "change"), form(served),
    element("span", { class: "mlps", role: "group", "aria-label": "MLPs" }, element("span", { class: "label" }, "MLP"), ...mlps),
    back, again, none, chips);
}
