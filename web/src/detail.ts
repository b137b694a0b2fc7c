// One head, large: its map in each model and their difference, with tokens and what the pointer is on.
import { Rgb, differenceColour, roleStripe, weightColour } from "./colour";
import { AttentionMap, LoadedReport, visible } from "./data";
import { context, element, number, sharpCanvas } from "./dom";
import { ramp } from "./legend";
import { matrixImage } from "./matrix";
import { change, state, subscribe } from "./state";

interface Cell {
  query: number;
  key: number;
}

// A map with token labels on both axes. `pointed` is told the cell under the pointer, or null.
class LargeMap {
  readonly root: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly picture: HTMLCanvasElement;
  private readonly margin: number;
  private readonly side: number;

  constructor(
    title: string,
    subtitle: string,
    name: string,
    private readonly tokens: string[],
    side: number,
    colour: (query: number, key: number) => Rgb,
    pointed: (cell: Cell | null) => void,
  ) {
    const labels = side / tokens.length >= 9;
    this.margin = labels ? 78 : 8;
    this.side = side;
    const total = side + this.margin;
    this.canvas = sharpCanvas(total, total);
    this.canvas.dataset["map"] = name;
    this.picture = matrixImage(tokens.length, tokens.length, (i, j) => (j > i ? null : colour(i, j)));
    this.canvas.addEventListener("pointermove", (event) => pointed(this.cellAt(event)));
    this.canvas.addEventListener("pointerleave", () => pointed(null));
    this.root = element(
      "figure",
      { class: "large" },
      element("figcaption", {}, element("b", {}, title), ` ${subtitle}`),
      this.canvas,
    );
    this.draw(null);
  }

  private cellAt(event: PointerEvent): Cell | null {
    const box = this.canvas.getBoundingClientRect();
    const size = this.tokens.length;
    const key = Math.floor(((event.clientX - box.left - this.margin) / this.side) * size);
    const query = Math.floor(((event.clientY - box.top) / this.side) * size);
    return key < 0 || query >= size || key > query ? null : { query, key };
  }

  draw(cell: Cell | null): void {
    const ctx = context(this.canvas);
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--text");
    const faint = style.getPropertyValue("--muted");
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const ratio = this.canvas.width / (this.side + this.margin);
    ctx.scale(ratio, ratio);
    const { side, margin } = this;
    const size = this.tokens.length;
    const step = side / size;
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.picture, margin, 0, side, side);
    ctx.strokeStyle = faint;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(margin, 0);
    ctx.lineTo(margin, side);
    ctx.lineTo(margin + side, side);
    ctx.stroke();
    if (margin > 8) this.labels(ctx, cell, ink, faint);
    if (cell) {
      ctx.strokeStyle = style.getPropertyValue("--category-0");
      ctx.lineWidth = 1.5;
      ctx.strokeRect(margin + cell.key * step, cell.query * step, step, step);
    }
  }

  private labels(ctx: CanvasRenderingContext2D, cell: Cell | null, ink: string, faint: string): void {
    const { side, margin } = this;
    const step = side / this.tokens.length;
    ctx.font = `${Math.min(12, step * 0.95)}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    const clip = (token: string): string => {
      const text = visible(token);
      return text.length > 11 ? `${text.slice(0, 10)}\u2026` : text;
    };
    this.tokens.forEach((token, n) => {
      ctx.fillStyle = !cell || cell.query === n ? ink : faint;
      ctx.fillText(clip(token), margin - 5, (n + 0.5) * step);
      ctx.save();
      ctx.translate(margin + (n + 0.5) * step, side + 5);
      ctx.rotate(-Math.PI / 2);
      ctx.fillStyle = !cell || cell.key === n ? ink : faint;
      ctx.fillText(clip(token), 0, 0);
      ctx.restore();
    });
  }
}

// The largest absolute difference, so that small changes are seen; the scale is printed.
function largestDifference(a: AttentionMap, b: AttentionMap): number {
  let most = 0;
  for (let i = 0; i < a.size; ++i)
    for (let j = 0; j <= i; ++j) most = Math.max(most, Math.abs(b.at(i, j) - a.at(i, j)));
  return most;
}

function step(loaded: LoadedReport, by: number): void {
  const { head } = state();
  const count = loaded.report.models[0]!.roles.length;
  if (head !== null) change({ head: (head + by + count) % count });
}

function roleLine(loaded: LoadedReport, head: number): HTMLElement | null {
  if (loaded.report.roles.length === 0) return null;
  const parts = loaded.report.models.map((model) => {
    const { role, confidence } = model.roles[head]!;
    const dot = element("i", { class: "dot", style: `background: ${roleStripe(role)}` });
    return element("span", {}, dot, ` ${model.name}: ${role} (${confidence.toFixed(2)})`);
  });
  return element("p", { class: "roleline" }, ...parts);
}

function numbersTable(loaded: LoadedReport, head: number): HTMLElement | null {
  const { models, statistics } = loaded.report;
  if (statistics.length === 0) return null;
  const rows = statistics.map((row) =>
    element(
      "tr",
      {},
      element("th", {}, row.label),
      ...models.map((model) => element("td", {}, number(model.statistics[head]?.[row.name]))),
    ),
  );
  const top = element("tr", {}, element("th", {}), ...models.map((m) => element("th", {}, m.name)));
  return element("table", { class: "numbers" }, element("thead", {}, top), element("tbody", {}, ...rows));
}

function buttons(loaded: LoadedReport, title: string): HTMLElement {
  const make = (label: string, text: string, action: () => void): HTMLElement => {
    const made = element("button", { type: "button", "aria-label": label, title: label }, text);
    made.addEventListener("click", action);
    return made;
  };
  return element(
    "header",
    {},
    element("h2", { id: "detail-title" }, title),
    make("previous head (left arrow)", "\u2190", () => step(loaded, -1)),
    make("next head (right arrow)", "\u2192", () => step(loaded, 1)),
    make("close (Escape)", "\u00d7", () => change({ head: null })),
  );
}

// `more` is what a page has to say of a head besides.
export function detailView(loaded: LoadedReport, more?: (head: number) => HTMLElement): HTMLElement {
  const dialog = element("dialog", { id: "detail", "aria-labelledby": "detail-title" });
  const { models } = loaded.report;
  let drawing = 0;
  const draw = async (): Promise<void> => {
    const turn = ++drawing;
    const { head, prompt } = state();
    if (head === null) return dialog.close();
    const all = await loaded.maps(prompt);
    if (turn !== drawing) return;
    const maps = all.map((ofModel) => ofModel[head]!);
    const { tokens } = loaded.prompt(prompt);
    const columns = models.length === 2 ? 3 : 1;
    // Side by side where there is room, else below one another.
    const beside = window.innerWidth >= 900 ? columns : 1;
    const side = Math.max(180, Math.min(520, (window.innerWidth - 120) / beside - 90));
    const readout = element("output", { class: "readout", id: "readout" });
    const rest = "Point at a cell: rows are queries, columns are keys.";
    readout.textContent = rest;
    const large: LargeMap[] = [];
    const pointed = (cell: Cell | null): void => {
      for (const map of large) map.draw(cell);
      if (!cell) return void (readout.textContent = rest);
      const weights = models.map(
        (model, m) => `${model.name} ${number(maps[m]!.at(cell.query, cell.key), 4)}`,
      );
      readout.textContent =
        `query ${cell.query} \u201c${visible(tokens[cell.query]!)}\u201d \u2192 ` +
        `key ${cell.key} \u201c${visible(tokens[cell.key]!)}\u201d: ${weights.join(", ")}`;
    };
    models.forEach((model, m) =>
      large.push(
        new LargeMap(model.name, "weights 0 to 1", `model-${m}`, tokens, side,
          (i, j) => weightColour(maps[m]!.at(i, j)), pointed),
      ),
    );
    if (models.length === 2) {
      const most = largestDifference(maps[0]!, maps[1]!) || 1;
      large.push(
        new LargeMap("difference", `${models[1]!.name} less ${models[0]!.name}, \u00b1${number(most, 2)}`,
          "difference", tokens, side,
          (i, j) => differenceColour((maps[1]!.at(i, j) - maps[0]!.at(i, j)) / most), pointed),
      );
    }
    const parts = [
      buttons(loaded, `Head ${models[0]!.heads[head]!}`),
      roleLine(loaded, head),
      element("div", { class: "row" }, ...large.map((map) => map.root)),
      readout,
      ramp(),
      numbersTable(loaded, head),
      more?.(head),
    ];
    dialog.replaceChildren(...parts.filter((part) => part != null));
    if (!dialog.open) dialog.showModal();
  };
  subscribe((now, before) => {
    if (now.head !== before.head || now.prompt !== before.prompt || now.theme !== before.theme)
      void draw();
  });
  dialog.addEventListener("close", () => change({ head: null }));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) change({ head: null }); // the backdrop
  });
  document.addEventListener("keydown", (event) => {
    if (state().head === null) return;
    if (event.key === "ArrowLeft") step(loaded, -1);
    if (event.key === "ArrowRight") step(loaded, 1);
  });
  return dialog;
}
