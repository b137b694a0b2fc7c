// What both pages do whenever the place changes: ask for the run that it names and show it.
import { LoadedReport } from "./data";
import { go, onPlace, place } from "./place";
import { Look, Run, Source, runOf } from "./source";
import { change, state, subscribe } from "./state";

// Milliseconds that the prediction of one model waits for those of the others. Mostly they come within
// so many, and the page is laid out once for all of them.
const kTogether = 40;

export interface Following {
  usual: string; // the prompt where the place names none
  predicted: (model: number, look: Look) => void; // soon after it is there
  shown: (run: Run) => void; // all models' maps are drawn
  failed: (error: unknown) => void; // null: all is well again
}

// The run that is shown; it begins empty.
export function followRuns(loaded: LoadedReport, source: Source, { usual, predicted, shown, failed }: Following): () => Run {
  let current = new AbortController();
  let asked: Run = runOf("", []);
  const refresh = (): void => {
    current.abort(); // whoever computes it may drop it
    current = new AbortController();
    const { signal } = current;
    const { prompt, changes, kind } = place();
    const run = runOf(prompt ?? usual, changes);
    if (run.prompt === "") return;
    const began = performance.now();
    const waiting = new Map<number, Look>(); // predictions that are there and not shown
    const show = (): void => {
      if (!signal.aborted) waiting.forEach((found, m) => predicted(m, found));
      waiting.clear();
    };
    const looks = loaded.report.models.map(async (_, m) => {
      const found = await source.look(run, m, kind, signal);
      waiting.set(m, found);
      setTimeout(show, kTogether);
      return found;
    });
    Promise.all(looks)
      .then(async (found) => {
        if (signal.aborted) return;
        show();
        asked = run;
        failed(null);
        loaded.show(run.prompt, found);
        shown(run);
        // For measurements and tests: how long the last change took, drawing included.
        await new Promise((wake) => requestAnimationFrame(() => setTimeout(wake)));
        const { dataset } = document.body;
        dataset["took"] = String(Math.round(10 * (performance.now() - began)) / 10);
        dataset["shown"] = run.prompt;
        dataset["off"] = run.ablate.join();
        dataset["changes"] = changes.map(({ text }) => text).join(" ");
      })
      .catch(failed);
  };
  onPlace((now, before) => {
    if (now.prompt !== before.prompt || now.changes !== before.changes || now.kind !== before.kind) refresh();
  });
  refresh();
  return () => asked;
}

// The large view of a head follows the address, and the address the large view.
export function followHead(heads: string[]): void {
  const follow = (): void => {
    const head = heads.indexOf(place().head ?? "");
    if (state().head !== (head < 0 ? null : head)) change({ head: head < 0 ? null : head });
  };
  subscribe((now, before) => {
    if (now.head !== before.head) go({ head: now.head === null ? null : heads[now.head]! });
  });
  onPlace((now, before) => {
    if (now.head !== before.head) follow();
  });
  follow();
}
