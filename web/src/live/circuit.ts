// The heads that a task needs: a job of the server, with its progress, marked in the grid when done.
import { element } from "../dom";
import { CircuitJob, Served, cancelJob, circuitJob, startCircuit } from "./api";
import { LiveReport } from "./live_report";

const kAskEvery = 250; // milliseconds

function text(job: CircuitJob): string {
  const { label, done, total } = job.progress;
  if (job.state === "running") return `${label} ${total > 0 ? `${done} of ${total}` : "\u2026"}`;
  if (job.state === "failed") return job.error ?? "failed";
  if (job.state === "cancelled") return "cancelled";
  return job.result!.models
    .map(({ model, size, parts }) => `${model}: ${size === null ? "no circuit of" : `${size} of`} ${parts ?? ""} heads`)
    .join(", ");
}

export function circuitView(served: Served, live: LiveReport, failed: (error: unknown) => void): HTMLElement {
  const select = element("select", { id: "task", "aria-label": "task" });
  for (const { name, description } of served.tasks) select.append(element("option", { value: name, title: description }, name));
  const button = element("button", { type: "button", id: "find" }, "find its heads");
  const said = element("output", { class: "said", id: "circuit" });
  let running: string | null = null;
  const follow = async (task: string, number: string): Promise<void> => {
    while (running === number) {
      const job = await circuitJob(number);
      said.textContent = text(job);
      if (job.state === "running") {
        await new Promise((wake) => setTimeout(wake, kAskEvery));
        continue;
      }
      if (job.result) live.mark(task, job.result.models.map(({ circuit }) => circuit ?? []));
      running = null;
    }
  };
  button.addEventListener("click", () => {
    const task = select.value;
    const work = async (): Promise<void> => {
      if (running !== null) return void (await cancelJob(running));
      const started = await startCircuit(task);
      running = started.job;
      button.textContent = "cancel";
      await follow(task, started.job);
    };
    work().catch(failed).finally(() => {
      if (running === null) button.textContent = "find its heads";
    });
  });
  return element("div", { class: "circuit" }, element("label", {}, "task ", select), button, said);
}
