// Sweeps: one patch at every layer and head, or every layer and position, of a task's runs.
import { element } from "../dom";
import { Job } from "./api";
import { figuresView } from "./figure_view";
import { StillOf, hint } from "../hints";
import { Following, ServedFigure, progressOf } from "./jobs";

interface SweepResult {
  models: { model: string; check: { better_than_chance: boolean } }[];
  figures: ServedFigure[];
}

// What is patched, and along what.
const kSweeps: [string, string, string][] = [
  ["z", "layer-head", "heads"], ["pattern", "layer-head", "patterns of heads"], ["resid", "layer-position", "stream at each token"],
  ["attn-out", "layer-position", "attention at each token"], ["mlp-out", "layer-position", "MLPs at each token"],
];

// `changed` is for whoever changes what those functions say.
export function sweepView(task: () => object, prompts: () => number, failed: (error: unknown) => void): { root: HTMLElement; changed: () => void } {
  const what = element("select", { id: "sweep-what", "aria-label": "what is patched" }, ...kSweeps.map(([, , text], n) => element("option", { value: String(n) }, text)));
  const direction = element("select", { id: "sweep-direction", "aria-label": "direction" },
    element("option", { value: "noising" }, "clean runs, patched from corrupt ones"), element("option", { value: "denoising" }, "corrupt runs, patched from clean ones"));
  const button = element("button", { type: "button", id: "sweep" }, "patch everywhere");
  const progress = element("progress", { "aria-label": "progress of the sweep" });
  const said = element("output", { class: "said", id: "swept" });
  const body = element("div", { id: "sweeps" }, hint("Nothing is patched yet: \u201cpatch everywhere\u201d patches one place after the other in the task's prompts and draws how much of the answer each one carries."));
  const still = new StillOf();
  let started: object = {}; // what the last sweep was asked for with
  const asked = (): object => {
    const [sweep, by] = kSweeps[Number(what.value)]!;
    return { ...task(), sweep, by, direction: direction.value, prompts: prompts() };
  };
  const changed = (): void => still.compare(asked());
  for (const control of [what, direction]) control.addEventListener("change", changed);
  progress.hidden = true;
  const idle = (): void => {
    progress.hidden = true;
    button.textContent = "patch everywhere";
  };
  const following = new Following<SweepResult>((job: Job<SweepResult>) => {
    const { done, total } = job.progress;
    if (job.state !== "running") idle();
    else [button.textContent, progress.hidden] = ["cancel", false];
    if (total > 0) [progress.max, progress.value] = [total, done];
    said.textContent = progressOf(job);
    if (!job.result) return;
    body.replaceChildren(figuresView(job.job, job.result.figures, failed));
    still.made(started, "This sweep is of what was chosen before: \u201cpatch everywhere\u201d makes that of what is chosen now.");
    changed();
    const unable = job.result.models.filter(({ check }) => !check.better_than_chance).map(({ model }) => model);
    if (unable.length > 0) said.textContent = `${unable.join(" and ")}: not better than chance at this task`;
  }, (error) => {
    idle();
    failed(error);
  });
  button.addEventListener("click", () => {
    if (following.busy) return void following.cancel();
    body.replaceChildren();
    still.none();
    started = asked();
    void following.start(started);
  });
  addEventListener("pagehide", () => void following.cancel());
  const root = element("section", {}, element("h3", {}, "One patch at a time"),
    element("div", { class: "above" }, element("label", {}, "patch ", what), direction, button, progress, said), still.root, body);
  return { root, changed };
}
