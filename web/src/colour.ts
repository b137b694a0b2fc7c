// Colours of weights, differences and roles: those of the figures (src/figure/theme.cpp).

export type Rgb = readonly [number, number, number];

function mix(stops: readonly Rgb[], x: number): Rgb {
  const place = Math.min(Math.max(x, 0), 1) * (stops.length - 1);
  const k = Math.min(Math.floor(place), stops.length - 2);
  const a = stops[k]!;
  const b = stops[k + 1]!;
  const t = place - k;
  return [a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]), a[2] + t * (b[2] - a[2])];
}

const kWeight: Rgb[] = [
  [232, 240, 250],
  [158, 202, 225],
  [66, 146, 198],
  [8, 81, 156],
  [8, 34, 82],
];
const kZero: Rgb = [255, 255, 255];

// White is exactly zero; the least weight that is not has a tint.
export function weightColour(weight: number): Rgb {
  return weight === 0 ? kZero : mix(kWeight, weight);
}

const kNegative: Rgb[] = [
  [255, 255, 255],
  [146, 197, 222],
  [8, 64, 129],
];
const kPositive: Rgb[] = [
  [255, 255, 255],
  [253, 174, 107],
  [140, 45, 4],
];

// -1 to 1.
export function differenceColour(x: number): Rgb {
  return x < 0 ? mix(kNegative, -x) : mix(kPositive, x);
}

export function css(colour: Rgb): string {
  return `rgb(${colour.map((c) => Math.round(c)).join(" ")})`;
}

const kRoles: Record<string, string> = {
  sink: "#d55e00",
  current: "#0072b2",
  previous: "#009e73",
  offset: "#cc79a7",
  diffuse: "#e69f00",
  stripes: "#56b4e9",
  fragmented: "#882255",
  empty: "#999933",
  induction: "#b8b8b8",
  duplicate: "#332288",
};

// A hybrid takes the colour of its first part.
export function roleColour(role: string): string {
  return kRoles[role.split(/[+ ]/)[0]!] ?? "#4d4d4d";
}
