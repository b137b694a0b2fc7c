// All maps of a panel on one canvas behind its buttons: hundreds of canvases of their own take a browser
// far longer to show than one. A pixel of the screen shows the largest of the cells that fall on it.
import { weightPixels } from "../colour";
import { AttentionMap } from "../data";
import { context, element } from "../dom";
import { Painter } from "../thumbnail";

interface Spot {
  x: number; // device pixels
  y: number;
}

export class SheetPainter implements Painter {
  private readonly canvas = element("canvas", { class: "sheet", "aria-hidden": "true" });
  private image: ImageData | null = null; // null: places are to be measured
  private pixels = new Uint32Array();
  private spots: Spot[] = [];
  private side = 0; // of a map
  private largest = new Uint16Array(); // of a row of pixels
  private last: { shown: number[]; maps: AttentionMap[] } | null = null;

  constructor(
    private readonly places: HTMLElement[],
    private readonly room: HTMLElement,
  ) {
    room.before(this.canvas); // not in it: whatever is drawn on it, the buttons stay as they are painted
    new ResizeObserver(() => {
      this.image = null;
      if (this.last) this.paint(this.last.shown, this.last.maps);
    }).observe(room);
  }

  paint(shown: number[], maps: AttentionMap[]): void {
    if (this.last?.shown !== shown) this.image = null;
    this.last = { shown, maps };
    if (shown.length === 0) return context(this.canvas).clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (!this.image && !this.measure(shown)) return; // nobody sees it
    const colours = weightPixels();
    const { size } = maps[0]!;
    // Where the rows and columns begin, the same in all maps.
    const edges = Uint16Array.from({ length: size + 1 }, (_, n) => (size > this.side ? Math.floor((n * this.side) / size) : Math.round((n * this.side) / size)));
    shown.forEach((head, n) => {
      if (size > this.side) this.reduce(maps[head]!, this.spots[n]!, edges, colours);
      else this.enlarge(maps[head]!, this.spots[n]!, edges, colours);
    });
    context(this.canvas).putImageData(this.image!, 0, 0);
  }

  // Where the maps are, in pixels of the screen.
  private measure(shown: number[]): boolean {
    const room = this.room.getBoundingClientRect();
    if (room.width === 0 || room.height === 0) return false;
    const ratio = window.devicePixelRatio || 1;
    const boxes = shown.map((head) => this.places[head]!.getBoundingClientRect());
    this.side = Math.floor(boxes[0]!.width * ratio);
    if (this.side === 0) return false;
    this.largest = new Uint16Array(this.side);
    this.spots = boxes.map((box) => ({ x: Math.round((box.left - room.left) * ratio), y: Math.round((box.top - room.top) * ratio) }));
    this.canvas.width = Math.ceil(room.width * ratio);
    this.canvas.height = Math.ceil(room.height * ratio);
    this.image = new ImageData(this.canvas.width, this.canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    return true;
  }

  private enlarge(map: AttentionMap, { x, y }: Spot, edges: Uint16Array, colours: Uint32Array): void {
    const { pixels, side } = this;
    const { size } = map;
    const cells = map.stored();
    const stride = this.image!.width;
    for (let i = 0, cell = 0; i < size; ++i) {
      const row = (y + edges[i]!) * stride + x;
      let at = row;
      for (let j = 0; j <= i; ++j, ++cell) {
        const colour = colours[(cells[cell]! + 63) >> 6]!;
        for (const end = row + edges[j + 1]!; at < end; ++at) pixels[at] = colour;
      }
      pixels.fill(colours[0]!, at, row + side);
      for (let next = edges[i]! + 1; next < edges[i + 1]!; ++next) pixels.copyWithin((y + next) * stride + x, row, row + side);
    }
  }

  private reduce(map: AttentionMap, { x, y }: Spot, edges: Uint16Array, colours: Uint32Array): void {
    const { pixels, side, largest } = this;
    const { size } = map;
    const cells = map.stored();
    const stride = this.image!.width;
    for (let i = 0, cell = 0; i < size; ++i) {
      for (let j = 0; j <= i; ++j, ++cell) if (cells[cell]! > largest[edges[j]!]!) largest[edges[j]!] = cells[cell]!;
      if (edges[i + 1] === edges[i]) continue; // the next row falls on the same pixels
      const row = (y + edges[i]!) * stride + x;
      for (let n = 0; n < side; ++n) pixels[row + n] = colours[(largest[n]! + 63) >> 6]!;
      largest.fill(0);
    }
  }
}
