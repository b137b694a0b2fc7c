// What the models need for tasks: sizes of their circuits side by side, and the figures of them.
import { circuitRunsView } from "./circuit_runs";
import { LoadedReport, Task, inflate } from "./data";
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
  const figures = task.figures.map((figure) => {
    // Both are there from the beginning, and the style sheet shows one: paper, which cannot wait for
    // a picture, gets the light one. A figure that was drawn for light pages only keeps their
    // background.
    const picture = (theme: string, packed: string): HTMLElement => {
      const image = element("img", { alt: figure.title, class: theme });
      void inflate(packed).then((bytes) => {
        image.src = `data:image/svg+xml,${encodeURIComponent(new TextDecoder().decode(bytes))}`;
      });
      return image;
    };
    const images =
      figure.dark_svg === null
        ? [picture("both", figure.svg)]
        : [picture("light", figure.svg), picture("dark", figure.dark_svg)];
    return element(
      "figure",
      { class: "drawn" },
      element("figcaption", {}, element("b", {}, figure.title), ` ${figure.caption}`),
      ...images,
    );
  });
  return element(
    "article",
    { class: "task" },
    element("h3", {}, task.name),
    element("p", { class: "facts" },
      [task.description, ...task.facts.map(([name, value]) => `${name}: ${value}`)].join(" \u00b7 ")),
    sizes(task),
    circuitRunsView(task),
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
