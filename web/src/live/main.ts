// The live page: a prompt is typed, and both models' predictions and maps follow. The views of maps,
// tokens and heads are those of the report.
import shared from "../style.css";
import own from "./live.css";
import { unpack } from "../data";
import { detailView } from "../detail";
import { element } from "../dom";
import { gridView } from "../grid";
import { legendView } from "../legend";
import { change, state, subscribe } from "../state";
import { followTheme, themeButton } from "../theme";
import { tokensView } from "../tokens";
import { readAddress, writeAddress } from "./address";
import { Refused, Served, packedMaps, predict, served, tokensOf, useToken } from "./api";
import { circuitView } from "./circuit";
import { linkHover } from "./hover";
import { LiveReport } from "./live_report";
import { PredictionsView } from "./predictions";

const kFirstPrompt = "When Mary and John went to the store, John gave a drink to";
const kTypingPause = 10; // milliseconds without a key before the models are asked

function show(served: Served): void {
  const live = new LiveReport(served);
  const names = served.models.map((model) => model.name);
  const heads = served.models[0]!.heads;
  followTheme(live);
  let place = readAddress();

  const box = element("textarea", { id: "prompt", rows: "2", spellcheck: "false", "aria-label": "prompt" });
  const count = element("output", { id: "count", class: "said" });
  const status = element("p", { id: "status", role: "status" });
  const predictions = new PredictionsView(names);
  const chips = element("div", { class: "chips", id: "off", "aria-label": "heads that are switched off" });
  const failed = (error: unknown): void => {
    if (error instanceof DOMException && error.name === "AbortError") return; // there is a newer prompt
    status.textContent = error instanceof Refused ? `${error.message} \u2013 ${error.remedy}` : "The server does not answer; is filigree serve still running?";
  };

  // Views of maps are made when there is a first map.
  const below = element("div");
  let drawn = false;
  const toggle = (name: string): void => {
    place.off = place.off.includes(name) ? place.off.filter((other) => other !== name) : [...place.off, name];
    markOff();
    refresh();
  };
  const markOff = (): void => {
    document.querySelectorAll<HTMLElement>(".head").forEach((button) => button.classList.toggle("off", place.off.includes(button.dataset["head"]!)));
    chips.replaceChildren(
      ...place.off.map((name) => {
        const chip = element("button", { type: "button", class: "chip", "data-off": name, title: "switch on again" }, `${name} off \u00d7`);
        chip.addEventListener("click", () => toggle(name));
        return chip;
      }),
    );
  };
  const draw = (): void => {
    drawn = true;
    const off = element("input", { type: "checkbox", id: "switch" });
    const grid = gridView(live, (head, event) => {
      if (event.shiftKey || off.checked) toggle(heads[head]!);
      else change({ head });
    });
    const inDetail = (head: number): HTMLElement => {
      const name = heads[head]!;
      const button = element("button", { type: "button", id: "toggle" }, "switch off or on");
      button.addEventListener("click", () => toggle(name));
      return button;
    };
    below.replaceChildren(
      element("div", { class: "above" },
        legendView(live), element("label", {}, off, " a click switches off"), chips, circuitView(served, live, failed)),
      tokensView(live, grid), linkHover(live, grid), grid, detailView(live, inDetail),
    );
    if (place.head !== null && heads.includes(place.head)) change({ head: heads.indexOf(place.head) });
  };

  let current = new AbortController();
  const refresh = (): void => {
    current.abort(); // the server drops what it was asked for
    current = new AbortController();
    const { signal } = current;
    const prompt = box.value;
    place.prompt = prompt;
    writeAddress(place);
    if (prompt === "") return;
    const run = { prompt, ablate: place.off };
    const began = performance.now();
    tokensOf(prompt, signal)
      .then(({ tokens }) => {
        count.textContent = `${tokens.length} tokens`;
        status.textContent = "";
      })
      .catch(failed);
    const maps = names.map(async (name, m) => {
      const { tokens, maps: packed } = await packedMaps(run, name, signal);
      return { tokens, maps: await unpack(packed, served.models[m]!.heads.length, tokens.length) };
    });
    // Behind the maps, which take longer to draw.
    names.forEach((name, m) => predict(run, name, signal).then((answer) => predictions.show(m, answer), failed));
    Promise.all(maps)
      .then(async (all) => {
        if (signal.aborted) return;
        live.show(prompt, all[0]!.tokens, all.map((one) => one.maps));
        if (!drawn) draw();
        // For measurements and tests: how long the last change took, drawing included.
        await new Promise((wake) => requestAnimationFrame(wake));
        markOff();
        document.body.dataset["took"] = String(Math.round(performance.now() - began));
        document.body.dataset["shown"] = prompt;
        document.body.dataset["off"] = run.ablate.join();
      })
      .catch(failed);
  };

  let pause = 0;
  box.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(refresh, kTypingPause);
  });
  subscribe((now, before) => {
    if (now.head === before.head) return;
    place.head = now.head === null ? null : heads[now.head]!;
    writeAddress(place);
  });
  const follow = (): void => {
    place = { ...readAddress(), token: place.token };
    place.off = place.off.filter((name) => heads.includes(name));
    box.value = place.prompt ?? kFirstPrompt;
    const head = place.head === null ? -1 : heads.indexOf(place.head);
    if (drawn) change({ head: head < 0 ? null : head });
    refresh();
  };
  addEventListener("hashchange", follow);

  document.body.replaceChildren(
    element("header", { class: "top" }, element("h1", {}, "Filigree"), element("span", { class: "facts" }, names.join(" beside ")),
      element("div", { class: "choices" }, count, themeButton())),
    element("main", {}, element("div", { class: "ask" }, box, predictions.root), status, below),
  );
  follow();
  document.body.dataset["ready"] = String(state().prompt >= 0);
}

const sheet = new CSSStyleSheet();
sheet.replaceSync(shared + own);
document.adoptedStyleSheets = [sheet];
useToken(readAddress().token);
served().then(show, (error: unknown) => {
  const text = error instanceof Refused ? `${error.message}: ${error.remedy}` : String(error);
  document.body.replaceChildren(element("p", { class: "failure" }, text));
});
