// What both pages do whenever the place changes: ask for the run that it names and show it.
import { LoadedReport } from "./data";
import { Change, go, keepTo, onPlace, place } from "./place";
import { Look, Refused, Run, Source, Unfit, isChanged, runOf, sameChange } from "./source";
import { change, state, subscribe } from "./state";

// Milliseconds that the prediction of one model waits for those of the others. Mostly they come within
// so many, and the page is laid out once for all of them.
const kTogether = 40;

export interface Following {
  usual: string; // the prompt where the place names none
  predicted: (model: number, look: Look) => void; // soon after it is there
  shown: (run: Run) => void; // all models' maps are drawn
  // There are no results of what the place names, and those of before are gone; why, or null where the
  // prompt is empty.
  nothing: (why: unknown) => void;
  failed: (error: unknown) => void; // null: all is well again
}

function saidOf(unfit: Unfit[]): string[] {
  // Most errors begin with the place.
  const reason = ({ text, error }: Unfit): string => (error.startsWith(`'${text}': `) ? error.slice(text.length + 4) : error);
  return unfit.map((one) => `${one.text} is ${one.elsewhere ? "left out" : "taken back"}: ${reason(one)}`);
}

// The run that is shown; it begins empty. A change that the run of a prompt cannot make does not keep the
// page from showing the others: it is left out, and taken out of the place where no prompt could have it.
export function followRuns(loaded: LoadedReport, source: Source, { usual, predicted, shown, nothing, failed }: Following): () => Run {
  let current = new AbortController();
  let asked: Run = runOf("", []);
  let made: Change[] = []; // the changes of the last run that was shown
  let takenBack: string[] = []; // what is said of them once there is a run without them

  const nothingOf = (why: unknown): void => {
    current.abort();
    asked = runOf("", []);
    failed(null);
    loaded.show("", []);
    nothing(why);
    document.body.dataset["shown"] = "";
  };
  const takeBack = (changes: Change[], why: string[]): void => {
    takenBack = why;
    go({ changes }); // and its run is asked for
  };
  // A run with changes was refused.
  const judge = async (run: Run, leftOut: Unfit[], why: Refused, signal: AbortSignal): Promise<void> => {
    const { unfit, whole } = await source.unfit(run, signal);
    if (signal.aborted) return;
    const { changes } = place();
    const never = unfit.filter(({ elsewhere }) => !elsewhere);
    if (never.length > 0) takeBack(changes.filter((change) => !never.some((one) => sameChange(one, change))), saidOf(never));
    else if (unfit.length > 0) refresh([...leftOut, ...unfit]);
    else if (whole) takeBack(changes === made ? [] : made, [`${whole.error} \u2013 ${whole.remedy}`]);
    else nothingOf(why);
  };
  const refresh = (leftOut: Unfit[] = []): void => {
    current.abort(); // whoever computes it may drop it
    current = new AbortController();
    const { signal } = current;
    const { prompt, changes, kind } = place();
    const fitting = changes.filter((change) => !leftOut.some((one) => sameChange(one, change)));
    const run = runOf(prompt ?? usual, fitting);
    if (run.prompt === "") return nothingOf(null);
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
        made = changes;
        const notices = [...takenBack, ...saidOf(leftOut)];
        takenBack = [];
        failed(notices.length > 0 ? new Refused(notices.join("; "), "") : null);
        loaded.show(run.prompt, found, leftOut);
        shown(run);
        // For measurements and tests: how long the last change took, drawing included.
        await new Promise((wake) => requestAnimationFrame(() => setTimeout(wake)));
        const { dataset } = document.body;
        dataset["took"] = String(Math.round(10 * (performance.now() - began)) / 10);
        dataset["shown"] = run.prompt;
        dataset["off"] = run.ablate.join();
        dataset["changes"] = fitting.map(({ text }) => text).join(" ");
      })
      .catch((error: unknown) => {
        if (signal.aborted) return;
        if (!(error instanceof Refused) || !isChanged(run)) return nothingOf(error);
        return judge(run, leftOut, error, signal).catch((why: unknown) => {
          if (!signal.aborted) nothingOf(why);
        });
      });
  };
  onPlace((now, before) => {
    if (now.prompt !== before.prompt || now.changes !== before.changes || now.kind !== before.kind) refresh();
  });
  refresh();
  return () => asked;
}

// The large view of a head follows the address, and the address the large view.
export function followHead(heads: string[]): void {
  keepTo({ heads });
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
