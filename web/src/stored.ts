// A report's stored runs, for the views of the live page: study/comparison/stored_runs.h writes them.
import { changedBytes, changedMaps } from "./changed_maps";
import { AttentionMap, Report, headsInLayer, inflate, unpack } from "./data";
import { Change, MapKind } from "./place";
import { Attribution, Explained, Fit, HeadNumbers, Lens, Look, Predicted, Refused, Run, Source, Unfit, isChanged } from "./source";

// What is stored of a prompt besides its maps; lists have one entry a model.
export interface StoredPrompt {
  looks: Predicted[];
  lens: { points: Lens["points"] }[];
  attribution: (StoredAttribution | null)[];
  importance: Record<string, number>[];
  changes: StoredChange[];
}
// Numbers are thousandths. Row t explains the token after position t, the last row the likeliest of the
// first model.
interface StoredAttribution {
  parts: { part: string; kind: string; layer: number | null; head: number | null }[];
  tokens: { total: number; contributions: number[] }[];
}
// Lists have one entry a model; of the lens the points that can differ are there. Maps may be left out.
export interface StoredChange {
  ablate: string;
  layer: number;
  looks: Predicted[];
  lens: { points: Lens["points"] }[];
  maps: boolean;
}

// Kinds of parts under the names of the sums that `filigree logit-attribution` prints.
const kSums: Record<string, string> = {
  embedding: "embedding", positions: "positions", head: "heads", mlp: "mlps", "attention-bias": "biases", "output-bias": "biases", rest: "rest",
};

function attributionOf(model: string, { parts, tokens }: StoredAttribution, row: number): Attribution {
  const { total, contributions } = tokens[row]!;
  const sums: Record<string, { mean: number }> = {};
  parts.forEach(({ kind }, n) => {
    const sum = (sums[kSums[kind] ?? kind] ??= { mean: 0 });
    sum.mean += contributions[n]! / 1000;
  });
  return { model, total: { mean: total / 1000 }, sums, parts: parts.map((part, n) => ({ ...part, contribution: contributions[n]! / 1000 })) };
}

export class StoredSource implements Source {
  readonly changeable = false;
  private readonly maps = new Map<number, Promise<AttentionMap[][]>>();
  private readonly changed = new Map<number, Promise<Uint8Array>>();
  private readonly read = new Map<number, Promise<StoredPrompt | null>>();

  constructor(private readonly report: Report) {}

  get weighs(): boolean {
    return this.whole;
  }

  // Whether the prompts have more than maps.
  get whole(): boolean {
    return this.report.prompts.every(({ stored }) => stored !== null);
  }

  stored(prompt: string): Promise<StoredPrompt | null> {
    const n = this.find(prompt);
    const { stored } = this.report.prompts[n]!;
    if (!this.read.has(n))
      this.read.set(n, stored === null ? Promise.resolve(null) : inflate(stored).then((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as StoredPrompt));
    return this.read.get(n)!;
  }

  async look(run: Run, model: number, kind: MapKind): Promise<Look> {
    if (kind !== "weights") throw new Refused(`this report has no maps of the kind '${kind}'`, "filigree serve shows them");
    const { tokens } = this.report.prompts[this.find(run.prompt)]!;
    const stored = await this.stored(run.prompt);
    const [maps, change] = await Promise.all([this.mapsOf(run), this.changeOf(run)]);
    const cut = run.ablate.map((head) => ({ head, query: null, key: null }));
    const nothing: Predicted = { next: [], loss: null, plain_loss: null, surprise: [], divergence: null };
    return { ...((change ?? stored)?.looks[model] ?? nothing), tokens, maps: maps[model]!, cut };
  }

  async head(run: Run, head: string): Promise<HeadNumbers[]> {
    const { tokens } = this.report.prompts[this.find(run.prompt)]!;
    const maps = await this.mapsOf(run);
    return this.report.models.map((model, m) => {
      const map = maps[m]![model.heads.indexOf(head)]!;
      const weights = Array.from(map.stored(), (level) => level / 65535);
      const sums = { row: tokens.map(() => 0), column: tokens.map(() => 0) };
      for (let i = 0, cell = 0; i < tokens.length; ++i)
        for (let j = 0; j <= i; ++j, ++cell) {
          sums.row[i]! += weights[cell]!;
          sums.column[j]! += weights[cell]!;
        }
      return { model: model.name, tokens, weights, scores: null, gate: null, value_norms: null,
        row_sums: sums.row, column_sums: sums.column, reads: null, writes: null };
    });
  }

  // Of the run as it is: that is what changes are chosen by.
  async importance(run: Run): Promise<Record<string, number>[]> {
    return (await this.allOf(run.prompt)).importance;
  }

  async lens(run: Run): Promise<Lens[]> {
    const { lens } = await this.allOf(run.prompt);
    const change = await this.changeOf(run);
    const { tokens } = this.report.prompts[this.find(run.prompt)]!;
    return lens.map(({ points }, m) => {
      const changed = new Map(change?.lens[m]!.points.map((point) => [point.point, point]));
      return { model: this.report.models[m]!.name, tokens, points: points.map((point) => changed.get(point.point) ?? point) };
    });
  }

  async attribution(run: Run, of: Explained): Promise<Attribution[]> {
    if (isChanged(run)) throw new Refused("this report has stored what parts add in the run as it is alone", "filigree serve computes it of any");
    const { attribution } = await this.allOf(run.prompt);
    return attribution.flatMap((one, m) => {
      if (one === null) return []; // its logits are no sum of what its parts write
      return [attributionOf(this.report.models[m]!.name, one, "at" in of ? of.at - 1 : one.tokens.length - 1)];
    });
  }

  // One of the parts that matter most of a prompt can be off.
  async unfit({ prompt, ablate, scale, patch }: Run): Promise<Fit> {
    const stored = await this.stored(prompt);
    const known = ablate.filter((text) => stored?.changes.some((change) => change.ablate === text));
    const unfit = (kind: Change["kind"], texts: string[]): Unfit[] =>
      texts.map((text) => ({ kind, text, error: "this report has not stored that change \u2013 filigree serve computes any", elsewhere: true }));
    return { unfit: [...unfit("ablate", ablate.filter((text) => text !== known[0])), ...unfit("scale", scale), ...unfit("patch", patch)], whole: null };
  }

  private async allOf(prompt: string): Promise<StoredPrompt> {
    const stored = await this.stored(prompt);
    if (stored === null) throw new Refused("this report has not stored that", "filigree serve computes it");
    return stored;
  }

  // Null: nothing is changed.
  private async changeOf(run: Run): Promise<StoredChange | null> {
    if (!isChanged(run)) return null;
    const stored = await this.stored(run.prompt);
    const one = run.ablate.length === 1 && run.scale.length + run.patch.length === 0;
    const found = one ? stored?.changes.find(({ ablate }) => run.ablate[0] === ablate) : undefined;
    if (!found) throw new Refused("this report has not stored that change", "filigree serve computes any");
    return found;
  }

  private find(prompt: string): number {
    const n = this.report.prompts.findIndex(({ text }) => text === prompt);
    if (n < 0) throw new Refused("this report does not have that prompt", "choose one of those it has, or run filigree serve");
    return n;
  }

  // Of each model.
  private async mapsOf(run: Run): Promise<AttentionMap[][]> {
    const plain = await this.plainMaps(this.find(run.prompt));
    const change = await this.changeOf(run);
    return change?.maps ? this.changedMapsOf(run.prompt, change, plain) : plain;
  }

  private plainMaps(n: number): Promise<AttentionMap[][]> {
    if (!this.maps.has(n)) {
      const { tokens, maps } = this.report.prompts[n]!;
      this.maps.set(n, Promise.all(this.report.models.map((model, m) => unpack(maps[m]!, model.heads.length, tokens.length))));
    }
    return this.maps.get(n)!;
  }

  private async changedMapsOf(prompt: string, change: StoredChange, plain: AttentionMap[][]): Promise<AttentionMap[][]> {
    const n = this.find(prompt);
    const { tokens, changed_maps } = this.report.prompts[n]!;
    if (!this.changed.has(n)) this.changed.set(n, inflate(changed_maps!).then((bytes) => new Uint8Array(bytes)));
    const bytes = await this.changed.get(n)!;
    const first = ({ layer }: StoredChange, m: number): number => (layer + 1) * headsInLayer(this.report.models[m]!);
    const bytesOf = (one: StoredChange): number[] =>
      plain.map((maps, m) => changedBytes(maps.length, first(one, m), tokens.length));
    const { changes } = await this.allOf(prompt);
    let start = 0;
    for (const one of changes) {
      if (one === change) break;
      if (one.maps) start += bytesOf(one).reduce((sum, count) => sum + count, 0);
    }
    const counts = bytesOf(change);
    return plain.map((maps, m) => {
      const begin = start;
      start += counts[m]!;
      return changedMaps(maps, bytes, begin, first(change, m));
    });
  }
}
