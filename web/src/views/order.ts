// In what order heads are shown, and which: by layer, by what they do for the prediction, by role, or by
// how much the models differ in them.
import { byRole } from "../grid";
import { element } from "../dom";
import { change, state, subscribe } from "../state";
import { AttentionMap, LoadedReport } from "../data";
import { Order, go, keepTo, onPlace, place } from "../place";

// The mean difference of the weights of two maps.
function difference(a: AttentionMap, b: AttentionMap): number {
  const x = a.stored();
  const y = b.stored();
  let sum = 0;
  for (let n = 0; n < x.length; ++n) sum += Math.abs(x[n]! - y[n]!);
  return sum / x.length;
}

export class HeadOrder {
  private importance: Record<string, number>[] = []; // of each model; none: not asked for yet

  constructor(private readonly loaded: LoadedReport) {}

  // For gridView.
  readonly chosen = (m: number): number[] => {
    const model = this.loaded.report.models[m]!;
    const { order, role } = place();
    let heads = model.heads.map((_, head) => head);
    const by = (value: (head: number) => number): number[] => {
      const values = heads.map(value);
      return heads.sort((a, b) => values[b]! - values[a]! || a - b);
    };
    const maps = this.loaded.maps();
    const parts = this.importance[m];
    if (order === "role") heads = byRole(model);
    else if (order === "importance" && parts) heads = by((head) => Math.abs(parts[model.heads[head]!] ?? 0));
    else if (order === "change" && maps.length === 2) heads = by((head) => difference(maps[0]![head]!, maps[1]![head]!));
    return role ? heads.filter((head) => model.roles[head]!.role.split(/[+ ]/).includes(role)) : heads;
  };

  show(importance: Record<string, number>[]): void {
    this.importance = importance;
    change({ marks: state().marks + 1 });
  }
}

// The roles that heads of the models have.
function rolesThereAre({ report }: LoadedReport): string[] {
  const parts = report.models.flatMap(({ roles }) => roles.flatMap(({ role }) => role.split(/[+ ]/)));
  return report.roles.filter((role) => parts.includes(role));
}

export function orderChooser(loaded: LoadedReport, weighs: boolean): HTMLElement {
  const orders: [Order, string][] = [["layer", "by layer"], ...(weighs ? [["importance", "by importance"] as [Order, string]] : []), ["role", "by role"]];
  if (loaded.report.models.length === 2) orders.push(["change", "by difference"]);
  const order = element("select", { id: "order", "aria-label": "order of heads" },
    ...orders.map(([value, text]) => element("option", { value }, text)));
  const role = element("select", { id: "role", "aria-label": "heads of one role" });
  order.addEventListener("change", () => go({ order: order.value as Order }));
  role.addEventListener("change", () => go({ role: role.value }));
  const show = (): void => {
    order.value = place().order;
    const roles = rolesThereAre(loaded);
    role.replaceChildren(element("option", { value: "" }, "all roles"), ...roles.map((name) => element("option", { value: name }, name)));
    role.value = place().role;
    role.disabled = roles.length === 0;
    if (roles.length > 0) keepTo({ roles: ["", ...roles] });
  };
  onPlace((now, before) => {
    if (now.order !== before.order || now.role !== before.role) change({ marks: state().marks + 1 });
  });
  subscribe((now, before) => {
    if (now.marks !== before.marks) show();
  });
  show();
  return element("label", {}, "heads ", order, role);
}
