// A report's stored runs, for the views of the live page: study/comparison/stored_runs.h writes them.
import { AttentionMap, Report, inflate, unpack } from "./data";
import { MapKind } from "./place";
import { Attribution, Explained, HeadNumbers, Lens, Look, Predicted, Refused, Run, Source, isChanged } from "./source";

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
export interface StoredChange {
  ablate: string;
  looks: Predicted[];
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
    const n = this.find(run.prompt);
    const { tokens } = this.report.prompts[n]!;
    const [maps, stored] = await Promise.all([this.mapsOf(n), this.stored(run.prompt)]);
    const change = isChanged(run) ? stored?.changes.find(({ ablate }) => run.ablate.length === 1 && run.ablate[0] === ablate) : undefined;
    if (isChanged(run) && !change) throw new Refused("this report has not stored that change", "filigree serve computes any");
    const nothing: Predicted = { next: [], loss: null, plain_loss: null, surprise: [], divergence: null };
    return { ...((change ?? stored)?.looks[model] ?? nothing), tokens, maps: maps[model]! };
  }

  async head(run: Run, head: string): Promise<HeadNumbers[]> {
    const n = this.find(run.prompt);
    const { tokens } = this.report.prompts[n]!;
    const maps = await this.mapsOf(n);
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

  async importance(run: Run): Promise<Record<string, number>[]> {
    return (await this.allOf(run)).importance;
  }

  async lens(run: Run): Promise<Lens[]> {
    const { lens } = await this.allOf(run);
    const { tokens } = this.report.prompts[this.find(run.prompt)]!;
    return lens.map(({ points }, m) => ({ model: this.report.models[m]!.name, tokens, points }));
  }

  async attribution(run: Run, of: Explained): Promise<Attribution[]> {
    const { attribution } = await this.allOf(run);
    return attribution.flatMap((one, m) => {
      if (one === null) return []; // its logits are no sum of what its parts write
      return [attributionOf(this.report.models[m]!.name, one, "at" in of ? of.at - 1 : one.tokens.length - 1)];
    });
  }

  private async allOf(run: Run): Promise<StoredPrompt> {
    const stored = await this.stored(run.prompt);
    if (stored === null || isChanged(run)) throw new Refused("this report has not stored that", "filigree serve computes it");
    return stored;
  }

  private find(prompt: string): number {
    const n = this.report.prompts.findIndex(({ text }) => text === prompt);
    if (n < 0) throw new Refused("this report does not have that prompt", "choose one of those it has, or run filigree serve");
    return n;
  }

  private mapsOf(n: number): Promise<AttentionMap[][]> {
    if (!this.maps.has(n)) {
      const { tokens, maps } = this.report.prompts[n]!;
      this.maps.set(n, Promise.all(this.report.models.map((model, m) => unpack(maps[m]!, model.heads.length, tokens.length))));
    }
    return this.maps.get(n)!;
  }
}
