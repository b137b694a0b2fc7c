// The tab of generation: both models go on with the prompt, token by token, and the edges that heads have
// from each new token are drawn as it appears.
import { visible } from "../data";
import { element } from "../dom";
import { GeneratedToken, generate } from "./api";
import { StillOf, hint } from "../hints";
import { Edge, arcs, showChosen } from "../views/arcs";
import { LiveReport } from "./live_report";
import { percent } from "../views/predictions";
import { go, place } from "../place";
import { View } from "../views/tabs";
import { Run, isChanged } from "../source";

// The edges of one token, by the heads that have them.
function edgesOf({ edges }: GeneratedToken, query: number): Edge[] {
  const found = new Map<number, Edge>();
  for (const [name, key, weight] of edges) {
    if (!found.has(key)) found.set(key, { query, key, heads: [] });
    found.get(key)!.heads.push({ name, weight }); // they come by weight
  }
  return [...found.values()];
}

// A model's text as it grows.
class GrowingText {
  readonly root: HTMLElement;
  private readonly use = element("button", { type: "button" }, "take as prompt");
  private readonly body = element("div");
  private readonly said = element("p", { class: "kl", "aria-live": "polite" });
  private made: GeneratedToken[] = [];
  private prompt: string[] = [];
  private before = ""; // the prompt as it was typed
  private chosen = 0; // of those made

  constructor(
    readonly model: string,
    private readonly index: number,
    use: (text: string) => void,
  ) {
    this.use.addEventListener("click", () => use(this.text()));
    this.root = element("section", { class: "growing", hidden: "", "aria-label": `text of ${model}` },
      element("h3", {}, model, " ", this.use), this.body, this.said);
  }

  private text(): string {
    return this.before + this.made.map(({ text }) => text).join("");
  }

  begin(text: string, prompt: string[]): void {
    this.before = text;
    this.prompt = prompt;
    this.made = [];
    this.body.replaceChildren();
    this.said.textContent = "";
    this.root.hidden = false;
  }

  add(token: GeneratedToken): void {
    this.made.push(token);
    this.chosen = this.made.length - 1;
    this.draw();
  }

  end(finish: string): void {
    this.root.dataset["finish"] = finish;
  }

  private draw(): void {
    const first = this.prompt.length;
    const token = this.made[this.chosen]!;
    const query = first + this.chosen;
    const picture = arcs({
      tokens: [...this.prompt, ...this.made.map((one) => one.token)],
      models: [{ name: this.model, edges: edgesOf(token, query) }],
      colour: this.index,
      chosen: query,
      fresh: first,
      chose: (at) => {
        if (at < first) return;
        this.chosen = at - first;
        this.draw();
      },
    });
    this.body.replaceChildren(picture);
    showChosen(picture);
    const heads = token.edges.slice(0, 6).map(([head, key, weight]) => `${head} \u2190 ${key} ${weight.toFixed(2)}`);
    this.said.textContent = `\u201c${visible(token.token)}\u201d ${percent(token.probability)} \u00b7 ${token.edges.length} open edges: ${heads.join(", ")}`;
  }
}

// What the controls say, for whoever makes the same text elsewhere.
let controls = { tokens: 12, temperature: 0, seed: 0 };
export const generateOptions = (): typeof controls => controls;

export function generateView(live: LiveReport, run: () => Run, failed: (error: unknown) => void): View {
  const texts = live.report.models.map(({ name }, m) => new GrowingText(name, m, (prompt) => go({ prompt })));
  const tokens = element("input", { type: "number", id: "tokens", min: "1", max: "200", value: "12", "aria-label": "tokens" });
  const temperature = element("input", { type: "number", id: "temperature", min: "0", max: "3", step: "0.1", value: "0", "aria-label": "temperature" });
  const seed = element("input", { type: "number", id: "seed", min: "0", value: "0", "aria-label": "seed" });
  const button = element("button", { type: "button", id: "generate" }, "generate");
  const read = (): void => {
    controls = { tokens: Number(tokens.value), temperature: Number(temperature.value), seed: Number(seed.value) };
  };
  for (const control of [tokens, temperature, seed]) control.addEventListener("input", read);
  let current: AbortController | null = null;
  const stop = (): void => {
    current?.abort();
    current = null;
    button.textContent = "generate";
  };
  button.addEventListener("click", () => {
    if (current) return stop();
    const now = new AbortController();
    current = now;
    button.textContent = "stop";
    read();
    const options = { ...controls, least: place().least };
    const asked = run();
    nothing.hidden = true;
    still.made(asked, `These texts go on from \u201c${asked.prompt}\u201d${isChanged(asked) ? ", with its changes of then" : ""}: \u201cgenerate\u201d goes on from what is asked for now.`);
    const all = texts.map(async (text) => {
      text.begin(asked.prompt, live.prompt().tokens);
      text.end(await generate(asked, text.model, options, (token) => text.add(token), now.signal));
    });
    Promise.all(all)
      .catch(failed)
      .finally(() => {
        if (current === now) stop();
      });
  });
  const nothing = hint("Nothing is generated yet: \u201cgenerate\u201d lets each model go on with the prompt, token by token, and draws what its heads look at from each new one.");
  const still = new StillOf();
  const root = element("div", { id: "generation" },
    element("div", { class: "above" }, button, element("label", {}, "tokens ", tokens), element("label", {}, "temperature ", temperature),
      element("label", {}, "seed ", seed)),
    element("p", { class: "facts" }, "Arcs: what heads look at from the newest token; click another new token for its own. Changes count here, too."),
    nothing, still.root, ...texts.map((text) => text.root));
  return { id: "generate", label: "Generate", root, update: () => still.compare(run()) };
}
