// What the page is about, in a line and a few numbers, before everything else.
import { LoadedReport, Story } from "./data";
import { element } from "./dom";

function tile(number: Story["numbers"][number]): HTMLElement {
  return element(
    "div",
    { class: "tile" },
    element("b", {}, number.value),
    element("span", {}, number.label),
  );
}

export function storyView(loaded: LoadedReport): HTMLElement | null {
  const { story } = loaded.report;
  if (!story.line) return null;
  return element(
    "section",
    { id: "story" },
    element("p", {}, story.line),
    element("div", { class: "tiles" }, ...story.numbers.map(tile)),
  );
}
