#include "filigree/report.h"

#include <nlohmann/json.hpp>

#include <cmath>

#include "base/atomic_file.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "report/packed_maps.h"
#include "report/page_colors.h"

namespace filigree {
namespace {

using Json = nlohmann::json;

// Three decimals are more than a colour shows and keep 144 x 144 numbers small.
Json rounded(double value) {
  return std::isfinite(value) ? Json(std::round(value * 1000.0) / 1000.0) : Json();
}

Json texts(const NamedTexts& named) {
  Json list = Json::array();
  for (const auto& [name, text] : named) list.push_back({name, text});
  return list;
}

Json optional_number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json packed_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(packed_text(text));
}

Json model_json(const ReportModel& model) {
  Json layers = Json::array(), heads = Json::array();
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    layers.push_back(layer_name(layer));
    for (std::int64_t head = 0; head < model.heads; ++head)
      heads.push_back(head_name({layer, head}));
  }
  Json roles = Json::array(), statistics = Json::array();
  for (const ReportHead& head : model.by_head) {
    roles.push_back({{"role", head.role}, {"confidence", head.confidence}});
    statistics.push_back(head.statistics);
  }
  return {{"name", model.name},        {"layers", std::move(layers)},
          {"heads", std::move(heads)}, {"facts", texts(model.facts)},
          {"roles", std::move(roles)}, {"statistics", std::move(statistics)}};
}

Json pairs_json(const std::vector<ReportPairs>& all) {
  Json list = Json::array();
  for (const ReportPairs& pairs : all) {
    Json matrix = Json::array();
    for (const std::vector<double>& row : pairs.matrix) {
      Json line = Json::array();
      for (double value : row) line.push_back(rounded(value));
      matrix.push_back(std::move(line));
    }
    list.push_back(
        {{"measure", pairs.measure}, {"matrix", std::move(matrix)}, {"order", pairs.order}});
  }
  return list;
}

Json tasks_json(const std::vector<ReportTask>& tasks) {
  Json list = Json::array();
  for (const ReportTask& task : tasks) {
    Json figures = Json::array();
    for (const ReportFigure& figure : task.figures) {
      figures.push_back({{"title", figure.title},
                         {"caption", figure.caption},
                         {"svg", packed_text(figure.svg)},
                         {"dark_svg", packed_or_null(figure.dark_svg)}});
    }
    list.push_back({{"name", task.name},
                    {"description", task.description},
                    {"facts", texts(task.facts)},
                    {"columns", task.columns},
                    {"rows", task.rows},
                    {"heads", task.heads},
                    {"figures", std::move(figures)},
                    {"stored", packed_or_null(task.stored)}});
  }
  return list;
}

void check(const Report& report) {
  require(report.models.size() == 1 || report.models.size() == 2,
          "report: {} models; one or two can be shown", report.models.size());
  require(!report.prompts.empty(), "report: there is no prompt to show");
  const ReportModel& first = report.models.front();
  for (const ReportModel& model : report.models) {
    require(model.layers == first.layers && model.heads == first.heads,
            "report: '{}' has {} x {} heads and '{}' {} x {}; side by side they must be alike",
            first.name, first.layers, first.heads, model.name, model.layers, model.heads);
    const auto heads = static_cast<std::size_t>(model.layers * model.heads);
    require(model.by_head.size() == heads, "report: {} heads described of '{}', which has {}",
            model.by_head.size(), model.name, heads);
    for (const ReportPairs& pairs : model.pairs)
      require(pairs.matrix.size() == heads && pairs.order.size() == heads,
              "report: the correlations of '{}' are not of {} heads", model.name, heads);
  }
  for (const ReportTask& task : report.tasks)
    for (const std::vector<std::string>& row : task.rows)
      require(row.size() == task.columns.size(),
              "report: a row of the task '{}' has {} cells for {} columns", printable(task.name),
              row.size(), task.columns.size());
  for (const ReportPrompt& prompt : report.prompts)
    require(!prompt.tokens.empty() && prompt.maps.size() == report.models.size(),
            "report: a prompt without tokens or maps");
}

// Inside a script element only "</" and "<!--" end or change it; no '<' at all is simplest.
std::string inside_script(const std::string& text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

std::string inside_html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      default: safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string report_page(const Report& report) {
  check(report);
  Json models = Json::array(), pairs = Json::array(), prompts = Json::array();
  for (const ReportModel& model : report.models) {
    models.push_back(model_json(model));
    pairs.push_back(pairs_json(model.pairs));
  }
  for (const ReportPrompt& prompt : report.prompts)
    prompts.push_back({{"text", prompt.text},
                       {"tokens", prompt.tokens},
                       {"maps", prompt.maps},
                       {"stored", packed_or_null(prompt.stored)},
                       {"changed_maps", packed_or_null(prompt.changed_maps)}});
  Json statistics = Json::array();
  for (const ReportStatistic& row : report.statistics) {
    Json intervals = Json::array();
    for (const std::optional<std::array<double, 2>>& interval : row.intervals)
      intervals.push_back(interval ? Json(*interval) : Json());
    statistics.push_back({{"name", row.name},
                          {"label", row.label},
                          {"over", row.over},
                          {"unit", row.unit},
                          {"values", row.values},
                          {"intervals", std::move(intervals)},
                          {"change", optional_number(row.change)},
                          {"low", optional_number(row.low)},
                          {"high", optional_number(row.high)},
                          {"p", optional_number(row.p)},
                          {"least_p", optional_number(row.least_p)}});
  }
  Json numbers = Json::array();
  for (const auto& [value, label] : report.story.numbers)
    numbers.push_back({{"value", value}, {"label", label}});
  const Json data = {{"format", "filigree-report-5"},
                     {"title", report.title},
                     {"story", {{"line", report.story.line}, {"numbers", std::move(numbers)}}},
                     {"models", std::move(models)},
                     {"prompts", std::move(prompts)},
                     {"statistics", std::move(statistics)},
                     {"pairs", std::move(pairs)},
                     {"tasks", tasks_json(report.tasks)},
                     {"roles", report.roles},
                     {"colors", page_colors()},
                     {"made", texts(report.made)}};
  // Tokens may be pieces of characters: those are shown as the replacement character.
  const std::string json = data.dump(-1, ' ', false, Json::error_handler_t::replace);

  std::string page = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width\">\n";
  // Nothing may be fetched, whatever the data say.
  page +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n";
  page += "<link rel=\"icon\" href=\"data:,\">\n";
  page += "<title>" + inside_html(report.title) + "</title>\n</head>\n<body>\n";
  page += "<noscript>This report is drawn by a script.</noscript>\n";
  page += "<script id=\"filigree-data\" type=\"application/json\">" + inside_script(json);
  page += "</script>\n<script>";
  page += viewer_script();
  page += "</script>\n</body>\n</html>\n";
  return page;
}

void write_report(const Report& report, const std::filesystem::path& path) {
  write_file_atomically(path, report_page(report));
}

}  // namespace filigree
