// The likeliest next tokens of each model beside each other, how well they knew the prompt, and what
// both were before something was changed.
import { visible } from "../data";
import { element } from "../dom";
import { NextToken, Predicted } from "../source";

const kShown = 6;

export function percent(share: number): string {
  return share >= 0.001 ? `${(100 * share).toFixed(1)} %` : "<0.1 %";
}

// The likeliest tokens of a run, and always the one that was likeliest before something was changed.
function shownOf(next: NextToken[]): NextToken[] {
  const shown = next.slice(0, kShown);
  const first = next.find(({ plain_rank: rank }) => rank === 1);
  return first === undefined || shown.includes(first) ? shown : [...shown, first];
}

function rowOf({ token, rank, probability, plain_probability: before, plain_rank: rankBefore }: NextToken, model: number): HTMLElement {
  const original = rankBefore === 1;
  return element("tr", original ? { class: "original", title: "the likeliest token without the changes" } : {},
    before !== null ? element("td", { class: "now", title: "rank" }, `${rank}.`) : null,
    element("th", { scope: "row" }, visible(token)),
    element("td", { class: "bars" },
      element("span", { class: `bar model-${model}`, style: `width: ${100 * probability}%` }),
      before !== null ? element("span", { class: "before", style: `left: ${100 * before}%` }) : null),
    element("td", {}, percent(probability)),
    before !== null ? element("td", { class: "was" }, `was ${percent(before)}, rank ${rankBefore}`) : null);
}

export class PredictionsView {
  readonly root: HTMLElement;
  private readonly panels: HTMLElement[];
  private readonly instead = element("p", { class: "facts", id: "instead", role: "status", hidden: "" });

  constructor(models: string[]) {
    this.panels = models.map(() => element("div", { class: "next" }));
    this.root = element(
      "div",
      { class: "predictions", id: "predictions" },
      ...models.map((name, m) =>
        element("section", { "aria-label": `next token of ${name}` }, element("h2", {}, name), this.panels[m]!),
      ),
      this.instead,
    );
  }

  show(model: number, { next, loss, plain_loss, divergence }: Predicted): void {
    this.instead.hidden = true;
    const facts = [
      loss === null ? "" : `loss ${loss.toFixed(2)}${plain_loss === null ? " nats a token of the prompt" : `, was ${plain_loss.toFixed(2)}`}`,
      divergence === null ? "" : `prediction moved by ${divergence.toPrecision(2)} nats`,
    ];
    this.panels[model]!.replaceChildren(
      element("table", next.some(({ plain_rank: before }) => before !== null) ? { class: "both" } : {}, element("tbody", {}, ...shownOf(next).map((one) => rowOf(one, model)))),
      element("p", { class: "kl" }, facts.filter((fact) => fact !== "").join(", ")),
    );
  }

  // In the place of predictions, where there are none.
  say(...said: (Node | string)[]): void {
    for (const panel of this.panels) panel.replaceChildren();
    this.instead.replaceChildren(...said);
    this.instead.hidden = false;
  }
}
