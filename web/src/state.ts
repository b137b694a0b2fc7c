// What views redraw for: other colours, another run, an open head, other marks. place.ts is what the
// address holds. Views subscribe.

import { Theme } from "./data";

export interface State {
  theme: Theme;
  prompt: number; // grows when there is another run to show
  head: number | null;
  task: number; // whose circuit is marked in the grid; -1: none
  marks: number; // grows when what heads are marked, ordered or chosen by has changed
}

type Listener = (state: State, before: State) => void;

let current: State = { theme: "light", prompt: 0, head: null, task: 0, marks: 0 };
const listeners: Listener[] = [];

export function state(): State {
  return current;
}

export function change(part: Partial<State>): void {
  const before = current;
  current = { ...current, ...part };
  for (const listener of listeners) listener(current, before);
}

export function subscribe(listener: Listener): void {
  listeners.push(listener);
}
