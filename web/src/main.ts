// The report page: reads the data in the page and shows it. Makes no request of any kind.
import styles from "./style.css";
import { LoadedReport, load, visible } from "./data";
import { detailView } from "./detail";
import { element } from "./dom";
import { gridView } from "./grid";
import { legendView } from "./legend";
import { pairsView } from "./pairs";
import { rolesView } from "./roles";
import { Order, change, state, subscribe } from "./state";
import { statisticsView } from "./statistics";
import { storyView } from "./story";
import { tasksView } from "./tasks";
import { followTheme, themeButton } from "./theme";
import { tokensView } from "./tokens";

function promptChooser(loaded: LoadedReport): HTMLElement {
  const select = element("select", { id: "prompt", "aria-label": "prompt" });
  loaded.report.prompts.forEach((prompt, n) => {
    const text = prompt.text.length > 90 ? `${prompt.text.slice(0, 88)}\u2026` : prompt.text;
    select.append(element("option", { value: String(n) }, visible(text).replace(/\u00b7/g, " ")));
  });
  select.addEventListener("change", () => change({ prompt: Number(select.value) }));
  subscribe((now) => (select.value = String(now.prompt)));
  return element("label", {}, "prompt ", select);
}

function orderChooser(): HTMLElement {
  const select = element("select", { id: "order", "aria-label": "order of heads" });
  const orders: Order[] = ["layer", "role"];
  for (const order of orders) select.append(element("option", { value: order }, `by ${order}`));
  select.addEventListener("change", () => change({ order: select.value as Order }));
  return element("label", {}, "heads ", select);
}

// Whose circuit is marked in the grid.
function circuitChooser(loaded: LoadedReport): HTMLElement | null {
  const { tasks } = loaded.report;
  if (tasks.every((task) => task.heads.every((heads) => heads.length === 0))) return null;
  const select = element("select", { id: "circuit", "aria-label": "circuit that is marked" });
  tasks.forEach((task, n) => select.append(element("option", { value: String(n) }, task.name)));
  select.append(element("option", { value: "-1" }, "none"));
  select.addEventListener("change", () => change({ task: Number(select.value) }));
  return element("label", {}, "circuit of ", select);
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

// "#L3H4" in the address opens that head, and follows what is open.
function followAddress(loaded: LoadedReport): void {
  const model = loaded.report.models[0]!;
  const read = (): void => {
    const head = model.heads.indexOf(location.hash.slice(1));
    if (head >= 0) change({ head });
  };
  subscribe((now, before) => {
    if (now.head === before.head) return;
    const hash = now.head === null ? "" : `#${model.heads[now.head]!}`;
    history.replaceState(null, "", location.pathname + location.search + hash);
  });
  addEventListener("hashchange", read);
  read();
}

function show(loaded: LoadedReport): void {
  const { report } = loaded;
  document.title = report.title;
  followTheme(loaded);
  const sections = [
    tasksView(loaded), rolesView(loaded), statisticsView(loaded), pairsView(loaded), madeBy(loaded),
  ];
  const links = [element("a", { href: "#grid" }, "maps")];
  for (const section of sections)
    if (section) links.push(element("a", { href: `#${section.id}` }, section.querySelector("h2")!.textContent!.toLowerCase()));
  const bar = element(
    "header",
    { class: "top" },
    element("h1", {}, report.title),
    element("nav", {}, ...links),
    element("div", { class: "choices" }, promptChooser(loaded), orderChooser(), circuitChooser(loaded), themeButton()),
  );
  const grid = gridView(loaded);
  document.body.replaceChildren(
    bar,
    element("main", {}, storyView(loaded), element("div", { class: "above" }, legendView(loaded), tokensView(loaded, grid)),
      grid, ...sections.filter((s): s is HTMLElement => s !== null)),
    detailView(loaded),
  );
  followAddress(loaded);
  document.body.dataset["ready"] = String(state().prompt >= 0);
}

document.head.append(element("style", {}, styles));
try {
  show(load());
} catch (error) {
  document.body.replaceChildren(
    element("p", { class: "failure" }, error instanceof Error ? error.message : String(error)),
  );
}
