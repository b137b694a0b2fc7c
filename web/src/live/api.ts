// The server's API (src/serve/api.h), as far as the page asks for it.
import { Palette, Theme } from "../data";

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

export interface NextToken {
  token: string;
  id: number;
  rank: number;
  probability: number;
}

export interface Prediction {
  model: string;
  plain: { next: NextToken[] };
  changed: { next: NextToken[] } | null;
  divergence: number[] | null;
}

export interface PackedModelMaps {
  model: string;
  tokens: string[];
  maps: string; // see unpack()
}

export interface CircuitJob {
  job: string;
  state: "running" | "done" | "failed" | "cancelled";
  progress: { label: string; unit: string; done: number; total: number };
  error: string | null;
  result: { models: { model: string; size: number | null; parts: number | null; circuit: string[] | null }[] } | null;
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

async function ask<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = {};
  if (token) headers["X-Filigree-Token"] = token;
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body ? JSON.stringify(body) : null, signal: signal ?? null });
  const answer = (await response.json()) as T & { error?: string; remedy?: string };
  if (!response.ok) throw new Refused(answer.error ?? "no answer", answer.remedy ?? "");
  return answer;
}

// A prompt with the heads that are switched off.
export interface Run {
  prompt: string;
  ablate: string[];
}

export const served = (): Promise<Served> => ask("GET", "/api/models");
export const tokensOf = (prompt: string, signal: AbortSignal): Promise<{ tokens: string[] }> =>
  ask("POST", "/api/tokens", { prompt }, signal);

// One request a model, so that each is answered as soon as it can be.
export async function predict(run: Run, model: string, signal: AbortSignal): Promise<Prediction> {
  const answer = await ask<{ models: Prediction[] }>("POST", "/api/predict", { ...run, models: [model] }, signal);
  return answer.models[0]!;
}
export async function packedMaps(run: Run, model: string, signal: AbortSignal): Promise<PackedModelMaps> {
  const answer = await ask<{ models: PackedModelMaps[] }>("POST", "/api/maps", { ...run, models: [model] }, signal);
  return answer.models[0]!;
}

export const startCircuit = (task: string): Promise<CircuitJob> => ask("POST", "/api/jobs", { task });
export const circuitJob = (job: string): Promise<CircuitJob> => ask("GET", `/api/jobs/${job}`);
export const cancelJob = (job: string): Promise<CircuitJob> => ask("DELETE", `/api/jobs/${job}`);
