// What a view says where it has nothing to show, and above what it shows of another request than the one
// that its controls name.
import { element } from "./dom";

export const hint = (text: string): HTMLElement => element("p", { class: "facts hint" }, text);

// A line above results that stay until they are asked for again.
export class StillOf {
  readonly root = element("p", { class: "facts still", hidden: "", role: "status" });
  private request: string | null = null; // null: there are no results

  // `what` is there now, of this request.
  made(request: object, what: string): void {
    this.request = JSON.stringify(request);
    this.root.textContent = what;
    this.root.hidden = true;
  }

  none(): void {
    this.request = null;
    this.root.hidden = true;
  }

  // There are results of another request than this one.
  compare(request: object): void {
    this.root.hidden = this.request === null || this.request === JSON.stringify(request);
  }
}
