// The tab of the lens: what the models would predict after each layer, and what each part adds to the
// logit of the token that was clicked.
import { css, differenceColour, textColour, weightColour } from "../colour";
import { LoadedReport, visible } from "../data";
import { element, scrolled } from "../dom";
import { hint } from "../hints";
import { Latest } from "../latest";
import { subscribe } from "../state";
import { Attribution, Lens, Refused, Run, Source, isChanged } from "../source";
import { go, onPlace, place } from "../place";
import { percent } from "./predictions";
import { View } from "./tabs";

const kParts = 8; // listed

function lensTable(one: Lens, chosen: number | null): HTMLElement {
  const words = one.tokens.map((token, n) => {
    const button = element("button", { type: "button", class: "token", "data-token": String(n), "aria-pressed": String(n === chosen) }, visible(token));
    button.addEventListener("click", () => go({ at: n }));
    return element("th", { scope: "col" }, button);
  });
  // The last layer on top, as the stream rises.
  const rows = [...one.points].reverse().map(({ point, positions }) =>
    element("tr", {}, element("th", { scope: "row" }, point.replace(/ resid_\w+$/, (end) => (end === " resid_pre" ? " before" : ""))),
      ...positions.map(({ top }, n) => {
        const { token, probability } = top[0]!;
        const colour = weightColour(probability);
        const cell = element("td", { style: `background: ${css(colour)}; color: ${css(textColour(colour))}` }, visible(token));
        cell.title = `after \u201c${visible(one.tokens[n]!)}\u201d: ${top.map((next) => `${visible(next.token)} ${percent(next.probability)}`).join(", ")}`;
        return cell;
      })));
  return element("section", {}, element("h3", {}, one.model),
    scrolled(element("table", { class: "lens" }, element("caption", {}, "The likeliest next token, were the stream read out there, coloured by its probability as weights are. Click a token below to explain it."),
      element("tbody", {}, ...rows), element("tfoot", {}, element("tr", {}, element("th", {}, "read last"), ...words)))));
}

function attributionTable(one: Attribution, most: number): HTMLElement {
  const heads = Math.max(...one.parts.map(({ head }) => head ?? -1)) + 1;
  const layers = Math.max(...one.parts.map(({ layer }) => layer ?? -1)) + 1;
  const find = (layer: number, head: number | null, kind: string): number =>
    one.parts.find((part) => part.layer === layer && part.head === head && part.kind === kind)?.contribution ?? 0;
  const cell = (name: string, value: number): HTMLElement => {
    const made = element("td", { style: `background: ${css(differenceColour(value / most))}` });
    made.title = `${name}: ${value.toFixed(3)}`;
    return made;
  };
  const rows = Array.from({ length: layers }, (_, layer) =>
    element("tr", {}, element("th", { scope: "row" }, `L${layer}`),
      ...Array.from({ length: heads }, (__, head) => cell(`L${layer}H${head}`, find(layer, head, "head"))),
      element("td", { class: "gap" }), cell(`L${layer}MLP`, find(layer, null, "mlp"))));
  const strongest = [...one.parts].sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution)).slice(0, kParts);
  const sums = Object.entries(one.sums).map(([name, { mean }]) => `${name} ${mean.toFixed(2)}`);
  return element("section", { class: "does" }, element("h3", {}, `${one.model}: ${one.total.mean.toFixed(2)}`),
    element("p", { class: "facts" }, sums.join(" + ")),
    element("div", { class: "tables" },
      element("table", { class: "cells" }, element("caption", {}, "heads, and the MLP on the right"), element("tbody", {}, ...rows)),
      element("table", {}, element("caption", {}, "the strongest"), element("tbody", {},
        ...strongest.map(({ part, contribution }) => element("tr", {}, element("th", { scope: "row" }, part), element("td", {}, contribution.toFixed(3))))))));
}

export function lensView(loaded: LoadedReport, source: Source, run: () => Run, failed: (error: unknown) => void): View {
  const tables = element("div", { id: "lens" });
  const parts = element("div", { id: "attribution" });
  const lensAsked = new Latest();
  const partsAsked = new Latest();
  let lenses: Lens[] = [];
  // In the place of what was there of another run.
  const instead = (of: HTMLElement) => (error: unknown): void => {
    if (!(error instanceof Refused)) return failed(error);
    of.replaceChildren(hint(error.text));
  };

  const showLens = (): void => tables.replaceChildren(...lenses.map((one) => lensTable(one, place().at)));
  // The clicked token after those before it, or the likeliest after all.
  const explain = (): void => {
    partsAsked.drop();
    const { tokens } = loaded.prompt();
    if (tokens.length === 0) return parts.replaceChildren();
    const { at } = place();
    const clicked = at !== null && at < tokens.length;
    if (clicked && at === 0) return parts.replaceChildren(hint("Nothing comes before the first token: click another one."));
    const answer = clicked ? tokens[at]! : loaded.looks[0]!.next[0]!.token;
    const title = `What each part adds to the logit of \u201c${visible(answer)}\u201d${clicked ? ` (${at})` : ", the likeliest next token"}`;
    const note = isChanged(run()) ? ", with the changes" : "";
    partsAsked.ask((signal) => source.attribution(run(), clicked ? { at } : { answer }, signal), (found) => {
      if (found.length === 0) return parts.replaceChildren(hint("The logits of these models are no sum of what their parts write."));
      const most = Math.max(...found.flatMap((one) => one.parts.map(({ contribution }) => Math.abs(contribution)))) || 1;
      parts.replaceChildren(element("h2", {}, title + note), element("div", { class: "row" }, ...found.map((one) => attributionTable(one, most))));
    }, instead(parts));
  };
  const update = (): void => {
    lensAsked.drop();
    explain();
    lenses = [];
    if (loaded.looks.length === 0) return tables.replaceChildren();
    lensAsked.ask((signal) => source.lens(run(), signal), (found) => {
      lenses = found;
      showLens();
    }, instead(tables));
  };
  const seen = (): boolean => place().view === "lens";
  onPlace((now, before) => {
    if (!seen() || now.at === before.at || now.view !== before.view) return;
    if (lenses.length > 0) showLens();
    explain();
  });
  subscribe((now, before) => {
    if (seen() && now.theme !== before.theme) update();
  });
  return { id: "lens", label: "Lens", root: element("div", {}, tables, parts), update };
}
