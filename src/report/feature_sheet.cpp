#include "report/feature_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace filigree {
namespace {

constexpr const char* kSheetStyle = R"css(
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5b6876; --line: #d9dfe5; --paper: #ffffff;
  --panel: #f5f7f9; --hot: 232, 119, 34; --up: #2f7d4f; --down: #b3423a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --soft: #98a5b3; --line: #35404c;
  --paper: #14191f; --panel: #1b222a; --hot: 240, 140, 60; --up: #62b886; --down: #e0837b; } }
@media print { :root { --ink: #1d2733; --soft: #5b6876; --line: #d9dfe5; --paper: #fff; --panel: #fff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1.25rem 3rem; max-width: 72rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 "Noto Sans", system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0; } h2 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
.words { font-size: 1.1rem; margin: .1rem 0 .8rem; } .note, .foot { color: var(--soft); font-size: .85rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: .6rem 1rem; margin: 0; }
dt { color: var(--soft); font-size: .8rem; } dd { margin: 0; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 0 2rem; }
table { border-collapse: collapse; width: 100%; } td { padding: .1rem .3rem .1rem 0; white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; width: 4.5rem; }
td.bar { width: 40%; } td.bar i { display: block; height: .6rem; border-radius: 2px; }
.up { background: var(--up); } .size { background: var(--soft); } .down { background: var(--down); }
.token, .example { font-family: "Noto Sans Mono", ui-monospace, monospace; font-size: .85rem; }
.example { padding: .2rem .5rem; border-bottom: 1px solid var(--line); white-space: pre-wrap;
  display: grid; grid-template-columns: 4rem 1fr; gap: .6rem; }
.example b { font-weight: 400; color: var(--soft); text-align: right; }
.example span span { border-radius: 2px; background: rgba(var(--hot), var(--a)); }
.example .centre { outline: 1px solid rgba(var(--hot), .9); font-weight: 600; }
.histogram { display: flex; align-items: flex-end; gap: 2px; height: 5rem; border-bottom: 1px solid var(--line); }
.histogram i { flex: 1; background: rgba(var(--hot), .85); border-radius: 2px 2px 0 0; min-height: 1px; }
.scale { display: flex; justify-content: space-between; }
)css";

std::string escaped_html(const std::string& text) {
  std::string result;
  for (const char c : text) switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  return result;
}

// Line breaks and tabs are signs, so that an example stays one piece.
std::string token_html(const std::string& token) {
  std::string text;
  for (const char c : token) switch (c) {
      case '\n': text += "↵"; break;
      case '\t': text += "⇥"; break;
      case '\r': break;
      default: text += c;
    }
  return escaped_html(text);
}

std::string list_html(const SheetList& list) {
  double widest = 0;
  for (const auto& [name, value] : list.rows) widest = std::max(widest, std::abs(value));
  std::string html = fmt::format("<section><h2>{}</h2>", escaped_html(list.title));
  if (!list.note.empty()) html += fmt::format("<p class=note>{}</p>", escaped_html(list.note));
  html += "<table>";
  for (const auto& [name, value] : list.rows)
    html += fmt::format(
        "<tr><td{}>{}</td><td class=number>{}</td><td class=bar><i class={} "
        "style=\"width:{:.1f}%\"></i></td></tr>",
        list.tokens ? " class=token" : "", list.tokens ? token_html(name) : escaped_html(name),
        list.sizes ? fmt::format("{:#.3g}", value) : fmt::format("{:+#.3g}", value),
        list.sizes  ? "size"
        : value < 0 ? "down"
                    : "up",
        widest > 0 ? 100 * std::abs(value) / widest : 0.0);
  return html + "</table></section>";
}

std::string example_html(const SheetExample& example, double largest) {
  std::string html = fmt::format("<div class=example><b>{:.3g}</b><span>", example.value);
  for (std::size_t t = 0; t < example.tokens.size(); ++t) {
    const double share = largest > 0 ? std::clamp(example.activations[t] / largest, 0.0, 1.0) : 0.0;
    const std::string token = token_html(example.tokens[t]);
    if (share == 0 && t != example.centre) {
      html += token;
      continue;
    }
    html += fmt::format("<span{} style=\"--a:{:.2f}\" title=\"{:.3g}\">{}</span>",
                        t == example.centre ? " class=centre" : "", 0.85 * share,
                        example.activations[t], token);
  }
  return html + "</span></div>";
}

std::string histogram_html(const FeatureSheet& sheet) {
  double highest = 0;
  for (const double share : sheet.histogram) highest = std::max(highest, share);
  if (highest == 0) return "";
  std::string html =
      "<h2>How strong it is where it is active</h2><div class=histogram role=img "
      "aria-label=\"histogram of activations\">";
  for (const double share : sheet.histogram)
    html += fmt::format("<i style=\"height:{:.1f}%\" title=\"{:.3g} %\"></i>",
                        100 * share / highest, 100 * share);
  return html +
         fmt::format("</div><div class=\"scale note\"><span>0</span><span>{:.3g}</span></div>",
                     sheet.largest);
}

}  // namespace

std::string feature_html(const FeatureSheet& sheet) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
      "content=\"width=device-width, initial-scale=1\"><title>{0} · {1}</title><style>{2}</style>"
      "</head><body>\n<header><h1>{0}</h1><p class=words>{3}</p></header>\n<dl>",
      escaped_html(sheet.name), escaped_html(sheet.model), kSheetStyle, token_html(sheet.words));
  for (const auto& [name, value] : sheet.facts)
    html +=
        fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", escaped_html(name), escaped_html(value));
  html += "</dl>\n";
  if (!sheet.bands.empty()) html += histogram_html(sheet);
  html += "\n<div class=columns>";
  for (const SheetList& list : sheet.lists)
    if (!list.rows.empty()) html += list_html(list);
  html += "</div>\n";
  for (const SheetBand& band : sheet.bands) {
    if (band.examples.empty()) continue;
    html += fmt::format("<section><h2>{}</h2>", escaped_html(band.name));
    for (const SheetExample& example : band.examples) html += example_html(example, sheet.largest);
    html += "</section>\n";
  }
  return html + fmt::format("<p class=foot>{}</p></body></html>\n", escaped_html(sheet.foot));
}

}  // namespace filigree
