// Drawings of a job in both themes, of which the style sheet shows one, and its files.
import { element } from "../dom";
import { state } from "../state";
import { exportedJob } from "./api";
import { ServedFigure } from "./jobs";
import { save } from "./save";

const source = (svg: string): string => `data:image/svg+xml,${encodeURIComponent(svg)}`;

function saveButton(label: string, name: string, file: () => Promise<Blob>, failed: (error: unknown) => void): HTMLElement {
  const button = element("button", { type: "button", title: `save as ${label}`, "data-save": label }, label);
  button.addEventListener("click", () => void file().then((bytes) => save(bytes, name), failed));
  return button;
}

// Figure `n` of a job.
export function figureView(job: string, { title, svg, dark_svg }: ServedFigure, n: number, failed: (error: unknown) => void): HTMLElement {
  const name = title.toLowerCase().replace(/ /g, "-");
  const formats = ["svg", "pdf", "png"].flatMap((format) => [
    " ", saveButton(format, `${name}.${format}`, () => exportedJob(job, { figure: n, format, theme: state().theme }), failed)]);
  return element("figure", { class: "drawn" }, element("figcaption", {}, element("b", {}, title), ...formats),
    element("img", { class: "light", alt: title, src: source(svg) }), element("img", { class: "dark", alt: title, src: source(dark_svg) }));
}

// All of them, and the numbers they are of.
export function figuresView(job: string, figures: ServedFigure[], failed: (error: unknown) => void): HTMLElement {
  return element("div", {},
    element("p", { class: "facts" }, "numbers ", saveButton("json", "result.json", () => exportedJob(job, { format: "json" }), failed)),
    element("div", { class: "row" }, ...figures.map((figure, n) => figureView(job, figure, n, failed))));
}
