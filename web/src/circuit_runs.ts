// A task's circuits at work: its first prompt, with all heads, with the circuit's alone, and with the
// others as they are on the corrupt prompt. study/comparison/stored_runs.h writes what is read here.
import { Task, inflate, visible } from "./data";
import { element, scrolled } from "./dom";
import { percent } from "./views/predictions";

interface CircuitRuns {
  prompt: string;
  corrupt: string;
  answer: string[];
  wrong: string[];
  models: { model: string; heads: number; runs: { name: string; next: { token: string; probability: number }[]; answer: number; wrong: number }[] }[];
}

function said(name: string, heads: number): string {
  if (name === "whole") return "all heads";
  return name === "rest-off" ? `its circuit's ${heads} heads, the rest off` : `its circuit's ${heads} heads, the rest as in the corrupt prompt`;
}

function table({ prompt, corrupt, answer, wrong, models }: CircuitRuns): HTMLElement {
  const top = ["", "", answer.map(visible).join(" or "), wrong.length === 1 ? visible(wrong[0]!) : "wrong answers", "likeliest"].map((text) => element("th", { scope: "col" }, text));
  const rows = models.flatMap(({ model, heads, runs }) =>
    runs.map((run, n) =>
      element("tr", { "data-run": run.name }, element("th", { scope: "row" }, n === 0 ? model : ""), element("td", { class: "word" }, said(run.name, heads)),
        element("td", {}, percent(run.answer)), element("td", {}, percent(run.wrong)),
        element("td", { class: "word" }, run.next.map(({ token, probability }) => `${visible(token)} ${percent(probability)}`).join(", ")))));
  return scrolled(element("table", { class: "circuit-runs" }, element("caption", {}, `\u201c${prompt}\u201d; corrupt: \u201c${corrupt}\u201d`),
    element("thead", {}, element("tr", {}, ...top)), element("tbody", {}, ...rows)));
}

export function circuitRunsView({ stored }: Task): HTMLElement | null {
  if (stored === null) return null;
  const root = element("div");
  void inflate(stored).then((bytes) => root.replaceChildren(table(JSON.parse(new TextDecoder().decode(bytes)) as CircuitRuns)));
  return root;
}
