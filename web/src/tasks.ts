// What the models need for tasks: sizes of their circuits side by side, and the figures of them.
import { LoadedReport, Task } from "./data";
import { element, scrolled } from "./dom";

function sizes(task: Task): HTMLElement | null {
  if (task.rows.length === 0) return null;
  return scrolled(
    element(
      "table",
      {},
      element("thead", {}, element("tr", {}, ...task.columns.map((name) => element("th", {}, name)))),
      element(
        "tbody",
        {},
        ...task.rows.map(([first, ...rest]) =>
          element("tr", {}, element("th", {}, first), ...rest.map((cell) => element("td", {}, cell))),
        ),
      ),
    ),
  );
}

function taskView(task: Task): HTMLElement {
  const figures = task.figures.map((figure) =>
    element(
      "figure",
      { class: "drawn" },
      element("figcaption", {}, element("b", {}, figure.title), ` ${figure.caption}`),
      element("img", { src: `data:image/svg+xml;base64,${figure.svg}`, alt: figure.title }),
    ),
  );
  return element(
    "article",
    { class: "task" },
    element("h3", {}, task.name),
    element("p", { class: "facts" },
      [task.description, ...task.facts.map(([name, value]) => `${name}: ${value}`)].join(" \u00b7 ")),
    sizes(task),
    element("div", { class: "row" }, ...figures),
  );
}

export function tasksView(loaded: LoadedReport): HTMLElement | null {
  const { tasks } = loaded.report;
  if (tasks.length === 0) return null;
  return element(
    "section",
    { id: "tasks", class: "plain" },
    element("h2", {}, "Tasks"),
    ...tasks.map(taskView),
  );
}
