// Bundles each page into one script that the program embeds: dist/report.js is the offline report with
// its style, dist/live.js the page of `filigree serve` and dist/live.css its style, which a browser can
// show before the script has run. The bundles are checked in, so that building Filigree
// needs no Node; a test rebuilds them and compares where Node exists.
//
// Usage: node build.mjs [FOLDER]
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { build, transform } from "esbuild";

const out = process.argv[2] ?? "dist";
const styles = ["src/style.css", "src/views/views.css", "src/live/live.css"];
const sheet = (await Promise.all(styles.map((file) => readFile(file, "utf8")))).join("");
await mkdir(out, { recursive: true });
await writeFile(`${out}/live.css`, (await transform(sheet, { loader: "css", minify: true })).code);

await build({
  entryPoints: { report: "src/main.ts", live: "src/live/main.ts" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  loader: { ".css": "text" },
  legalComments: "none",
  logLevel: "warning",
});
