// Statistics of the models with their change, its interval and p-value, as a table with bars.
import { LoadedReport, StatisticRow } from "./data";
import { element, number, scrolled } from "./dom";

function value(x: number | undefined, unit: string): string {
  if (x == null) return number(x);
  return unit === "%" ? `${number(100 * x, 2)} %` : number(x);
}

// Differences of shares are points.
function difference(x: number | undefined, unit: string): string {
  if (x == null) return number(x);
  const text = unit === "%" ? number(100 * x, 2) : number(x);
  return x > 0 ? `+${text}` : text;
}

// Whether so many prompts could not have given a smaller p.
function atLeast(row: StatisticRow): boolean {
  return row.p != null && row.least_p != null && row.p <= row.least_p;
}

function bar(row: StatisticRow): HTMLElement {
  const ends = row.intervals.flatMap((interval) => interval ?? []);
  const most = Math.max(...[...row.values, ...ends].map((x) => Math.abs(x)), 1e-12);
  const share = (x: number): number => (100 * Math.abs(x)) / most;
  const bars = row.values.map((x, m) => {
    const interval = row.intervals[m];
    const low = interval ? Math.min(share(interval[0]), share(interval[1])) : 0;
    const high = interval ? Math.max(share(interval[0]), share(interval[1])) : 0;
    return element(
      "div",
      { class: "measure" },
      element("i", { class: `bar model-${m}`, style: `width: ${share(x)}%` }),
      interval
        ? element("i", { class: "whisker", style: `left: ${low}%; width: ${high - low}%` })
        : null,
    );
  });
  return element("td", { class: "bars" }, ...bars);
}

export function statisticsView(loaded: LoadedReport): HTMLElement | null {
  const { models, statistics } = loaded.report;
  if (statistics.length === 0) return null;
  const compared = statistics.some((row) => row.change != null);
  const head = [
    element("th", {}, "statistic"),
    ...models.map((model) => element("th", {}, model.name)),
    element("th", {}, ""),
    ...(compared
      ? [element("th", {}, "change"), element("th", {}, "95 % interval"), element("th", {}, "p")]
      : []),
  ];
  const overs = [...new Set(statistics.map((row) => row.over))];
  const columns = head.length;
  const shown = (row: StatisticRow): HTMLElement =>
    element(
      "tr",
      {},
      element("th", {}, row.label),
      ...row.values.map((x) => element("td", {}, value(x, row.unit))),
      bar(row),
      ...(compared
        ? [
            element("td", {}, difference(row.change, row.unit) + (row.unit === "%" ? " points" : "")),
            element("td", {}, `${difference(row.low, row.unit)} to ${difference(row.high, row.unit)}`),
            element("td", {}, `${atLeast(row) ? "\u2264 " : ""}${number(row.p, 4)}`),
          ]
        : []),
    );
  // Over all heads and rows first; what else it is taken over has a heading of its own.
  const rows = overs.flatMap((over) => [
    ...(over ? [element("tr", { class: "over" }, element("th", { colspan: String(columns) }, over))] : []),
    ...statistics.filter((row) => row.over === over).map(shown),
  ]);
  return element(
    "section",
    { id: "statistics", class: "plain" },
    element("h2", {}, "Statistics"),
    scrolled(
      element(
        "table",
        { class: "statistics" },
        element("thead", {}, element("tr", {}, ...head)),
        element("tbody", {}, ...rows),
      ),
    ),
    compared
      ? element("p", { class: "facts" },
          "Means over heads; living heads are those that live in both models. Whiskers: bootstrap over prompts. Interval: paired bootstrap; p: paired permutation test, ",
          "\u2264 where so many prompts cannot give less.")
      : null,
  );
}
