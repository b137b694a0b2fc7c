// Colours of weights, differences and roles. The report brings them with it, and they are those of the
// figures; what is not drawn on a canvas takes them as variables of the style sheet.
import { Palette, Report, Theme } from "./data";

export type Rgb = readonly [number, number, number];

function rgb(text: string): Rgb {
  const value = parseInt(text.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function mix(stops: readonly Rgb[], x: number): Rgb {
  const place = Math.min(Math.max(x, 0), 1) * (stops.length - 1);
  const k = Math.min(Math.floor(place), stops.length - 2);
  const a = stops[k]!;
  const b = stops[k + 1]!;
  const t = place - k;
  return [a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]), a[2] + t * (b[2] - a[2])];
}

class Colours {
  readonly empty: Rgb;
  readonly undefined: Rgb;
  readonly text: Rgb;
  readonly page: Rgb;
  readonly magnitude: Rgb[];
  readonly negative: Rgb[];
  readonly positive: Rgb[];

  constructor(palette: Palette) {
    this.empty = rgb(palette.empty);
    this.undefined = rgb(palette.undefined);
    this.text = rgb(palette.text);
    this.page = rgb(palette.page);
    this.magnitude = palette.magnitude.map(rgb);
    this.negative = [this.empty, ...palette.negative.map(rgb)];
    this.positive = [this.empty, ...palette.positive.map(rgb)];
  }
}

let now: Colours;
let roles: string[] = [];

// Everything that is drawn from here on has the theme's colours.
export function useTheme(report: Report, theme: Theme): void {
  const palette = report.colors[theme];
  now = new Colours(palette);
  shades = null;
  roles = report.roles;
  const root = document.documentElement;
  root.dataset["theme"] = theme;
  const set = (name: string, value: string): void => root.style.setProperty(`--${name}`, value);
  set("page", palette.page);
  set("panel", palette.panel);
  set("panel-border", palette.panel_border);
  set("text", palette.text);
  set("muted", palette.muted);
  set("grid", palette.grid);
  set("frame", palette.frame);
  set("empty", palette.empty);
  palette.categories.forEach((colour, n) => set(`category-${n}`, colour));
  set("last-category", palette.categories.at(-1)!);
  set("drawn", report.colors.light.page); // behind figures, which are drawn for it
}

// The empty colour is exactly zero; the least weight that is not has a tint.
export function weightColour(weight: number): Rgb {
  return weight === 0 ? now.empty : mix(now.magnitude, weight);
}

// The pixels of weights in 65535ths, as ImageData has them in one number: pixels[(weight + 63) >> 6].
// Maps have many cells and few colours; the first pixel is exactly zero.
let shades: Uint32Array | null = null;
export function weightPixels(): Uint32Array {
  if (!shades) {
    shades = new Uint32Array(1025);
    const bytes = new Uint8ClampedArray(shades.buffer);
    for (let n = 0; n <= 1024; ++n) bytes.set([...(n === 0 ? now.empty : mix(now.magnitude, n / 1024)), 255], 4 * n);
  }
  return shades;
}

// -1 to 1, through the empty colour at 0; null is undefined.
export function differenceColour(x: number | null): Rgb {
  if (x === null) return now.undefined;
  return x < 0 ? mix(now.negative, -x) : mix(now.positive, x);
}

export function css(colour: Rgb): string {
  return `rgb(${colour.map((c) => Math.round(c)).join(" ")})`;
}

// Relative luminance (WCAG): 0 black, 1 white.
function luminance(colour: Rgb): number {
  const [r, g, b] = colour.map((c) => {
    const x = c / 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

// The colour of text on `background`: of the theme's two, the one that stands out more.
export function textColour(background: Rgb): Rgb {
  const behind = luminance(background);
  const contrast = (colour: Rgb): number => {
    const front = luminance(colour);
    return (Math.max(front, behind) + 0.05) / (Math.min(front, behind) + 0.05);
  };
  return contrast(now.text) >= contrast(now.page) ? now.text : now.page;
}

// For the style sheet: the colours of a role's parts side by side.
export function roleStripe(role: string): string {
  const colours = role.split("+").map(roleColour);
  return `linear-gradient(90deg, ${colours
    .map((colour, n) => `${colour} ${(100 * n) / colours.length}% ${(100 * (n + 1)) / colours.length}%`)
    .join(", ")})`;
}

// The colour of a role, of a hybrid that of its first part.
export function roleColour(role: string): string {
  const index = roles.indexOf(role.split(/[+ ]/)[0]!);
  return index < 0 ? "var(--last-category)" : `var(--category-${index})`;
}
