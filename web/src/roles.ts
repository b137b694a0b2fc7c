// Head roles: how many heads play each, and where they sit.
import { roleStripe } from "./colour";
import { LoadedReport, Model, headsInLayer } from "./data";
import { element } from "./dom";
import { change } from "./state";

function counts(model: Model): Map<string, number> {
  const found = new Map<string, number>();
  for (const { role } of model.roles) found.set(role, (found.get(role) ?? 0) + 1);
  return found;
}

function table(models: Model[]): HTMLElement {
  const all = models.map(counts);
  const roles = [...new Set(all.flatMap((found) => [...found.keys()]))];
  const total = (role: string): number => all.reduce((sum, found) => sum + (found.get(role) ?? 0), 0);
  roles.sort((a, b) => total(b) - total(a) || a.localeCompare(b));
  const rows = roles.map((role) => {
    const dot = element("i", { class: "dot", style: `background: ${roleStripe(role)}` });
    const cells = all.map((found) => element("td", {}, String(found.get(role) ?? 0)));
    return element("tr", {}, element("th", {}, dot, ` ${role}`), ...cells);
  });
  const top = element("tr", {}, element("th", {}, "role"), ...models.map((m) => element("th", {}, m.name)));
  return element("table", {}, element("thead", {}, top), element("tbody", {}, ...rows));
}

// A cell a head, layers from the top.
function layout(model: Model): HTMLElement {
  const inLayer = headsInLayer(model);
  const rows = model.layers.map((name, layer) => {
    const cells = Array.from({ length: inLayer }, (_, h) => {
      const head = layer * inLayer + h;
      const { role, confidence } = model.roles[head]!;
      const text = `${model.heads[head]!} \u2013 ${role} (${confidence.toFixed(2)})`;
      const button = element("button", {
        type: "button",
        title: text,
        "aria-label": `${text}, ${model.name}`,
        style: `background: ${roleStripe(role)}; opacity: ${0.35 + 0.65 * confidence}`,
      });
      button.addEventListener("click", () => change({ head }));
      return element("td", {}, button);
    });
    return element("tr", {}, element("th", {}, name), ...cells);
  });
  return element(
    "figure",
    {},
    element("figcaption", {}, model.name),
    element("table", { class: "layout" }, element("tbody", {}, ...rows)),
  );
}

export function rolesView(loaded: LoadedReport): HTMLElement {
  const { models } = loaded.report;
  return element(
    "section",
    { id: "roles", class: "plain" },
    element("h2", {}, "Head roles"),
    element("div", { class: "row" }, table(models), ...models.map(layout)),
  );
}
