// The tab of traces: what a prediction comes from, through the features of transcoders and the heads
// between them.
import { visible } from "../data";
import { element } from "../dom";
import { Job, Served } from "./api";
import { Graph, featureGraph } from "./feature_graph";
import { figuresView } from "./figure_view";
import { StillOf, hint } from "../hints";
import { Following, ServedFigure, progressOf } from "./jobs";
import { LiveReport } from "./live_report";
import { go, onPlace, place } from "../place";
import { trainView } from "./train_view";
import { View } from "../views/tabs";
import { Run } from "../source";

interface TracedModel extends Graph {
  likeliest: { token: string; probability: number };
  replacement_score: number;
  heads: { head: string; share: number; weight: number }[];
  pair: { key_token: string; query_token: string } | null;
}
interface TraceResult {
  models: TracedModel[];
  figures: ServedFigure[];
}

// What the pins of a graph touch.
function edgesTable(traced: TracedModel, pins: number[]): HTMLElement | null {
  const name = (id: number): string => {
    const node = traced.nodes.find((one) => one.node === id);
    return node ? `${node.name} at ${visible(traced.tokens[node.position] ?? "")}` : String(id);
  };
  const touched = traced.edges.filter(({ source, target }) => pins.includes(source) || pins.includes(target));
  if (touched.length === 0) return null;
  const rows = touched.sort((a, b) => Math.abs(b.influence) - Math.abs(a.influence)).slice(0, 12).map(({ source, target, effect, heads }) =>
    element("tr", {}, element("th", { scope: "row" }, `${name(source)} \u2192 ${name(target)}`), element("td", {}, effect.toFixed(3)),
      element("td", { class: "word" }, heads?.slice(0, 3).map(({ head, loading }) => `${head} ${loading.toFixed(2)}`).join(", ") ?? "")));
  return element("table", { class: "edges" }, element("caption", {}, "Edges of what is pinned, and the heads that carry them"), element("tbody", {}, ...rows));
}

export function traceView(served: Served, live: LiveReport, run: () => Run, failed: (error: unknown) => void): View {
  const button = element("button", { type: "button", id: "trace" }, "trace");
  const target = element("input", { id: "target", size: "10", "aria-label": "token that is explained", placeholder: "the likeliest" });
  const most = element("input", { type: "range", id: "nodes", min: "10", max: "200", value: "50", "aria-label": "nodes" });
  const name = element("input", { id: "group-name", size: "12", placeholder: "name", "aria-label": "name of the group" });
  const group = element("button", { type: "button", id: "group" }, "group what is pinned");
  const loose = element("button", { type: "button", id: "ungroup" }, "pins and groups away");
  const said = element("output", { class: "said", id: "traced" });
  const without = served.models.filter((one) => !one.features).map(({ name }) => name);
  const body = element("div", { id: "graphs" }, hint("Nothing is traced yet: \u201ctrace\u201d draws which features of the prompt, and which heads between them, the likeliest next token comes from." +
    (without.length > 0 ? ` It goes through transcoders, which ${without.join(" and ")} does not have until some are trained here: \u201ctrain\u201d makes small ones in about a minute.` : "")));
  const still = new StillOf();
  let result: TraceResult | null = null;
  let of = "";
  let number = ""; // of the job

  const draw = (): void => {
    if (!result) return;
    const { pins, groups } = place();
    const graphs = result.models.map((traced, m) => {
      const own = pins.filter((one) => one.model === m).map(({ node }) => node);
      const pin = (nodes: number[]): void => {
        const on = nodes.every((node) => own.includes(node));
        const rest = pins.filter((one) => one.model !== m || !nodes.includes(one.node));
        go({ pins: on ? rest : [...rest, ...nodes.map((node) => ({ model: m, node }))] });
      };
      const facts = `explains \u201c${visible(traced.likeliest.token)}\u201d (${(100 * traced.likeliest.probability).toFixed(1)} %) \u00b7 replacement score ${traced.replacement_score.toFixed(2)}` +
        (traced.pair ? ` \u00b7 from \u201c${visible(traced.pair.key_token)}\u201d to \u201c${visible(traced.pair.query_token)}\u201d by ${traced.heads.slice(0, 6).map(({ head, share }) => `${head} ${Math.round(100 * share)} %`).join(", ")}` : "");
      return element("section", {}, element("h3", {}, traced.model), element("p", { class: "facts" }, facts),
        featureGraph({ graph: traced, most: Number(most.value), pins: own, pin,
          groups: groups.filter((one) => one.model === m).map(({ name: called, nodes }) => ({ name: called, nodes })) }),
        edgesTable(traced, own));
    });
    body.replaceChildren(...graphs, figuresView(number, result.figures, failed));
  };
  const following = new Following<TraceResult>((job: Job<TraceResult>) => {
    said.textContent = progressOf(job);
    button.textContent = job.state === "running" ? "cancel" : "trace";
    if (job.result) {
      result = job.result;
      number = job.job;
      still.made({ prompt: of }, `This graph is still of \u201c${of}\u201d: \u201ctrace\u201d makes that of the prompt above.`);
      said.textContent = `of \u201c${of}\u201d \u00b7 Ctrl and the wheel enlarge, dragging moves, a click pins`;
      draw();
    }
  }, (error) => {
    button.textContent = "trace";
    failed(error);
  });
  button.addEventListener("click", () => {
    if (following.busy) return void following.cancel();
    of = run().prompt;
    void following.start({ trace: of, ...(target.value ? { target: target.value } : {}) });
  });
  most.addEventListener("input", draw);
  group.addEventListener("click", () => {
    const { pins, groups } = place();
    const made = served.models.flatMap((_, model) => {
      const nodes = pins.filter((one) => one.model === model).map(({ node }) => node);
      return nodes.length > 1 ? [{ model, name: name.value || "group", nodes }] : [];
    });
    go({ groups: [...groups, ...made], pins: [] });
  });
  loose.addEventListener("click", () => go({ pins: [], groups: [] }));
  onPlace((now, before) => {
    if (now.pins !== before.pins || now.groups !== before.groups) draw();
  });
  addEventListener("pagehide", () => void following.cancel());
  const root = element("div", {},
    element("div", { class: "above" }, button, element("label", {}, "token ", target), element("label", {}, "nodes ", most), name, group, loose, said), trainView(served, failed), still.root, body);
  return { id: "trace", label: "Trace", root, update: () => still.compare({ prompt: live.prompt().text }) };
}
