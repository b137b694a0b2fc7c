// Light and dark.
import { useTheme } from "./colour";
import { LoadedReport, Theme } from "./data";
import { element } from "./dom";
import { change, state, subscribe } from "./state";

// What was chosen by the button, if anything; else the system's theme is followed. Paper is light.
let chosen: Theme | null = null;
let printing = false;
const dark = matchMedia("(prefers-color-scheme: dark)");

function applyTheme(): void {
  change({ theme: printing ? "light" : (chosen ?? (dark.matches ? "dark" : "light")) });
}

export function themeButton(): HTMLElement {
  const button = element("button", { type: "button", id: "theme", title: "light or dark", "aria-label": "light or dark" }, "\u25d0");
  button.addEventListener("click", () => {
    chosen = state().theme === "dark" ? "light" : "dark";
    applyTheme();
  });
  return button;
}

// Subscribes before all views, so that they draw with the new colours.
export function followTheme(loaded: LoadedReport): void {
  subscribe((now, before) => {
    if (now.theme !== before.theme) useTheme(loaded.report, now.theme);
  });
  useTheme(loaded.report, state().theme);
  const print = (now: boolean): void => {
    printing = now;
    applyTheme();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  dark.addEventListener("change", applyTheme);
  applyTheme();
}
