// What the models need for tasks: sizes of their circuits side by side, and the figures of them.
import { LoadedReport, Task, Theme, inflate } from "./data";
import { element, scrolled } from "./dom";
import { state, subscribe } from "./state";

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
    const image = element("img", { alt: figure.title });
    // A figure that was drawn for light pages only keeps their background.
    const draw = async (theme: Theme): Promise<void> => {
      const dark = theme === "dark" && figure.dark_svg !== null;
      const svg = new TextDecoder().decode(await inflate(dark ? figure.dark_svg! : figure.svg));
      if (theme !== state().theme) return; // changed again meanwhile
      image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
      image.classList.toggle("dark", dark);
    };
    void draw(state().theme);
    subscribe((now, before) => {
      if (now.theme !== before.theme) void draw(now.theme);
    });
    return element(
      "figure",
      { class: "drawn" },
      element("figcaption", {}, element("b", {}, figure.title), ` ${figure.caption}`),
      image,
    );
  });
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
