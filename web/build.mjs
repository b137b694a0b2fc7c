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
const small = async (file) => (await transform(await readFile(file, "utf8"), { loader: "css", minify: true })).code;
await mkdir(out, { recursive: true });
await writeFile(`${out}/live.css`, (await Promise.all(styles.map(small))).join(""));
// Styles as texts of the script.
const css = {
  name: "css",
  setup: ({ onLoad }) => onLoad({ filter: /\.css$/ }, async ({ path }) => ({ contents: await small(path), loader: "text" })),
};

await build({
  entryPoints: { report: "src/main.ts", live: "src/live/main.ts" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  plugins: [css],
  legalComments: "none",
  logLevel: "warning",
});
