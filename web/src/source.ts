// Where the views get their numbers: a server that computes them (live/api.ts), or a report that has
// some of them stored (stored.ts).
import { AttentionMap } from "./data";
import { Change, MapKind } from "./place";

// Edges of a head that carry nothing in a run whatever their weights; null: of any query, to any key.
export interface CutEdges {
  head: string;
  query: number | null;
  key: number | null;
}

// Those of each head.
export function cutByHead(heads: string[], cut: CutEdges[]): CutEdges[][] {
  return heads.map((head) => cut.filter((edges) => edges.head === head));
}

export function isCut(ofHead: CutEdges[], query: number, key: number): boolean {
  return ofHead.some((edges) => (edges.query ?? query) === query && (edges.key ?? key) === key);
}

// A prompt with what is changed in its runs.
export interface Run {
  prompt: string;
  ablate: string[];
  scale: string[];
  patch: string[];
}

export function runOf(prompt: string, changes: Change[]): Run {
  const of = (kind: string): string[] => changes.filter((change) => change.kind === kind).map(({ text }) => text);
  return { prompt, ablate: of("ablate"), scale: of("scale"), patch: of("patch") };
}

export function isChanged(run: Run): boolean {
  return run.ablate.length + run.scale.length + run.patch.length > 0;
}

// What is asked for is not to be had, and what would help.
export class Refused extends Error {
  constructor(
    message: string,
    readonly remedy: string,
  ) {
    super(message);
  }

  get text(): string {
    return this.remedy ? `${this.message} \u2013 ${this.remedy}` : this.message;
  }
}

// A change that a run of a prompt cannot make.
export interface Unfit extends Change {
  error: string;
  elsewhere: boolean; // whether the run of another prompt could
}

export interface Fit {
  unfit: Unfit[];
  whole: { error: string; remedy: string } | null; // why all changes together are too many
}

export const sameChange = (a: Change, b: Change): boolean => a.kind === b.kind && a.text === b.text;

export interface NextToken {
  token: string;
  probability: number;
  rank: number; // from 1
  plain_probability: number | null; // without the changes
  plain_rank: number | null;
}

// What a run says of its prompt.
export interface Predicted {
  next: NextToken[]; // the likeliest first
  loss: number | null; // nats a token of the prompt
  plain_loss: number | null;
  surprise: number[]; // of each token after the first
  divergence: number | null; // of the next token, from the run without changes
}

export interface Look extends Predicted {
  tokens: string[];
  maps: AttentionMap[];
  cut: CutEdges[];
}

export interface TokenEffect {
  token: string;
  effect: number;
}

// One head of one model; null is what the source does not have. Maps are lower triangles row by row.
export interface HeadNumbers {
  model: string;
  tokens: string[];
  weights: number[];
  scores: (number | null)[] | null;
  gate: number[] | null;
  value_norms: number[] | null;
  row_sums: number[];
  column_sums: number[];
  reads: { token: string; share: number; raises: string; lowers: string; own_effect: number; own_rank: number }[] | null;
  writes: { query: number; raises: TokenEffect[]; lowers: TokenEffect[] } | null;
}

export interface LensCell {
  top: { token: string; probability: number }[];
}
export interface Lens {
  model: string;
  tokens: string[];
  points: { point: string; positions: LensCell[] }[];
}

export interface Attribution {
  model: string;
  total: { mean: number };
  sums: Record<string, { mean: number }>;
  parts: { part: string; kind: string; layer: number | null; head: number | null; contribution: number }[];
}
// The token at a position after those before it, or one after the whole prompt.
export type Explained = { at: number } | { answer: string };

export interface Source {
  readonly changeable: boolean; // whether runs can be changed at will
  readonly weighs: boolean; // whether it knows how much parts matter
  look(run: Run, model: number, kind: MapKind, signal: AbortSignal): Promise<Look>;
  head(run: Run, head: string, query: number, signal: AbortSignal): Promise<HeadNumbers[]>;
  // What every part does for the likeliest token, one a model.
  importance(run: Run, signal: AbortSignal): Promise<Record<string, number>[]>;
  lens(run: Run, signal: AbortSignal): Promise<Lens[]>;
  attribution(run: Run, of: Explained, signal: AbortSignal): Promise<Attribution[]>;
  // Which changes of a run it cannot make. Refused: it has no run of the prompt at all.
  unfit(run: Run, signal: AbortSignal): Promise<Fit>;
}
