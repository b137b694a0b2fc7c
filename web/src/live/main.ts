// The live page: a prompt is typed, and both models' predictions and maps follow. The views of maps,
// tokens and heads are those of the report.
import { element } from "../dom";
import { followHead, followRuns } from "../follow";
import { Refused } from "../source";
import { followTheme, themeButton } from "../theme";
import { ApiSource, Served, foundRoles, served, useToken } from "./api";
import { changesView } from "./changes_view";
import { exportView } from "./export";
import { generateView } from "./generate_view";
import { headView } from "../views/head_view";
import { headsView } from "../views/heads_view";
import { lensView } from "../views/lens_view";
import { LiveReport } from "./live_report";
import { SheetPainter } from "./sheet";
import { HeadOrder } from "../views/order";
import { go, onPlace, place, type } from "../place";
import { PredictionsView } from "../views/predictions";
import { tabsView } from "../views/tabs";
import { taskView } from "./task_view";
import { tokensArcView } from "../views/tokens_view";
import { traceView } from "./trace_view";

const kFirstPrompt = "When Mary and John went to the store, John gave a drink to";

const saidOf = (error: unknown): string => (error instanceof Refused ? error.text : "The server does not answer; is filigree serve still running?");

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1) + (/[.?!]$/.test(text) ? "" : ".");

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
    status.textContent = error === null ? "" : saidOf(error);
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

  const source = new ApiSource(served);
  // What is of a run, and gone where there is none.
  const ofRun: HTMLElement[] = [];
  const example = (): HTMLElement => {
    const button = element("button", { type: "button", id: "example" }, "try an example");
    button.addEventListener("click", () => go({ prompt: kFirstPrompt }));
    return button;
  };
  const run = followRuns(live, source, {
    usual: kFirstPrompt,
    predicted: (m, found) => predictions.show(m, found),
    shown: () => {
      count.textContent = `${live.prompt().tokens.length} tokens`;
      if (!below.hasChildNodes()) draw();
      for (const part of ofRun) part.hidden = false;
    },
    nothing: (why) => {
      count.textContent = "";
      if (why === null) predictions.say("The prompt is empty. Type one, and what both models predict and all their maps follow, or ", example());
      else predictions.say(`${sentence(saidOf(why))} Nothing is shown of this prompt. Type another one, or `, example());
      for (const part of ofRun) part.hidden = true;
    },
    failed,
  });

  // Views of maps are made when there is a first map.
  const draw = (): void => {
    const order = new HeadOrder(live);
    const exports = exportView(served, live, run, () => order.chosen(0), failed);
    const tabs = tabsView([
      headsView({ loaded: live, source, order, run, painter: (places, room) => new SheetPainter(places, room), failed }),
      tokensArcView(live, source), lensView(live, source, run, failed), generateView(live, run, failed),
      taskView(served, live, run, failed), traceView(served, live, run, failed),
    ]);
    ofRun.push(exports, tabs);
    below.replaceChildren(
      element("div", { class: "above" }, changesView(served, live, source, failed), exports), tabs, headView(live, source, run, failed));
    followHead(heads);
    foundRoles().then((roles) => live.showRoles(roles), failed);
  };
  onPlace(({ prompt }) => {
    if ((prompt ?? kFirstPrompt) !== box.value) box.value = prompt ?? kFirstPrompt;
  });
  box.addEventListener("input", () => type(box.value));
  document.body.dataset["ready"] = "true";
}

useToken(place().token);
const framed = frame();
served().then(
  (found) => show(found, framed),
  (error: unknown) => {
    const text = error instanceof Refused ? error.text : String(error);
    document.body.replaceChildren(element("p", { class: "failure" }, text));
  },
);
