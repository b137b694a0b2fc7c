// Elements in one line.

type Child = Node | string | null | undefined;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    // Pages whose policy forbids styles in attributes still take them so.
    if (name === "style") made.style.cssText = value;
    else made.setAttribute(name, value);
  made.append(...children.filter((child): child is Node | string => child != null));
  return made;
}

// What may be wider than the page, so that it alone moves and not the page.
export function scrolled(child: HTMLElement): HTMLElement {
  return element("div", { class: "scroll" }, child);
}

// A canvas of `size` CSS pixels a side that is sharp on every screen.
export function sharpCanvas(width: number, height: number): HTMLCanvasElement {
  const canvas = element("canvas");
  resize(canvas, width, height);
  return canvas;
}

export function resize(canvas: HTMLCanvasElement, width: number, height: number): void {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}

export function context(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const made = canvas.getContext("2d");
  if (!made) throw new Error("this browser has no canvas");
  return made;
}

export function number(x: number | undefined | null, digits = 3): string {
  if (x == null || !Number.isFinite(x)) return "\u2013";
  if (x !== 0 && Math.abs(x) < 10 ** -digits) return x.toExponential(1);
  return x.toFixed(digits);
}
