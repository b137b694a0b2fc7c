// What the colours of the grid mean: roles along the bottom of each map, weights inside it.
import { css, roleColour, textColour, weightColour } from "./colour";
import { LoadedReport } from "./data";
import { element } from "./dom";
import { subscribe } from "./state";

// The scale of weights; the first field is exactly zero.
export function ramp(): HTMLElement {
  const steps = [0, 0.001, 0.25, 0.5, 0.75, 1].map((weight) => {
    const colour = weightColour(weight);
    const style = `background: ${css(colour)}; color: ${css(textColour(colour))}`;
    return element("span", { style }, weight === 0.001 ? ">0" : String(weight));
  });
  return element("div", { class: "ramp", "aria-label": "scale of weights" }, ...steps);
}

export function legendView(loaded: LoadedReport): HTMLElement {
  const root = element("div", { class: "legend", id: "legend" });
  const draw = (): void => {
    const { models, roles, tasks } = loaded.report;
    const parts = new Set(models.flatMap((model) => model.roles.flatMap(({ role }) => role.split("+").filter((part) => part !== ""))));
    const entries = roles
      .filter((role) => [...parts].some((part) => part.split(" ")[0] === role))
      .map((role) =>
        element("span", {}, element("i", { class: "dot", style: `background: ${roleColour(role)}` }), ` ${role}`),
      );
    if ([...parts].some((part) => !roles.includes(part.split(" ")[0]!)))
      entries.push(
        element("span", {}, element("i", { class: "dot", style: `background: ${roleColour("other")}` }), " other"),
      );
    if (tasks.some((task) => task.heads.some((heads) => heads.length > 0)))
      entries.push(element("span", {}, element("i", { class: "dot ring" }), " in the circuit"));
    root.replaceChildren(element("span", { class: "label" }, "weight"), ramp(), ...entries);
  };
  subscribe((now, before) => {
    if (now.theme !== before.theme || now.marks !== before.marks) draw();
  });
  draw();
  return root;
}
