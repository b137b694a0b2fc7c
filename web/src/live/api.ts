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

async function send(method: string, path: string, body?: object, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {};
  if (token) headers["X-Filigree-Token"] = token;
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body ? JSON.stringify(body) : null, signal: signal ?? null });
  if (response.ok) return response;
  const answer = (await response.json()) as { error?: string; remedy?: string };
  throw new Refused(answer.error ?? "no answer", answer.remedy ?? "");
}

async function ask<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
  return (await (await send(method, path, body, signal)).json()) as T;
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

export interface CircuitJob {
  job: string;
  state: "running" | "done" | "failed" | "cancelled";
  progress: { label: string; unit: string; done: number; total: number };
  error: string | null;
  result: { models: { model: string; size: number | null; parts: number | null; circuit: string[] | null }[] } | null;
}

export const startCircuit = (task: string): Promise<CircuitJob> => ask("POST", "/api/jobs", { task });
export const circuitJob = (job: string): Promise<CircuitJob> => ask("GET", `/api/jobs/${job}`);
export const cancelJob = (job: string): Promise<CircuitJob> => ask("DELETE", `/api/jobs/${job}`);
