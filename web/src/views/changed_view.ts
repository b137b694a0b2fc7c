// The tab of stored changes: what each model predicts, and what becomes of it when one of the parts that
// matter most is switched off.
import { LoadedReport, visible } from "../data";
import { element, number, scrolled } from "../dom";
import { Change, go, place } from "../place";
import { Predicted, sameChange } from "../source";
import { subscribe } from "../state";
import { StoredChange, StoredSource } from "../stored";
import { PredictionsView, percent } from "./predictions";
import { View } from "./tabs";

// The likeliest token of the plain run, which a changed run may still list.
function fate(plain: Predicted, now: Predicted): HTMLElement[] {
  const first = plain.next[0]!;
  const same = now.next.find(({ token }) => token === first.token);
  const top = now.next[0]!;
  return [
    element("td", {}, same ? percent(same.probability) : ""),
    element("td", top.token === first.token ? {} : { class: "moved" }, visible(top.token)),
    element("td", {}, number(now.divergence, 3)),
    element("td", {}, now.loss === null || plain.loss === null ? "" : `${now.loss >= plain.loss ? "+" : "\u2212"}${Math.abs(now.loss - plain.loss).toFixed(3)}`),
  ];
}

// The part that is off in what is shown; "": none.
function madeChange({ leftOut }: LoadedReport): string {
  return place().changes.find((change) => !leftOut.some((one) => sameChange(one, change)))?.text ?? "";
}

const off = (text: string): Change[] => (text === "" ? [] : [{ kind: "ablate", text }]);

// What is switched off in all views: a choice for the head of the page, and a line that says so above them.
export function changeChooser(loaded: LoadedReport, source: StoredSource, failed: (error: unknown) => void): { choice: HTMLElement; said: HTMLElement } {
  const select = element("select", { id: "off", "aria-label": "part that is switched off" }, element("option", { value: "" }, "nothing"));
  const said = element("p", { class: "facts", id: "off-said", hidden: "" });
  select.addEventListener("change", () => go({ changes: off(select.value) }));
  const show = (): void => {
    const { text } = loaded.prompt();
    if (text === "") return;
    const chosen = madeChange(loaded);
    source.stored(text).then((stored) => {
      if (!stored || loaded.prompt().text !== text) return;
      const names = stored.changes.map(({ ablate }) => ablate);
      select.replaceChildren(element("option", { value: "" }, "nothing"), ...names.map((name) => element("option", { value: name }, name)));
      select.value = chosen;
      const change = stored.changes.find(({ ablate }) => ablate === chosen);
      said.hidden = !change;
      said.textContent = !change ? "" : `${chosen} is switched off in both models: ` +
        (change.maps ? "predictions, maps, arcs and lens are of these runs." : "predictions and lens are of these runs; their maps are not stored, and those shown are of the runs as they are.");
    }, failed);
  };
  subscribe((now, before) => {
    if (now.prompt !== before.prompt) show();
  });
  return { choice: element("label", {}, "off ", select), said };
}

export function changedView(loaded: LoadedReport, source: StoredSource, failed: (error: unknown) => void): View {
  const { models } = loaded.report;
  const predictions = new PredictionsView(models.map(({ name }) => name));
  const table = element("div");
  const chosen = (): string => madeChange(loaded);

  const row = (text: string, label: string, cells: HTMLElement[]): HTMLElement => {
    const button = element("button", { type: "button", "data-off": text }, label);
    button.addEventListener("click", () => go({ changes: off(text) }));
    const made = element("tr", {}, element("th", { scope: "row" }, button), ...cells);
    made.setAttribute("aria-selected", String(text === chosen()));
    return made;
  };
  const draw = (plain: Predicted[], changes: StoredChange[]): void => {
    const head = (texts: string[]): HTMLElement[] => texts.map((text) => element("th", { scope: "col" }, text));
    const names = models.map(({ name }, m) => element("th", { scope: "colgroup", colspan: "4" }, `${name}, which predicts \u201c${visible(plain[m]!.next[0]!.token)}\u201d`));
    const rows = changes.map((change) => row(change.ablate, `${change.ablate} off`, change.looks.flatMap((now, m) => fate(plain[m]!, now))));
    table.replaceChildren(scrolled(element("table", { class: "changed" },
      element("caption", {}, "The heads and MLPs that matter most for a prediction (value times gradient), switched off one by one in both models: the probability that its token keeps, " +
        "the likeliest token then, how far the prediction moved (KL divergence, nats), and what the prompt's loss gains."),
      element("thead", {}, element("tr", {}, element("th", {}), ...names),
        element("tr", {}, element("th", {}), ...models.flatMap(() => head(["keeps", "likeliest", "moved", "loss"])))),
      element("tbody", {}, row("", "nothing off", plain.flatMap((look) => fate(look, { ...look, divergence: 0 }))), ...rows))));
  };
  const update = (): void => {
    loaded.looks.forEach((look, m) => predictions.show(m, look));
    const { text } = loaded.prompt();
    if (text === "") return;
    source.stored(text).then((stored) => {
      if (stored && loaded.prompt().text === text) draw(stored.looks, stored.changes);
    }, failed);
  };
  const note = element("p", { class: "facts" }, "Maps, arcs and lens follow what is switched off here; filigree serve shows them with any change.");
  return { id: "changes", label: "Predictions and changes", root: element("div", {}, predictions.root, note, table), update };
}
