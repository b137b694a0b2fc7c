// Drawings of the server in both themes, of which the style sheet shows one.
import { element } from "../dom";
import { ServedFigure } from "./jobs";
import { save } from "./save";

const source = (svg: string): string => `data:image/svg+xml,${encodeURIComponent(svg)}`;

export function figureView({ title, svg, dark_svg }: ServedFigure): HTMLElement {
  const button = element("button", { type: "button" }, "save as SVG");
  button.addEventListener("click", () => save(new Blob([svg], { type: "image/svg+xml" }), `${title.toLowerCase().replace(/ /g, "-")}.svg`));
  return element("figure", { class: "drawn" }, element("figcaption", {}, element("b", {}, title), " ", button),
    element("img", { class: "light", alt: title, src: source(svg) }), element("img", { class: "dark", alt: title, src: source(dark_svg) }));
}
