// Transcoders of the session's own, small ones, for models that have none beside them.
import { element, number } from "../dom";
import { Job, Served } from "./api";
import { Following, progressOf } from "./jobs";

interface TrainingResult {
  model: string;
  features: number;
  tokens: number;
  held_out: { nmse?: number; l0?: number } | null;
}

export function trainView(served: Served, failed: (error: unknown) => void): HTMLElement {
  const model = element("select", { id: "train-model", "aria-label": "model that is trained for" }, ...served.models.map(({ name }) => element("option", { value: name }, name)));
  const features = element("input", { type: "number", id: "train-features", min: "8", max: "2048", value: "256", "aria-label": "features of a layer" });
  const tokens = element("input", { type: "number", id: "train-tokens", min: "1024", max: "2000000", step: "1024", value: "100000", "aria-label": "tokens" });
  const button = element("button", { type: "button", id: "train" }, "train");
  const progress = element("progress", { "aria-label": "progress of the training" });
  const said = element("output", { class: "said", id: "trained" });
  progress.hidden = true;
  const idle = (): void => {
    progress.hidden = true;
    button.textContent = "train";
  };
  const following = new Following<TrainingResult>((job: Job<TrainingResult>) => {
    const { done, total, metric } = job.progress;
    if (job.state !== "running") idle();
    else [button.textContent, progress.hidden] = ["cancel", false];
    if (total > 0) [progress.max, progress.value] = [total, done];
    said.textContent = `${progressOf(job)} ${job.state === "running" ? metric : ""}`;
    if (!job.result) return;
    const { held_out: held, model: of, features: each } = job.result;
    said.textContent = `${of} has ${each} features a layer, until the server ends` + (held ? `; error on held-out text ${number(held.nmse, 2)} of the variance, ${number(held.l0, 1)} active` : "");
  }, (error) => {
    idle();
    failed(error);
  });
  button.addEventListener("click", () => {
    if (following.busy) return void following.cancel();
    void following.start({ train: model.value, features: Number(features.value), tokens: Number(tokens.value) });
  });
  addEventListener("pagehide", () => void following.cancel());
  const without = served.models.filter((one) => !one.features).map(({ name }) => name);
  return element("details", { ...(without.length === served.models.length ? { open: "" } : {}) },
    element("summary", {}, without.length > 0 ? `${without.join(" and ")}: no transcoders beside it; train small ones` : "Train transcoders for this session"),
    element("div", { class: "above" }, model, element("label", {}, "features a layer ", features), element("label", {}, "tokens of task sentences ", tokens), button, progress, said));
}
