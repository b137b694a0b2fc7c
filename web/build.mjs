// Bundles each page into one script that the program embeds: dist/report.js is the offline report,
// dist/live.js the page of `filigree serve`. The bundles are checked in, so that building Filigree
// needs no Node; a test rebuilds them and compares where Node exists.
//
// Usage: node build.mjs [FOLDER]
import { build } from "esbuild";

await build({
  entryPoints: { report: "src/main.ts", live: "src/live/main.ts" },
  outdir: process.argv[2] ?? "dist",
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  loader: { ".css": "text" },
  legalComments: "none",
  logLevel: "warning",
});
