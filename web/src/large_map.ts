// A large map with the names of tokens on both axes.
import { Rgb } from "./colour";
import { visible } from "./data";
import { context, element, sharpCanvas } from "./dom";
import { matrixImage } from "./matrix";

export interface Cell {
  query: number;
  key: number;
}

export interface LargeMapOptions {
  title: string;
  subtitle: string;
  name: string; // for tests
  tokens: string[];
  side: number; // CSS pixels of the cells
  colour: (query: number, key: number) => Rgb;
  pointed: (cell: Cell | null) => void; // is told the cell under the pointer
  clicked?: (cell: Cell) => void;
  crossed?: (query: number, key: number) => boolean; // cells that are switched off
  sums?: { rows: number[]; columns: number[] }; // bars on the right and at the top; none: room for them
}

const kBars = 30; // CSS pixels of the longest bar

export class LargeMap {
  readonly root: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly picture: HTMLCanvasElement;
  private readonly left: number; // of the cells
  private readonly top: number;
  private readonly width: number; // of the whole

  constructor(private readonly options: LargeMapOptions) {
    const { tokens, side, sums } = options;
    const labels = side / tokens.length >= 9;
    const bars = sums ? kBars : 0;
    this.left = labels ? 78 : 8;
    this.top = bars;
    this.width = this.left + side + bars;
    this.canvas = sharpCanvas(this.width, this.top + side + this.left);
    this.canvas.dataset["map"] = options.name;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${options.title}, ${options.subtitle}`);
    this.picture = matrixImage(tokens.length, tokens.length, (i, j) => (j > i ? null : options.colour(i, j)));
    this.canvas.addEventListener("pointermove", (event) => options.pointed(this.cellAt(event)));
    this.canvas.addEventListener("pointerleave", () => options.pointed(null));
    this.canvas.addEventListener("click", (event) => {
      const cell = this.cellAt(event);
      if (cell) options.clicked?.(cell);
    });
    this.root = element(
      "figure",
      { class: "large" },
      element("figcaption", {}, element("b", {}, options.title), ` ${options.subtitle}`),
      this.canvas,
    );
    this.draw(null);
  }

  private cellAt(event: MouseEvent): Cell | null {
    const box = this.canvas.getBoundingClientRect();
    const { tokens, side } = this.options;
    const scale = this.width / box.width; // narrow screens show it smaller
    const place = (from: number): number => Math.floor((from / side) * tokens.length);
    const key = place((event.clientX - box.left) * scale - this.left);
    const query = place((event.clientY - box.top) * scale - this.top);
    return key < 0 || query < 0 || query >= tokens.length || key > query ? null : { query, key };
  }

  draw(cell: Cell | null): void {
    const ctx = context(this.canvas);
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--text");
    const faint = style.getPropertyValue("--muted");
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const ratio = this.canvas.width / this.width;
    ctx.scale(ratio, ratio);
    ctx.translate(this.left, this.top);
    const { side, tokens, sums } = this.options;
    const step = side / tokens.length;
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.picture, 0, 0, side, side);
    ctx.strokeStyle = faint;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(0, 0);
    ctx.lineTo(0, side);
    ctx.lineTo(side, side);
    ctx.stroke();
    if (sums) this.bars(ctx, sums, style.getPropertyValue("--category-1"));
    if (this.left > 8) this.labels(ctx, cell, ink, faint);
    this.crosses(ctx, style.getPropertyValue("--category-0"));
    if (cell) {
      ctx.strokeStyle = style.getPropertyValue("--category-0");
      ctx.lineWidth = 1.5;
      ctx.strokeRect(cell.key * step, cell.query * step, step, step);
    }
  }

  private bars(ctx: CanvasRenderingContext2D, sums: { rows: number[]; columns: number[] }, colour: string): void {
    const { side, tokens } = this.options;
    const step = side / tokens.length;
    const thick = Math.max(1, step - 1);
    ctx.fillStyle = colour;
    // A row of attention sums to 1 at most, a column to whatever it gets.
    const most = Math.max(1, ...sums.columns);
    sums.rows.forEach((sum, n) => ctx.fillRect(side + 2, n * step, Math.min(1, sum) * (kBars - 2), thick));
    sums.columns.forEach((sum, n) => {
      const high = (sum / most) * (kBars - 2);
      ctx.fillRect(n * step, -2 - high, thick, high);
    });
  }

  private crosses(ctx: CanvasRenderingContext2D, colour: string): void {
    const { side, tokens, crossed } = this.options;
    if (!crossed) return;
    const step = side / tokens.length;
    ctx.strokeStyle = colour;
    ctx.lineWidth = 2;
    ctx.beginPath();
    for (let i = 0; i < tokens.length; ++i)
      for (let j = 0; j <= i; ++j)
        if (crossed(i, j)) {
          ctx.moveTo(j * step, i * step);
          ctx.lineTo((j + 1) * step, (i + 1) * step);
          ctx.moveTo((j + 1) * step, i * step);
          ctx.lineTo(j * step, (i + 1) * step);
        }
    ctx.stroke();
  }

  private labels(ctx: CanvasRenderingContext2D, cell: Cell | null, ink: string, faint: string): void {
    const { side, tokens } = this.options;
    const step = side / tokens.length;
    ctx.font = `${Math.min(12, step * 0.95)}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    const clip = (token: string): string => {
      const text = visible(token);
      return text.length > 11 ? `${text.slice(0, 10)}\u2026` : text;
    };
    tokens.forEach((token, n) => {
      ctx.fillStyle = !cell || cell.query === n ? ink : faint;
      ctx.fillText(clip(token), -5, (n + 0.5) * step);
      ctx.save();
      ctx.translate((n + 0.5) * step, side + 5);
      ctx.rotate(-Math.PI / 2);
      ctx.fillStyle = !cell || cell.key === n ? ink : faint;
      ctx.fillText(clip(token), 0, 0);
      ctx.restore();
    });
  }
}
