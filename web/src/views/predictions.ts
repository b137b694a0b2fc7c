// The likeliest next tokens of each model beside each other, how well they knew the prompt, and what
// both were before something was changed.
import { visible } from "../data";
import { element } from "../dom";
import { Predicted } from "../source";

const kShown = 6;

export function percent(share: number): string {
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

  show(model: number, { next, loss, plain_loss, divergence }: Predicted): void {
    const rows = next.slice(0, kShown).map(({ token, probability, plain_probability: before }) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, visible(token)),
        element("td", { class: "bars" },
          element("span", { class: `bar model-${model}`, style: `width: ${100 * probability}%` }),
          before !== null ? element("span", { class: "before", style: `left: ${100 * before}%` }) : null),
        element("td", {}, percent(probability)),
        before !== null ? element("td", { class: "was" }, `was ${percent(before)}`) : null,
      ),
    );
    const facts = [
      loss === null ? "" : `loss ${loss.toFixed(2)}${plain_loss === null ? " nats a token of the prompt" : `, was ${plain_loss.toFixed(2)}`}`,
      divergence === null ? "" : `prediction moved by ${divergence.toPrecision(2)} nats`,
    ];
    this.panels[model]!.replaceChildren(
      element("table", {}, element("tbody", {}, ...rows)),
      element("p", { class: "kl" }, facts.filter((fact) => fact !== "").join(", ")),
    );
  }
}
