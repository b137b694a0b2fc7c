// Bundles the viewer into one script, dist/report.js, which the program embeds. The bundle is checked
// in, so that building Filigree needs no Node; a test rebuilds it and compares where Node exists.
//
// Usage: node build.mjs [OUTPUT]
import { build } from "esbuild";

await build({
  entryPoints: ["src/main.ts"],
  outfile: process.argv[2] ?? "dist/report.js",
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  loader: { ".css": "text" },
  legalComments: "none",
  logLevel: "warning",
});
