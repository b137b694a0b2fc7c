// The server's API (src/serve/api.h), as far as the page asks for it.
import { AttentionMap, HeadRole, Palette, Theme, mapsOf } from "../data";
import { Change, MapKind } from "./place";

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
  colors: Record<Theme, Palette>;
}

// The server said no, and what would help.
export class Refused extends Error {
  constructor(
    message: string,
    readonly remedy: string,
  ) {
    super(message);
  }
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
  throw new Refused(answer.error ?? "no answer", answer.remedy ?? "");
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

export const served = (): Promise<Served> => ask("GET", "/api/models");

export interface NextToken {
  token: string;
  id: number;
  probability: number;
  plain_probability: number | null; // without the changes
}

export interface Look {
  model: string;
  tokens: string[];
  next: NextToken[]; // the likeliest first
  loss: number | null; // nats a token of the prompt
  plain_loss: number | null;
  surprise: number[]; // of each token after the first
  divergence: number | null; // of the next token, from the run without changes
  maps: AttentionMap[];
}

// One request a model, so that each is answered as soon as it can be. src/serve/look.h has the format.
export async function look(run: Run, model: string, kind: MapKind, signal: AbortSignal): Promise<Look> {
  const response = await send("POST", "/api/look", { ...run, models: [model], kind }, signal);
  const bytes = await response.arrayBuffer();
  const length = new DataView(bytes).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(bytes, 4, length));
  const found = (JSON.parse(text) as { models: (Omit<Look, "maps"> & { heads: string[] })[] }).models[0]!;
  const cells = new Uint16Array(bytes, 4 + length); // the pages of browsers are little-endian, too
  return { ...found, maps: mapsOf(cells, found.heads.length, found.tokens.length) };
}

export interface HeadNumbers {
  model: string;
  tokens: string[];
  weights: number[];
  scores: (number | null)[];
  gate: number[] | null;
  value_norms: number[];
  row_sums: number[];
  column_sums: number[];
  reads: { token: string; share: number; raises: string; lowers: string; own_effect: number; own_rank: number }[];
  writes: { query: number; raises: TokenEffect[]; lowers: TokenEffect[] };
}
export interface TokenEffect {
  token: string;
  effect: number;
}

export async function headNumbers(run: Run, head: string, query: number, signal: AbortSignal): Promise<HeadNumbers[]> {
  return (await ask<{ models: HeadNumbers[] }>("POST", "/api/head", { ...run, head, query }, signal)).models;
}

export interface FoundRoles {
  names: string[];
  models: { model: string; roles: HeadRole[] | null }[];
}
export const foundRoles = (): Promise<FoundRoles> => ask("GET", "/api/roles");

export interface Importance {
  model: string;
  token: string;
  parts: Record<string, number>;
}
export async function importance(run: Run, signal: AbortSignal): Promise<Importance[]> {
  return (await ask<{ models: Importance[] }>("POST", "/api/importance", run, signal)).models;
}

export interface LensCell {
  top: { token: string; probability: number }[];
}
export interface Lens {
  model: string;
  tokens: string[];
  points: { point: string; positions: LensCell[] }[];
}
export async function lens(run: Run, signal: AbortSignal): Promise<Lens[]> {
  return (await ask<{ models: Lens[] }>("POST", "/api/lens", run, signal)).models;
}

export interface Attribution {
  model: string;
  total: { mean: number };
  sums: Record<string, { mean: number }>;
  parts: { part: string; kind: string; layer: number | null; head: number | null; contribution: number }[];
}
// Of the token at a position after those before it, or of `answer` after the whole prompt.
export async function attribution(prompt: string, of: { at: number } | { answer: string }, signal: AbortSignal): Promise<Attribution[]> {
  return (await ask<{ models: Attribution[] }>("POST", "/api/attribution", { prompt, ...of }, signal)).models;
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
  progress: { label: string; unit: string; done: number; total: number };
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

// A file of what is on the screen.
export async function exported(request: object): Promise<Blob> {
  return (await send("POST", "/api/export", request)).blob();
}
