// The likeliest next tokens of each model beside each other, and what they were before heads were
// switched off.
import { visible } from "../data";
import { element } from "../dom";
import { Prediction } from "./api";

function percent(share: number): string {
  return share >= 0.001 ? `${(100 * share).toFixed(1)} %` : "<0.1 %";
}

export class PredictionsView {
  readonly root: HTMLElement;
  private readonly panels: HTMLElement[];

  constructor(models: string[]) {
    this.panels = models.map(() => element("div", { class: "next" }));
    this.root = element(
      "div",
      { class: "predictions", id: "predictions" },
      ...models.map((name, m) =>
        element("section", { "aria-label": `next token of ${name}` }, element("h2", {}, name), this.panels[m]!),
      ),
    );
  }

  show(model: number, prediction: Prediction): void {
    const { plain, changed, divergence } = prediction;
    const now = (changed ?? plain).next;
    const order = now.map((_, n) => n).sort((a, b) => now[b]!.probability - now[a]!.probability);
    const rows = order.slice(0, 8).map((n) => {
      const { token, probability } = now[n]!;
      const before = plain.next[n]!.probability;
      return element(
        "tr",
        {},
        element("th", {}, visible(token)),
        element("td", { class: "bars" },
          element("span", { class: `bar model-${model}`, style: `width: ${100 * probability}%` }),
          changed ? element("span", { class: "before", style: `left: ${100 * before}%` }) : null),
        element("td", {}, percent(probability)),
        changed ? element("td", { class: "was" }, `was ${percent(before)}`) : null,
      );
    });
    const change = divergence?.at(-1);
    this.panels[model]!.replaceChildren(
      element("table", {}, element("tbody", {}, ...rows)),
      element("p", { class: "kl" }, change === undefined ? "" : `changed by ${change.toPrecision(2)} nats`),
    );
  }
}
