// What is done to the runs: switched off, scaled, or taken from the run of another prompt. Changes
// stack, and each step can be undone.
import { Change, go, place } from "./place";

let undone: Change[][] = [];
let done: Change[][] = [];
let dragged: string | null = null; // the part whose factor is being dragged: one step, however long

function set(changes: Change[], drag: string | null = null): void {
  if (drag === null || drag !== dragged) done.push(place().changes);
  dragged = drag;
  undone = [];
  go({ changes });
}

export function partOf(change: Change): string {
  return change.kind === "ablate" ? change.text : change.text.slice(0, change.text.indexOf("="));
}

export function isOff(part: string): boolean {
  return place().changes.some(({ kind, text }) => kind === "ablate" && text === part);
}

export function toggle(part: string): void {
  toggleAll([part]);
}

// All of them on where all are off, else off.
export function toggleAll(parts: string[]): void {
  const rest = place().changes.filter(({ kind, text }) => kind !== "ablate" || !parts.includes(text));
  const on = parts.every(isOff);
  set(on ? rest : [...rest, ...parts.map((text): Change => ({ kind: "ablate", text }))]);
}

// In the place of what was off or patched before.
export function switchOffOnly(parts: string[]): void {
  const rest = place().changes.filter(({ kind }) => kind === "scale");
  set([...rest, ...parts.map((text): Change => ({ kind: "ablate", text }))]);
}

// A factor of 1 is no change.
export function scale(part: string, factor: number): void {
  const rest = place().changes.filter((change) => change.kind !== "scale" || partOf(change) !== part);
  set(factor === 1 ? rest : [...rest, { kind: "scale", text: `${part}=${factor}` }], part);
}

export function patch(part: string, prompt: string): void {
  const rest = place().changes.filter((change) => change.kind !== "patch" || partOf(change) !== part);
  set([...rest, { kind: "patch", text: `${part}=${prompt}` }]);
}

// In the place of all other patches, and of what was off.
export function patchAll(parts: string[], prompt: string): void {
  const rest = place().changes.filter(({ kind }) => kind === "scale");
  set([...rest, ...parts.map((part): Change => ({ kind: "patch", text: `${part}=${prompt}` }))]);
}

export function remove(some: Change[]): void {
  set(place().changes.filter((change) => !some.includes(change)));
}

export function removeAll(): void {
  if (place().changes.length > 0) set([]);
}

function step(from: Change[][], to: Change[][]): void {
  const changes = from.pop();
  if (!changes) return;
  to.push(place().changes);
  dragged = null;
  go({ changes });
}
export const undo = (): void => step(done, undone);
export const redo = (): void => step(undone, done);
export const canUndo = (): boolean => done.length > 0;
export const canRedo = (): boolean => undone.length > 0;
