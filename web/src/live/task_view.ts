// The tab of tasks: examples for the prompt box, one's own pairs of prompts, the circuit with its curve
// and its drawing, and the models with everything else switched off.
import { element } from "../dom";
import { Job, Served, TaskPrompt, taskExamples } from "./api";
import { patchAll, switchOffOnly } from "../changes";
import { curveView } from "./curve";
import { figuresView } from "./figure_view";
import { StillOf, hint } from "../hints";
import { Latest } from "../latest";
import { Following, ServedFigure, progressOf } from "./jobs";
import { LiveReport } from "./live_report";
import { go, keepTo, onPlace, place } from "../place";
import { sweepView } from "./sweep_view";
import { View } from "../views/tabs";
import { Run } from "../source";

interface CircuitResult {
  task: string;
  kind: string;
  models: {
    model: string;
    size: number | null;
    parts: number | null;
    circuit: string[] | null;
    level: number;
    check: { accuracy: { clean: number; corrupt: number }; chance: number; better_than_chance: boolean; corruption_matters: boolean };
    none_kept: { effect: number } | null;
  }[];
  figures: ServedFigure[];
}

const kLevel = 0.9;
const kParts: [string, string][] = [["heads", "heads"], ["heads+mlps", "heads and MLPs"], ["edges", "edges"], ["attention-edges", "attention edges"]];
const kOwn = "own prompts";

// One pair a line: clean | corrupt | answer | wrong. Spaces around the bars do not count, but the space
// before an answer does where the line has it written as an underscore.
function pairsOf(text: string): TaskPrompt[] {
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "").map((line) => {
    const [clean = "", corrupt = "", answer = "", wrong = ""] = line.split("|").map((part) => part.trim());
    const word = (one: string): string => ` ${one}`.replace(/^ _?/, " ");
    return { clean, corrupt, answer: [word(answer)], wrong: [word(wrong)] };
  });
}

function lineOf({ clean, corrupt, answer, wrong }: TaskPrompt): string {
  return [clean, corrupt, answer[0]!.trim(), wrong[0]?.trim() ?? ""].join(" | ");
}

export function taskView(served: Served, live: LiveReport, run: () => Run, failed: (error: unknown) => void): View {
  const models = served.models.map(({ name }) => name);
  const { heads } = served.models[0]!;
  const task = element("select", { id: "task", "aria-label": "task" },
    ...served.tasks.map(({ name, description }) => element("option", { value: name, title: description }, name)), element("option", { value: kOwn }, kOwn));
  const parts = element("select", { id: "parts-of", "aria-label": "parts" }, ...kParts.map(([value, text]) => element("option", { value }, text)));
  const count = element("input", { type: "number", id: "task-prompts", min: "2", max: "256", value: "16", "aria-label": "prompts" });
  const find = element("button", { type: "button", id: "find" }, "find the circuit");
  keepTo({ tasks: ["", ...[...task.options].map(({ value }) => value)] });
  const own = element("textarea", { id: "own", rows: "3", spellcheck: "false", "aria-label": "own pairs of prompts, one a line",
    placeholder: "clean prompt | corrupt prompt, as long | answer | wrong answer   (one pair a line, two at least)" });
  const examples = element("div", { id: "examples" });
  const progress = element("progress", { "aria-label": "progress" });
  const said = element("output", { class: "said", id: "circuit" });
  const curve = element("div", { id: "curve" });
  const found = element("div", { id: "found" }, hint("No circuit is looked for yet: \u201cfind the circuit\u201d measures which parts of each model do the task above. Its examples can be clicked into the prompt box."));
  const still = new StillOf();
  let started: object = {}; // what the last circuit was asked for with
  const taskOf = (): object => (task.value === kOwn ? { pairs: pairsOf(own.value) } : { task: task.value });
  const asked = (): object => ({ parts: parts.value, prompts: Number(count.value), level: kLevel, ...taskOf() });
  const changed = (): void => {
    still.compare(asked());
    sweep.changed();
  };
  for (const control of [parts, count, own]) control.addEventListener("input", changed);
  progress.hidden = true;

  let shownFor = "";
  let shown: TaskPrompt[] = [];
  const latest = new Latest();
  const showExamples = (): void => {
    own.hidden = task.value !== kOwn;
    if (task.value === shownFor) return;
    shownFor = task.value;
    latest.drop();
    if (task.value === kOwn) {
      if (own.value === "") own.value = shown.map(lineOf).join("\n");
      return examples.replaceChildren();
    }
    latest.ask((signal) => taskExamples(task.value, signal), ({ description, prompts }) => {
      shown = prompts;
      examples.replaceChildren(element("p", { class: "facts" }, description),
        ...prompts.map((one) => {
          const button = element("button", { type: "button", class: "example", title: `corrupt: ${one.corrupt}` }, one.clean);
          button.addEventListener("click", () => go({ prompt: one.clean }));
          return element("div", {}, button, element("span", { class: "said" }, ` \u2192 ${one.answer.join(" or ")}, not ${one.wrong[0] ?? ""}${one.wrong.length > 1 ? " \u2026" : ""}`));
        }));
    }, (error) => {
      shownFor = ""; // they are asked for again
      examples.replaceChildren();
      failed(error);
    });
  };
  const showTask = (): void => {
    task.value = place().task || task.options[0]!.value;
    showExamples();
    changed();
  };
  task.addEventListener("change", () => go({ task: task.value }));
  onPlace((now, before) => {
    if (now.task !== before.task) showTask();
  });

  // All heads but those of a circuit, off or with what they have on the corrupt prompt.
  const rest = (circuit: string[]): string[] => heads.filter((head) => !circuit.includes(head));
  const corruptOf = (): string | null => (task.value === kOwn ? pairsOf(own.value) : shown).find(({ clean }) => clean === run().prompt)?.corrupt ?? null;
  const show = (job: string, result: CircuitResult): void => {
    const ofHeads = result.kind.startsWith("heads");
    if (ofHeads) live.mark(result.task, result.models.map(({ circuit }) => circuit ?? []));
    const rows = result.models.map(({ model, size, parts: of, circuit, check, none_kept }) => {
      const cells = [
        `${Math.round(100 * check.accuracy.clean)} % (chance ${Math.round(100 * check.chance)} %)`,
        size === null ? (of === null ? "cannot do the task" : "none") : `${size} of ${Math.round(of!)}`,
        none_kept === null ? "" : `${Math.round(100 * none_kept.effect)} %`,
      ].map((text) => element("td", {}, text));
      const off = element("button", { type: "button", "data-rest": model }, "switch the rest off");
      off.addEventListener("click", () => switchOffOnly(rest(circuit!)));
      const corrupt = element("button", { type: "button", "data-corrupt": model }, "the rest as in the corrupt prompt");
      corrupt.addEventListener("click", () => {
        const text = corruptOf();
        if (text === null) return void (said.textContent = "Put one of the examples into the prompt box first: its corrupt twin is what the rest takes.");
        patchAll(rest(circuit!), text);
      });
      return element("tr", {}, element("th", { scope: "row" }, model), ...cells,
        element("td", { class: "word" }, ...(ofHeads && circuit !== null && circuit.length > 0 ? [off, " ", corrupt] : [])));
    });
    const top = ["", "right on clean prompts", `circuit at ${Math.round(100 * kLevel)} %`, "effect without any", ""].map((name) => element("th", { scope: "col" }, name));
    found.replaceChildren(
      element("table", {}, element("thead", {}, element("tr", {}, ...top)), element("tbody", {}, ...rows)),
      ...(ofHeads ? result.models.map(({ model, circuit }) => element("p", { class: "facts" }, `${model}: ${circuit?.join(", ") || "no head"}`)) : []),
      figuresView(job, result.figures, failed));
    said.textContent = result.models
      .map(({ model, size, parts: of }) => `${model}: ${size === null ? "no circuit of" : `${size} of`} ${of === null ? "" : Math.round(of)} ${result.kind}`)
      .join(", ");
  };
  const following = new Following<CircuitResult>((job: Job<CircuitResult>) => {
    const { done, total } = job.progress;
    progress.hidden = job.state !== "running";
    if (total > 0) [progress.max, progress.value] = [total, done];
    find.textContent = job.state === "running" ? "cancel" : "find the circuit";
    said.textContent = progressOf(job);
    if (job.curves && Object.keys(job.curves).length > 0) curve.replaceChildren(curveView(job.curves, models, kLevel));
    if (!job.result) return;
    show(job.job, job.result);
    still.made(started, `This circuit is of \u201c${job.result.task}\u201d as it was asked for before: \u201cfind the circuit\u201d looks for that of what is chosen now.`);
    changed();
  }, (error) => {
    progress.hidden = true;
    find.textContent = "find the circuit";
    failed(error);
  });
  find.addEventListener("click", () => {
    if (following.busy) return void following.cancel();
    said.textContent = "";
    curve.replaceChildren();
    found.replaceChildren();
    still.none();
    started = asked();
    void following.start(started);
  });
  addEventListener("pagehide", () => void following.cancel());
  const sweep = sweepView(taskOf, () => Number(count.value), failed);
  const root = element("div", { id: "tasks" },
    element("div", { class: "above" }, element("label", {}, "task ", task), element("label", {}, "parts ", parts), element("label", {}, "prompts ", count), find, progress, said),
    own, examples, still.root, curve, found, sweep.root);
  return { id: "task", label: "Task", root, update: showTask };
}
