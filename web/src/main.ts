// The report page: the views of the live page over the data in the page, and what was found of the
// models as wholes. Makes no request of any kind.
import styles from "./style.css";
import views from "./views/views.css";
import { LoadedReport, load, visible } from "./data";
import { element } from "./dom";
import { followHead, followRuns } from "./follow";
import { pairsView } from "./pairs";
import { go, onPlace, place } from "./place";
import { rolesView } from "./roles";
import { Refused } from "./source";
import { statisticsView } from "./statistics";
import { StoredSource } from "./stored";
import { storyView } from "./story";
import { tasksView } from "./tasks";
import { followTheme, themeButton } from "./theme";
import { changeChooser, changedView } from "./views/changed_view";
import { headView } from "./views/head_view";
import { headsView } from "./views/heads_view";
import { lensView } from "./views/lens_view";
import { HeadOrder } from "./views/order";
import { tabsView } from "./views/tabs";
import { tokensArcView } from "./views/tokens_view";

// The first prompt stands for no prompt in the address.
function promptChooser({ report: { prompts } }: LoadedReport): HTMLElement {
  const select = element("select", { id: "prompt", "aria-label": "prompt" });
  prompts.forEach((prompt, n) => {
    const text = prompt.text.length > 90 ? `${prompt.text.slice(0, 88)}\u2026` : prompt.text;
    select.append(element("option", { value: String(n) }, visible(text).replace(/\u00b7/g, " ")));
  });
  select.addEventListener("change", () => go({ prompt: select.value === "0" ? null : prompts[Number(select.value)]!.text, changes: [] }));
  const show = (): void => void (select.selectedIndex = place().prompt === null ? 0 : prompts.findIndex(({ text }) => text === place().prompt));
  onPlace(show);
  show();
  return element("label", {}, "prompt ", select);
}

function madeBy(loaded: LoadedReport): HTMLElement {
  const rows = loaded.report.made.flatMap(([name, value]) => [
    element("dt", {}, name),
    element("dd", {}, element("code", {}, value)),
  ]);
  return element(
    "section",
    { id: "made", class: "plain" },
    element("h2", {}, "How this was made"),
    element("dl", {}, ...rows),
  );
}

// To a part of the page. The address has another use.
function linkTo(id: string, text: string): HTMLElement {
  const link = element("a", { href: `#${id}` }, text);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById(id)?.scrollIntoView();
  });
  return link;
}

function show(loaded: LoadedReport): void {
  const { report } = loaded;
  document.title = report.title;
  followTheme(loaded);
  const status = element("p", { id: "status", role: "status" });
  const failed = (error: unknown): void => {
    status.textContent = error === null ? "" : error instanceof Refused ? error.text : String(error);
  };
  const source = new StoredSource(report);
  const chooser = changeChooser(loaded, source, failed);
  const sections = [
    tasksView(loaded), rolesView(loaded), statisticsView(loaded), pairsView(loaded), madeBy(loaded),
  ].filter((section): section is HTMLElement => section !== null);
  const links = [linkTo("views", "maps"), ...sections.map((section) => linkTo(section.id, section.querySelector("h2")!.textContent!.toLowerCase()))];
  const bar = element(
    "header",
    { class: "top" },
    element("h1", {}, report.title),
    element("nav", {}, ...links),
    element("div", { class: "choices" }, promptChooser(loaded), ...(source.whole ? [chooser.choice] : []), themeButton()),
  );
  const below = element("section", { id: "views" });
  document.body.replaceChildren(bar, element("main", {}, storyView(loaded), status, below, ...sections));

  const draw = (): void => {
    const order = new HeadOrder(loaded);
    below.replaceChildren(
      ...(source.whole ? [chooser.said] : []),
      tabsView([
        headsView({ loaded, source, order, run, failed }), tokensArcView(loaded, source),
        ...(source.whole ? [lensView(loaded, source, run, failed), changedView(loaded, source, failed)] : []),
      ]),
      headView(loaded, source, run, failed),
    );
    followHead(report.models[0]!.heads);
    document.body.dataset["ready"] = "true";
  };
  const run = followRuns(loaded, source, {
    usual: report.prompts[0]!.text,
    predicted: () => {},
    shown: () => {
      if (!below.hasChildNodes()) draw();
      below.hidden = false;
    },
    nothing: (why) => {
      below.hidden = true;
      failed(why ?? new Refused("there is no empty prompt in this report", "choose one of those it has"));
    },
    failed,
  });
}

document.head.append(element("style", {}, styles + views));
try {
  show(load());
} catch (error) {
  document.body.replaceChildren(
    element("p", { class: "failure" }, error instanceof Error ? error.message : String(error)),
  );
}
