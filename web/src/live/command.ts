// The command that makes the same from the shell.
import { Served } from "./api";
import { generateOptions } from "./generate_view";
import { Place } from "../place";
import { Run } from "../source";

// As a POSIX shell reads it back.
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

function changesOf({ ablate, scale, patch }: Run): string[] {
  return [
    ...(ablate.length > 0 ? ["--ablate", ablate.join(",")] : []),
    ...(scale.length > 0 ? ["--scale", scale.join(",")] : []),
    ...patch.flatMap((text) => ["--patch", text]),
  ];
}

// `heads` are those shown, null: all; `answer` the token that is explained. A view that shows two things
// has two commands.
export function commandOf(place: Place, run: Run, served: Served, heads: string[] | null, answer: string): string {
  if (place.view === "lens")
    return ["lens", "attribution"].map((view) => oneCommand({ ...place, view }, run, served, heads, answer)).join(" && ");
  return oneCommand(place, run, served, heads, answer);
}

function oneCommand(place: Place, run: Run, served: Served, heads: string[] | null, answer: string): string {
  const models = served.models.map(({ name }) => name);
  const words = ((): string[] => {
    const { prompt } = run;
    const asked = ["--prompt", prompt, ...changesOf(run)];
    switch (place.view) {
      case "lens":
        return ["lens", ...models, ...asked, "--out", "lens.svg"];
      case "attribution":
        return ["lens", ...models, ...asked, ...(place.at !== null && place.at > 0 ? ["--set", `at=${place.at}`] : ["--target", answer]), "--out", "attribution.svg"];
      case "task":
        return ["circuit", ...models, "--task", place.task || served.tasks[0]!.name, "--prompts", "16"];
      case "generate": {
        const { tokens, temperature, seed } = generateOptions();
        return ["generate", models.at(-1)!, "--prompt", prompt, "--max-tokens", String(tokens), "--temperature", String(temperature), "--seed", String(seed), ...changesOf(run)];
      }
      case "trace":
        return ["trace", models.at(-1)!, ...(models.length > 1 ? ["--twin", models[0]!] : []), "--prompt", prompt, "--target", answer, "--out", "graph.json"];
      default:
        return ["attention", ...models, ...asked, ...(heads ? ["--heads", heads.join(",")] : []),
          ...(place.kind === "weights" ? [] : ["--what", place.kind]), "--out", "maps.svg"];
    }
  })();
  return ["filigree", ...words].map(quoted).join(" ");
}

