// The live page: a prompt is typed, and both models' predictions and maps follow. The views of maps,
// tokens and heads are those of the report.
import shared from "../style.css";
import own from "./live.css";
import { element } from "../dom";
import { change, state, subscribe } from "../state";
import { followTheme, themeButton } from "../theme";
import { Refused, Run, Served, foundRoles, look, runOf, served, useToken } from "./api";
import { changesView } from "./changes_view";
import { exportView } from "./export";
import { generateView } from "./generate_view";
import { headView } from "./head_view";
import { headsView } from "./heads_view";
import { lensView } from "./lens_view";
import { LiveReport } from "./live_report";
import { HeadOrder } from "./order";
import { go, onPlace, place } from "./place";
import { PredictionsView } from "./predictions";
import { tabsView } from "./tabs";
import { taskView } from "./task_view";
import { tokensArcView } from "./tokens_view";
import { traceView } from "./trace_view";

const kFirstPrompt = "When Mary and John went to the store, John gave a drink to";

// What stands before the models have said anything, so that it is seen at once.
function frame(): { box: HTMLTextAreaElement; count: HTMLElement; models: HTMLElement; ask: HTMLElement; below: HTMLElement; failed: (error: unknown) => void } {
  const box = element("textarea", { id: "prompt", rows: "2", spellcheck: "false", "aria-label": "prompt" });
  const count = element("output", { id: "count", class: "said" });
  const status = element("p", { id: "status", role: "status" });
  const models = element("span", { class: "facts" });
  const ask = element("div", { class: "ask" }, box);
  const below = element("div");
  box.value = place().prompt ?? kFirstPrompt;
  document.body.replaceChildren(
    element("header", { class: "top" }, element("h1", {}, "Filigree"), models, element("div", { class: "choices" }, count, themeButton())),
    element("main", {}, ask, status, below),
  );
  const failed = (error: unknown): void => {
    if (error instanceof DOMException && error.name === "AbortError") return; // there is a newer prompt
    status.textContent =
      error === null ? "" : error instanceof Refused ? `${error.message} \u2013 ${error.remedy}` : "The server does not answer; is filigree serve still running?";
  };
  return { box, count, models, ask, below, failed };
}

function show(served: Served, { box, count, models, ask, below, failed }: ReturnType<typeof frame>): void {
  const live = new LiveReport(served);
  const names = served.models.map((model) => model.name);
  const { heads } = served.models[0]!;
  followTheme(live);
  models.textContent = names.join(" beside ");
  const predictions = new PredictionsView(names);
  ask.append(predictions.root);

  let current = new AbortController();
  let asked: Run = runOf("", []);
  const refresh = (): void => {
    current.abort(); // the server drops what it was asked for
    current = new AbortController();
    const { signal } = current;
    const { prompt, changes, kind } = place();
    const run = runOf(prompt ?? kFirstPrompt, changes);
    if (run.prompt === "") return;
    const began = performance.now();
    const looks = names.map(async (name, m) => {
      const found = await look(run, name, kind, signal);
      predictions.show(m, found);
      return found;
    });
    Promise.all(looks)
      .then(async (found) => {
        if (signal.aborted) return;
        asked = run;
        count.textContent = `${found[0]!.tokens.length} tokens`;
        failed(null);
        live.show(run.prompt, found);
        if (!below.hasChildNodes()) draw();
        // For measurements and tests: how long the last change took, drawing included.
        await new Promise((wake) => requestAnimationFrame(() => setTimeout(wake)));
        const { dataset } = document.body;
        dataset["took"] = String(Math.round(10 * (performance.now() - began)) / 10);
        dataset["shown"] = run.prompt;
        dataset["off"] = run.ablate.join();
        dataset["changes"] = changes.map(({ text }) => text).join(" ");
      })
      .catch(failed);
  };

  // Views of maps are made when there is a first map.
  const draw = (): void => {
    const order = new HeadOrder(live);
    const run = (): Run => asked;
    below.replaceChildren(
      element("div", { class: "above" }, changesView(served), exportView(served, live, run, () => order.chosen(0), failed)),
      tabsView([
        headsView(live, order, run, failed), tokensArcView(live), lensView(live, run, failed), generateView(live, run, failed),
        taskView(served, live, run, failed), traceView(served, live, run, failed),
      ].filter((view) => view !== null)),
      headView(live, run, failed),
    );
    follow();
    foundRoles().then((roles) => live.showRoles(roles), failed);
  };
  // The large view follows the address, and the address the large view.
  const follow = (): void => {
    const head = heads.indexOf(place().head ?? "");
    if (state().head !== (head < 0 ? null : head)) change({ head: head < 0 ? null : head });
  };
  subscribe((now, before) => {
    if (now.head !== before.head) go({ head: now.head === null ? null : heads[now.head]! });
  });
  onPlace((now, before) => {
    if (now.prompt !== null && now.prompt !== box.value) box.value = now.prompt;
    if (now.prompt !== before.prompt || now.changes !== before.changes || now.kind !== before.kind) refresh();
    if (now.head !== before.head && below.hasChildNodes()) follow();
  });
  box.addEventListener("input", () => go({ prompt: box.value }));
  refresh();
  document.body.dataset["ready"] = "true";
}

const sheet = new CSSStyleSheet();
sheet.replaceSync(shared + own);
document.adoptedStyleSheets = [sheet];
useToken(place().token);
const framed = frame();
served().then(
  (found) => show(found, framed),
  (error: unknown) => {
    const text = error instanceof Refused ? `${error.message}: ${error.remedy}` : String(error);
    document.body.replaceChildren(element("p", { class: "failure" }, text));
  },
);
