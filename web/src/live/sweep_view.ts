// Sweeps: one patch at every layer and head, or every layer and position, of a task's runs.
import { element } from "../dom";
import { Job } from "./api";
import { figuresView } from "./figure_view";
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

export function sweepView(task: () => object, prompts: () => number, failed: (error: unknown) => void): HTMLElement {
  const what = element("select", { id: "sweep-what", "aria-label": "what is patched" }, ...kSweeps.map(([, , text], n) => element("option", { value: String(n) }, text)));
  const direction = element("select", { id: "sweep-direction", "aria-label": "direction" },
    element("option", { value: "noising" }, "clean runs, patched from corrupt ones"), element("option", { value: "denoising" }, "corrupt runs, patched from clean ones"));
  const button = element("button", { type: "button", id: "sweep" }, "patch everywhere");
  const progress = element("progress", { "aria-label": "progress of the sweep" });
  const said = element("output", { class: "said", id: "swept" });
  const body = element("div", { id: "sweeps" });
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
    const unable = job.result.models.filter(({ check }) => !check.better_than_chance).map(({ model }) => model);
    if (unable.length > 0) said.textContent = `${unable.join(" and ")}: not better than chance at this task`;
  }, (error) => {
    idle();
    failed(error);
  });
  button.addEventListener("click", () => {
    if (following.busy) return void following.cancel();
    body.replaceChildren();
    const [sweep, by] = kSweeps[Number(what.value)]!;
    void following.start({ ...task(), sweep, by, direction: direction.value, prompts: prompts() });
  });
  addEventListener("pagehide", () => void following.cancel());
  return element("section", {}, element("h3", {}, "One patch at a time"),
    element("div", { class: "above" }, element("label", {}, "patch ", what), direction, button, progress, said), body);
}
