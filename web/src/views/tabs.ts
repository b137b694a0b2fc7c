// The views below the prompt, one at a time. A view is brought up to date when it is seen.
import { element } from "../dom";
import { subscribe } from "../state";
import { go, keepTo, onPlace, place } from "../place";

export interface View {
  id: string; // in the address
  label: string;
  root: HTMLElement;
  update?: () => void; // there are new maps, or the view was opened
}

export function tabsView(views: View[]): HTMLElement {
  keepTo({ views: views.map(({ id }) => id) });
  const buttons = views.map(({ id, label }) => {
    const button = element("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `view-${id}` }, label);
    button.addEventListener("click", () => go({ view: id }));
    return button;
  });
  const bodies = views.map(({ id, root }) =>
    element("div", { role: "tabpanel", id: `view-${id}`, class: "view", "aria-labelledby": `tab-${id}` }, root));
  const open = (): number => Math.max(0, views.findIndex(({ id }) => id === place().view));
  const show = (): void => {
    const now = open();
    buttons.forEach((button, n) => {
      button.setAttribute("aria-selected", String(n === now));
      button.tabIndex = n === now ? 0 : -1;
      bodies[n]!.hidden = n !== now;
    });
  };
  const bar = element("div", { role: "tablist", class: "tabs", "aria-label": "views" }, ...buttons);
  bar.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined) return;
    const next = (open() + by + views.length) % views.length;
    go({ view: views[next]!.id });
    buttons[next]!.focus();
    event.stopPropagation();
  });
  onPlace((now, before) => {
    if (now.view === before.view) return;
    show();
    views[open()]!.update?.();
  });
  subscribe((now, before) => {
    if (now.prompt !== before.prompt) views[open()]!.update?.();
  });
  show();
  views[open()]!.update?.();
  return element("div", {}, bar, ...bodies);
}
