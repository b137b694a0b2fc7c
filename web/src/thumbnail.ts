// Small pictures of maps, drawn pixel by pixel: no canvas is drawn onto another, since Chromium loses what
// stands before such a canvas when the page is printed.
import { weightPixels } from "./colour";
import { AttentionMap } from "./data";
import { context, element } from "./dom";

// Draws the maps of one model into the places that its buttons have for them.
export interface Painter {
  // `shown` are the heads that are there, whose places may have moved.
  paint(shown: number[], maps: AttentionMap[]): void;
}

// A canvas in every place.
export class CanvasPainter implements Painter {
  private readonly canvases: HTMLCanvasElement[];

  constructor(places: HTMLElement[]) {
    this.canvases = places.map((place) => place.appendChild(element("canvas")));
  }

  paint(shown: number[], maps: AttentionMap[]): void {
    const pictures = new Thumbnails(maps[0]!.size);
    for (const head of shown) pictures.draw(maps[head]!, this.canvases[head]!);
  }
}

const kSide = 96; // CSS pixels at most

// Cells are whole numbers of pixels; of more cells than pixels the largest in each pixel is shown.
class Thumbnails {
  private readonly image: ImageData;
  private readonly pixels: Uint32Array;
  private readonly enlarged: number; // 0: made smaller
  private readonly side: number;

  constructor(private readonly size: number) {
    const most = Math.round(kSide * (window.devicePixelRatio || 1));
    this.enlarged = size <= most ? Math.floor(most / size) : 0;
    this.side = this.enlarged > 0 ? size * this.enlarged : most;
    this.image = new ImageData(this.side, this.side);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  draw(map: AttentionMap, canvas: HTMLCanvasElement): void {
    if (this.enlarged > 0) this.enlarge(map.stored());
    else this.reduce(map.stored());
    if (canvas.width !== this.side) canvas.width = canvas.height = this.side;
    context(canvas).putImageData(this.image, 0, 0);
  }

  private enlarge(cells: Uint16Array): void {
    const { pixels, side, size, enlarged } = this;
    const colours = weightPixels();
    for (let i = 0, cell = 0; i < size; ++i) {
      const row = i * enlarged * side;
      for (let j = 0, at = row; j <= i; ++j, ++cell) {
        const colour = colours[(cells[cell]! + 63) >> 6]!;
        for (let k = 0; k < enlarged; ++k, ++at) pixels[at] = colour;
      }
      for (let k = 1; k < enlarged; ++k) pixels.copyWithin(row + k * side, row, row + (i + 1) * enlarged);
    }
  }

  private reduce(cells: Uint16Array): void {
    const { pixels, side, size } = this;
    const colours = weightPixels();
    const largest = new Uint16Array(side * side);
    const place = Uint16Array.from({ length: size }, (_, n) => Math.floor((n * side) / size));
    for (let i = 0, cell = 0; i < size; ++i) {
      const row = place[i]! * side;
      for (let j = 0; j <= i; ++j, ++cell) {
        const at = row + place[j]!;
        if (cells[cell]! > largest[at]!) largest[at] = cells[cell]!;
      }
    }
    for (let y = 0; y < side; ++y)
      for (let x = 0; x <= y; ++x) pixels[y * side + x] = colours[(largest[y * side + x]! + 63) >> 6]!;
  }
}
