// The report's data: what the program writes into the page, and access to the maps in it.
import { Look, Unfit } from "./source";
import { change, state } from "./state";

export interface HeadRole {
  role: string; // "previous", "sink+current", ...
  confidence: number;
}

export interface Model {
  name: string;
  layers: string[]; // "L3"
  heads: string[]; // "L3H7", layer by layer
  facts: [string, string][]; // shown as they are: loss, active edges, ...
  roles: HeadRole[]; // layer by layer
  statistics: Record<string, number>[]; // of each head, by name
}

export interface StatisticRow {
  name: string; // key of Model.statistics
  label: string;
  over: string; // what it is taken over; "": all heads and rows
  unit: string; // "", "%"
  values: number[]; // one a model
  intervals: ([number, number] | null)[]; // of the values; none: unknown
  change?: number;
  low?: number;
  high?: number;
  p?: number;
  least_p?: number; // the smallest p that so many prompts can give
}

// What the page is about: a line, and a few numbers with what they are.
export interface Story {
  line: string;
  numbers: { value: string; label: string }[];
}

export interface Pairs {
  measure: string;
  matrix: number[][]; // heads x heads, one row a head; NaN is null
  order: number[]; // by clustering
}

export interface Prompt {
  text: string;
  tokens: string[];
  maps: string[]; // one a model: base64 of deflated 16-bit weights, see unpack()
  stored: string | null; // what else is known of it (stored.ts), deflated, base64
  changed_maps: string | null; // bytes of the maps of its changed runs (changed_maps.ts), deflated, base64
}

// What a task needs of each model: a table of circuit sizes, and figures.
export interface Task {
  name: string;
  description: string;
  facts: [string, string][];
  columns: string[];
  rows: string[][]; // the first cell names the row
  heads: string[][]; // of each model: those of its circuit, the most important first
  figures: { title: string; caption: string; svg: string; dark_svg: string | null }[]; // deflated, base64
  stored: string | null; // runs of its circuits (circuit_runs.ts), deflated, base64
}

// "#RRGGBB" each; src/base/palette.h says what they stand for.
export interface Palette {
  page: string;
  panel: string;
  panel_border: string;
  text: string;
  muted: string;
  grid: string;
  frame: string;
  empty: string;
  magnitude: string[];
  negative: string[];
  positive: string[];
  undefined: string;
  categories: string[];
}

export type Theme = "light" | "dark";

export interface Report {
  format: string;
  title: string;
  story: Story;
  models: Model[];
  prompts: Prompt[];
  statistics: StatisticRow[];
  pairs: Pairs[][]; // of each model
  tasks: Task[];
  roles: string[]; // those a head can play, in the order of the categories
  colors: Record<Theme, Palette>;
  made: [string, string][]; // command, versions, ...
}

// One head's weights on one prompt, a lower triangle.
export class AttentionMap {
  constructor(
    readonly size: number,
    private readonly cells: Uint16Array,
    private readonly start: number,
  ) {}

  // Weight of key j for query i; 0 above the diagonal. Stored in 65535ths; what is not exactly zero is
  // at least one of them, so that zero means zero.
  at(i: number, j: number): number {
    return j > i ? 0 : this.cells[this.start + (i * (i + 1)) / 2 + j]! / 65535;
  }

  // The cells as they are stored, row by row, for loops over all of them.
  stored(): Uint16Array {
    return this.cells.subarray(this.start, this.start + (this.size * (this.size + 1)) / 2);
  }
}

// What the report holds deflated and in base64.
export async function inflate(base64: string): Promise<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let n = 0; n < text.length; ++n) bytes[n] = text.charCodeAt(n);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// The maps of all heads of a model on a prompt, layer by layer: little-endian 16-bit numbers, the
// lower triangle of each map row by row.
export async function unpack(text: string, heads: number, size: number): Promise<AttentionMap[]> {
  const view = new DataView(await inflate(text));
  const cells = new Uint16Array(view.byteLength / 2);
  for (let n = 0; n < cells.length; ++n) cells[n] = view.getUint16(2 * n, true);
  return mapsOf(cells, heads, size);
}

// One map after the other.
export function mapsOf(cells: Uint16Array, heads: number, size: number): AttentionMap[] {
  const each = (size * (size + 1)) / 2;
  if (cells.length !== heads * each)
    throw new Error(`there are ${cells.length} weights where ${heads * each} were expected`);
  return Array.from({ length: heads }, (_, h) => new AttentionMap(size, cells, h * each));
}

// The report, and what is shown of it: one prompt with the runs of the models on it.
export class LoadedReport {
  looks: Look[] = []; // one a model; none: there is nothing to show
  leftOut: Unfit[] = []; // changes that the place names and the runs do not have
  private text = "";

  constructor(readonly report: Report) {}

  prompt(): { text: string; tokens: string[] } {
    return { text: this.text, tokens: this.looks[0]?.tokens ?? [] };
  }

  maps(): AttentionMap[][] {
    return this.looks.map(({ maps }) => maps);
  }

  // Whether a head of a model writes nothing, wherever it looks.
  isOff(model: number, head: string): boolean {
    return (this.looks[model]?.cut ?? []).some((edges) => edges.head === head && edges.query === null && edges.key === null);
  }

  // Views redraw for the number of the prompt, which grows.
  show(text: string, looks: Look[], leftOut: Unfit[] = []): void {
    this.text = text;
    this.looks = looks;
    this.leftOut = leftOut;
    change({ prompt: state().prompt + 1 });
  }
}

export function load(): LoadedReport {
  const element = document.getElementById("filigree-data");
  if (!element?.textContent) throw new Error("this page holds no report");
  const report = JSON.parse(element.textContent) as Report;
  if (report.format !== "filigree-report-5")
    throw new Error(`this viewer does not know the format '${report.format}'`);
  return new LoadedReport(report);
}

export function headsInLayer(model: Model): number {
  return model.heads.length / model.layers.length;
}

// A token as one can see it: spaces and line breaks become symbols.
export function visible(token: string): string {
  return token.replace(/ /g, "\u00b7").replace(/\n/g, "\u23ce").replace(/\t/g, "\u21e5") || "\u2205";
}
