// The changes as chips, and a form to make them by hand.
import { element } from "../dom";
import { Served } from "./api";
import { canRedo, canUndo, isOff, partOf, patch, redo, remove, removeAll, scale, toggle, toggleAll, undo } from "../changes";
import { Latest } from "../latest";
import { Change, onPlace, place } from "../place";
import { Refused, Source, runOf, sameChange } from "../source";
import { subscribe } from "../state";
import { LiveReport } from "./live_report";

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

// A part, what becomes of it, and how much or from where. What the server would refuse is said here and
// not made, so that it stands neither among the changes nor in the address.
function form(served: Served, live: LiveReport, source: Source, failed: (error: unknown) => void): HTMLElement {
  const { layers, heads } = served.models[0]!;
  const names = [...heads, ...layers.map((layer) => `${layer}MLP`)];
  const part = element("input", { id: "part", list: "parts", size: "10", value: heads[0]!, "aria-label": "part of the model" });
  const list = element("datalist", { id: "parts" }, ...names.map((value) => element("option", { value })));
  const how = element("select", { id: "how", "aria-label": "what becomes of it" },
    element("option", { value: "off" }, "off"), element("option", { value: "scale" }, "times"), element("option", { value: "patch" }, "as in"));
  const factor = element("input", { type: "range", id: "factor", min: "0", max: "2", step: "0.05", value: "1", "aria-label": "factor" });
  const other = element("input", { id: "other", size: "28", placeholder: "another prompt, as long", "aria-label": "another prompt" });
  const said = element("output", { class: "refused", id: "refused", role: "alert" });
  const wellAgain = (): void => {
    said.textContent = "";
    part.removeAttribute("aria-invalid");
  };
  const refuse = (error: unknown): void => {
    if (!(error instanceof Refused)) return failed(error);
    said.textContent = error.text;
    part.setAttribute("aria-invalid", "true");
  };
  const propose = (latest: Latest, change: Change, make: () => void): void => {
    const others = place().changes.filter((one) => !live.leftOut.some((out) => sameChange(one, out)));
    latest.ask((signal) => source.unfit(runOf(live.prompt().text, [...others, change]), signal), ({ unfit, whole }) => {
      const misfit = unfit.find((one) => sameChange(one, change));
      if (misfit) return refuse(new Refused(misfit.error, ""));
      if (whole) return refuse(new Refused(whole.error, whole.remedy));
      wellAgain();
      make();
    }, refuse);
  };
  const dragging = new Latest(); // of a factor that is dragged the last one counts
  const name = (): string => part.value.trim();
  const switched = (): void => {
    // A token in quotes may hold commas.
    const parts = name().includes("'") ? [name()] : name().split(",").map((one) => one.trim());
    if (parts.every(isOff)) return toggleAll(parts);
    propose(new Latest(), { kind: "ablate", text: name() }, () => toggleAll(parts));
  };
  const patched = (): void => propose(new Latest(), { kind: "patch", text: `${name()}=${other.value}` }, () => patch(name(), other.value));
  const scaled = (): void => {
    const by = Number(factor.value);
    propose(dragging, { kind: "scale", text: `${name()}=${by}` }, () => scale(name(), by));
  };
  const apply = button("apply", "switch", () => (how.value === "off" ? switched() : patched()));
  const show = (): void => {
    factor.hidden = how.value !== "scale";
    other.hidden = how.value !== "patch";
    apply.hidden = how.value === "scale";
    apply.textContent = how.value === "off" ? "switch" : "patch";
  };
  how.addEventListener("change", show);
  factor.addEventListener("input", scaled);
  for (const control of [part, how, other]) control.addEventListener("input", wellAgain);
  show();
  return element("span", { class: "change" }, part, list, how, factor, other, apply, said);
}

export function changesView(served: Served, live: LiveReport, source: Source, failed: (error: unknown) => void): HTMLElement {
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
        const out = live.leftOut.filter((one) => bundle.some((change) => sameChange(one, change)));
        const title = [...out.map(({ error }) => `left out: ${error}`), `take back ${bundle.map(partOf).join(", ")}`].join("\n");
        const chip = element("button", { type: "button", class: out.length > 0 ? "chip out" : "chip", title }, `${chipText(bundle)}${out.length > 0 ? ", left out" : ""} \u00d7`);
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
  subscribe((now, before) => {
    if (now.prompt !== before.prompt) show(); // others may be left out
  });
  addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || typing) return;
    event.preventDefault();
    (event.shiftKey ? redo : undo)();
  });
  show();
  return element("div", { class: "changes", id: "changes" },
    element("span", { class: "label" }, "change"), form(served, live, source, failed),
    element("span", { class: "mlps", role: "group", "aria-label": "MLPs" }, element("span", { class: "label" }, "MLP"), ...mlps),
    back, again, none, chips);
}
