// The server's API (src/serve/api.h), as far as the page asks for it.
import { HeadRole, Palette, Theme, mapsOf } from "../data";
import { MapKind } from "../place";
import { Attribution, Explained, Fit, HeadNumbers, Lens, Look, Refused, Run, Source, isChanged } from "../source";

export interface ServedModel {
  name: string;
  family: string;
  parameters: number;
  context: number;
  vocabulary: number;
  gated: boolean;
  features: boolean; // whether transcoders lie beside it
  layers: string[];
  heads: string[];
}

export interface Served {
  filigree: string;
  models: ServedModel[];
  tasks: { name: string; description: string }[];
  limits: { prompt_bytes: number };
  colors: Record<Theme, Palette>;
}

let token = "";
export function useToken(text: string): void {
  token = text;
}

async function send(method: string, path: string, body?: object, signal?: AbortSignal, keepalive = false): Promise<Response> {
  const headers: Record<string, string> = {};
  if (token) headers["X-Filigree-Token"] = token;
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body ? JSON.stringify(body) : null, signal: signal ?? null, keepalive });
  if (response.ok) return response;
  const answer = (await response.json()) as { error?: string; remedy?: string };
  // The remedy of a 400 is for whoever writes requests; what was wrong says to a reader what is right.
  throw new Refused(answer.error ?? "no answer", response.status === 400 ? "" : (answer.remedy ?? ""));
}

async function ask<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
  return (await (await send(method, path, body, signal)).json()) as T;
}

// Of an answer that comes bit by bit.
async function eachLine(response: Response, each: (line: string) => void): Promise<void> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const lines = (rest + piece.value).split("\n");
    rest = lines.pop()!;
    lines.forEach(each);
  }
}

export const served = (): Promise<Served> => ask("GET", "/api/models");

export interface FoundRoles {
  names: string[];
  models: { model: string; roles: HeadRole[] | null }[];
}
export const foundRoles = (): Promise<FoundRoles> => ask("GET", "/api/roles");

// The maps of a text that the server remembers, for what is typed behind it.
interface Remembered {
  text: string;
  size: number; // tokens
  cells: Uint16Array;
}
type LookAnswer = Omit<Look, "maps"> & { heads: string[]; text: string | null; rows: number };

// Of each map the rows that were there, then those that came.
function cellsOf(before: Remembered | null, came: Uint16Array, { heads, tokens, rows }: LookAnswer): Uint16Array {
  if (rows === 0 || !before) return came;
  const triangle = (size: number): number => (size * (size + 1)) / 2;
  const old = triangle(before.size);
  const kept = triangle(rows);
  const each = triangle(tokens.length);
  const cells = new Uint16Array(heads.length * each);
  for (let head = 0; head < heads.length; ++head) {
    cells.set(before.cells.subarray(head * old, head * old + kept), head * each);
    cells.set(came.subarray(head * (each - kept), (head + 1) * (each - kept)), head * each + kept);
  }
  return cells;
}

// Everything that views ask for, of the server's models.
export class ApiSource implements Source {
  readonly changeable = true;
  readonly weighs = true;
  private readonly remembered: (Remembered | null)[];

  private readonly models: string[];

  constructor(private readonly served: Served) {
    this.models = served.models.map(({ name }) => name);
    this.remembered = this.models.map(() => null);
  }

  // The server does not read a request that is far too long, and could not say how long the prompt is.
  private checkLength(prompt: string): void {
    const { models, limits } = this.served;
    const bytes = prompt.length > limits.prompt_bytes / 3 ? new TextEncoder().encode(prompt).length : 0;
    if (bytes > limits.prompt_bytes)
      throw new Refused(`the prompt has ${bytes} bytes`, `it can have at most ${limits.prompt_bytes}, and at most ${Math.min(...models.map(({ context }) => context))} tokens`);
  }

  // One request a model, so that each is answered as soon as it can be. src/serve/prompt_view.h has the format.
  async look(run: Run, model: number, kind: MapKind, signal: AbortSignal): Promise<Look> {
    this.checkLength(run.prompt);
    const before = this.remembered[model]!;
    const after = before && !isChanged(run) && kind === "weights" ? { after: before.text } : {};
    const response = await send("POST", "/api/look", { ...run, models: [this.models[model]], kind, ...after }, signal);
    const bytes = await response.arrayBuffer();
    const length = new DataView(bytes).getUint32(0, true);
    const text = new TextDecoder().decode(new Uint8Array(bytes, 4, length));
    const found = (JSON.parse(text) as { models: LookAnswer[] }).models[0]!;
    // The pages of browsers are little-endian, too.
    const cells = cellsOf(before, new Uint16Array(bytes, 4 + length), found);
    if (found.text !== null) this.remembered[model] = { text: found.text, size: found.tokens.length, cells };
    return { ...found, maps: mapsOf(cells, found.heads.length, found.tokens.length) };
  }

  head(run: Run, head: string, query: number, signal: AbortSignal): Promise<HeadNumbers[]> {
    return this.of("/api/head", { ...run, head, query }, signal);
  }

  async importance(run: Run, signal: AbortSignal): Promise<Record<string, number>[]> {
    return (await this.of<{ parts: Record<string, number> }>("/api/importance", run, signal)).map(({ parts }) => parts);
  }

  lens(run: Run, signal: AbortSignal): Promise<Lens[]> {
    return this.of("/api/lens", run, signal);
  }

  attribution(run: Run, of: Explained, signal: AbortSignal): Promise<Attribution[]> {
    return this.of("/api/attribution", { ...run, ...of }, signal);
  }

  unfit(run: Run, signal: AbortSignal): Promise<Fit> {
    return ask("POST", "/api/changes", run, signal);
  }

  private async of<T>(path: string, body: object, signal: AbortSignal): Promise<T[]> {
    return (await ask<{ models: T[] }>("POST", path, body, signal)).models;
  }
}

export interface GeneratedToken {
  token: string;
  text: string;
  probability: number;
  edges: [string, number, number][]; // head, position, weight
}
export interface GenerateOptions {
  tokens: number;
  temperature: number;
  seed: number;
  least: number;
}

// Calls `each` as the tokens come; the text ends with the promise.
export async function generate(run: Run, model: string, options: GenerateOptions, each: (token: GeneratedToken) => void, signal: AbortSignal): Promise<string> {
  const response = await send("POST", "/api/generate", { ...run, models: [model], ...options }, signal);
  let finish = "";
  await eachLine(response, (line) => {
    const said = JSON.parse(line) as GeneratedToken & { finish?: string; error?: string; remedy?: string };
    if (said.error !== undefined) throw new Refused(said.error, said.remedy ?? "");
    if (said.finish !== undefined) finish = said.finish;
    else each(said);
  });
  return finish;
}

export interface TaskPrompt {
  clean: string;
  corrupt: string;
  answer: string[];
  wrong: string[];
}
export interface TaskExamples {
  task: string;
  description: string;
  prompts: TaskPrompt[];
}
export const taskExamples = (task: string, signal: AbortSignal): Promise<TaskExamples> => ask("POST", "/api/task", { task, prompts: 4 }, signal);

export interface Job<Result> {
  job: string;
  state: "running" | "done" | "failed" | "cancelled";
  progress: { label: string; unit: string; done: number; total: number; metric: string };
  error: string | null;
  curves?: Record<string, [number, number][]>; // by label, in the order measured
  result?: Result | null;
}
export const startJob = <T>(request: object): Promise<Job<T>> => ask("POST", "/api/jobs", request);
// Calls `each` whenever the job has got on. The server ends long answers: the job may still run.
export async function followJob<T>(job: string, each: (now: Job<T>) => void): Promise<void> {
  await eachLine(await send("GET", `/api/jobs/${job}/events`), (line) => each(JSON.parse(line) as Job<T>));
}
// Also while the page goes away.
export const cancelJob = (job: string): Promise<Response> => send("DELETE", `/api/jobs/${job}`, undefined, undefined, true);

// A file of a job's result: one of its figures, or its numbers as JSON.
export async function exportedJob(job: string, request: object): Promise<Blob> {
  return (await send("POST", `/api/jobs/${job}/export`, request)).blob();
}

// A file of what is on the screen.
export async function exported(request: object): Promise<Blob> {
  return (await send("POST", "/api/export", request)).blob();
}
