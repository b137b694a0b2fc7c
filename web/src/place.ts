// Where the page is: all that a link reproduces. It stands behind the # of the address,
//   #prompt=Paris%20is%20in&off=L6H11,L7MLP&scale=L3H4=0.5&patch=L6H11=Rome+is+in&head=L3H4&...
// and changes through go() alone, which tells whoever listens.

// What is done to the runs, as `filigree run` writes it.
export interface Change {
  kind: "ablate" | "scale" | "patch";
  text: string; // "L6H11", "L3H4=0.5", "L6H11@-1=Another prompt"
}

// A node of a model's graph of features, and several that are shown as one.
export interface Pin {
  model: number;
  node: number;
}
export interface PinGroup {
  model: number;
  name: string;
  nodes: number[];
}

export type MapKind = "weights" | "value-weighted" | "gate";
export type Order = "layer" | "importance" | "role" | "change";

export interface Place {
  prompt: string | null;
  changes: Change[];
  head: string | null; // the one that is open
  view: string; // the tab
  kind: MapKind; // of the small maps
  order: Order;
  role: string; // heads of this role alone; "": all
  at: number | null; // the token that was clicked
  layer: number | null; // of arcs; null: all
  least: number; // share below which arcs are left out
  task: string; // of the tab of tasks; "": the first
  pins: Pin[]; // nodes of graphs
  groups: PinGroup[];
  token: string; // for servers that ask for one
}

const kinds: readonly string[] = ["weights", "value-weighted", "gate"];
const orders: readonly string[] = ["layer", "importance", "role", "change"];

function whole(text: string | null): number | null {
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) : null;
}

function read(): Place {
  const parts = new URLSearchParams(location.hash.slice(1));
  // A token in quotes may hold commas: a place with one stands alone.
  const off = parts.getAll("off").flatMap((text) => (text.includes("'") ? [text] : text.split(","))).filter((name) => name !== "");
  const least = Number(parts.get("least") ?? "");
  const one = <T extends string>(name: string, known: readonly string[], usual: T): T => {
    const value = parts.get(name) ?? "";
    return (known.includes(value) ? value : usual) as T;
  };
  return {
    prompt: parts.get("prompt"),
    changes: [
      ...off.map((text): Change => ({ kind: "ablate", text })),
      ...parts.getAll("scale").map((text): Change => ({ kind: "scale", text })),
      ...parts.getAll("patch").map((text): Change => ({ kind: "patch", text })),
    ],
    head: parts.get("head") ?? /^#(L\d+H\d+)$/.exec(location.hash)?.[1] ?? null, // #L3H4 alone, too
    view: parts.get("view") ?? "heads",
    kind: one("kind", kinds, "weights"),
    order: one("order", orders, "layer"),
    role: parts.get("role") ?? "",
    at: whole(parts.get("at")),
    layer: whole(parts.get("layer")),
    least: least > 0 && least <= 1 ? least : 0.1,
    task: parts.get("task") ?? "",
    pins: (parts.get("pins") ?? "").split(",").flatMap((text) => {
      const found = /^(\d)\.(\d{1,6})$/.exec(text);
      return found ? [{ model: Number(found[1]), node: Number(found[2]) }] : [];
    }),
    groups: parts.getAll("group").flatMap((text) => {
      const found = /^(\d)\.([\d+]{1,400})=(.{1,40})$/.exec(text);
      return found ? [{ model: Number(found[1]), name: found[3]!, nodes: found[2]!.split("+").map(Number) }] : [];
    }),
    token: parts.get("token") ?? "",
  };
}

// What is as usual is left out.
function write(place: Place): string {
  const parts = new URLSearchParams();
  if (place.prompt !== null) parts.set("prompt", place.prompt);
  const off = place.changes.filter(({ kind }) => kind === "ablate").map(({ text }) => text);
  const alone = (text: string): boolean => /[',]/.test(text);
  const together = off.filter((text) => !alone(text));
  if (together.length > 0) parts.set("off", together.join(","));
  for (const text of off.filter(alone)) parts.append("off", text);
  for (const { kind, text } of place.changes) if (kind !== "ablate") parts.append(kind, text);
  if (place.head !== null) parts.set("head", place.head);
  if (place.view !== "heads") parts.set("view", place.view);
  if (place.kind !== "weights") parts.set("kind", place.kind);
  if (place.order !== "layer") parts.set("order", place.order);
  if (place.role) parts.set("role", place.role);
  if (place.at !== null) parts.set("at", String(place.at));
  if (place.layer !== null) parts.set("layer", String(place.layer));
  if (place.least !== 0.1) parts.set("least", String(place.least));
  if (place.task) parts.set("task", place.task);
  if (place.pins.length > 0) parts.set("pins", place.pins.map(({ model, node }) => `${model}.${node}`).join(","));
  for (const { model, name, nodes } of place.groups) parts.append("group", `${model}.${nodes.join("+")}=${name}`);
  if (place.token) parts.set("token", place.token);
  return parts.toString();
}

type Listener = (now: Place, before: Place) => void;

let current = read();
const listeners: Listener[] = [];

export function place(): Place {
  return current;
}

export function onPlace(listener: Listener): void {
  listeners.push(listener);
}

// What there is of what a link can name, as far as it is known; what there is not would be asked for
// again and again, and no control would take it back.
export interface Known {
  heads: string[];
  views: string[];
  layers: number;
  roles: string[];
  tasks: string[];
}
let known: Partial<Known> = {};

// With the usual in the place of what there is not.
function kept(now: Place): Place {
  const there = (list: string[] | undefined, name: string): boolean => list === undefined || list.includes(name);
  return {
    ...now,
    head: now.head === null || there(known.heads, now.head) ? now.head : null,
    view: there(known.views, now.view) ? now.view : known.views![0]!,
    layer: now.layer === null || now.layer < (known.layers ?? Infinity) ? now.layer : null,
    role: there(known.roles, now.role) ? now.role : "",
    task: there(known.tasks, now.task) ? now.task : "",
  };
}

function tell(now: Place): void {
  const before = current;
  current = kept(now);
  for (const listener of listeners) listener(current, before);
}

// To a browser another address is a page that was gone to, which takes it longer than drawing one. So
// while somebody types it is written when the hand rests.
const kRest = 400; // milliseconds
let resting: number | undefined;

function writeAddress(): void {
  clearTimeout(resting);
  resting = undefined;
  const hash = write(current);
  history.replaceState(null, "", location.pathname + location.search + (hash && `#${hash}`));
}
addEventListener("pagehide", () => {
  if (resting !== undefined) writeAddress();
});

export function go(part: Partial<Place>): void {
  tell({ ...current, ...part });
  writeAddress();
}

// As go(), for what is changed letter by letter.
export function type(prompt: string): void {
  tell({ ...current, prompt });
  clearTimeout(resting);
  resting = window.setTimeout(writeAddress, kRest);
}

// A link that was followed. The token of a server stays.
addEventListener("hashchange", () => {
  clearTimeout(resting);
  resting = undefined;
  const asked = { ...read(), token: current.token };
  tell(asked);
  if (write(current) !== write(asked)) writeAddress();
});

// Says what there is, now and in links that are followed later.
export function keepTo(there: Partial<Known>): void {
  known = { ...known, ...there };
  if (write(kept(current)) !== write(current)) go({});
}

// A link to here, for others: without the token.
export function link(): string {
  return `${location.origin}${location.pathname}#${write({ ...current, token: "" })}`;
}
