#include "filigree/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include <cmath>

#include "filigree/error.h"
#include "filigree/palette.h"
#include "report/packed_maps.h"
#include "report/report_test_support.h"
#include "support/base64.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string unpacked(const std::string& text) {
  const std::string deflated = from_base64(text);
  std::string bytes(1 << 16, '\0');
  uLongf size = bytes.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                       reinterpret_cast<const Bytef*>(deflated.data()), deflated.size()),
            Z_OK);
  bytes.resize(size);
  return bytes;
}

TEST(PackedText, ComesBack) {
  for (const std::string& text : {std::string(), std::string("<svg/>"), std::string(50000, 'x')})
    EXPECT_EQ(unpacked(packed_text(text)), text);
  EXPECT_LT(packed_text(std::string(50000, 'x')).size(), 1000u);
}

TEST(Base64, OfKnownTexts) {
  const auto encode = [](std::string_view text) {
    return base64({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
  };
  // RFC 4648, section 10.
  EXPECT_EQ(encode(""), "");
  EXPECT_EQ(encode("f"), "Zg==");
  EXPECT_EQ(encode("fo"), "Zm8=");
  EXPECT_EQ(encode("foo"), "Zm9v");
  EXPECT_EQ(encode("foobar"), "Zm9vYmFy");
}

TEST(PackedMaps, HoldLowerTrianglesAndTellZeroFromSmall) {
  PackedMaps packed;
  const float first[] = {1.0f, 9.0f, 0.25f, 0.75f};  // above the diagonal anything may be
  const float second[] = {0.0f, 0.0f, 1e-9f, 0.0f};
  packed.add(first, 2);
  packed.add(second, 2);
  const std::string deflated = from_base64(packed.finish());
  std::vector<unsigned char> bytes(100);
  uLongf size = bytes.size();
  ASSERT_EQ(uncompress(bytes.data(), &size, reinterpret_cast<const Bytef*>(deflated.data()),
                       deflated.size()),
            Z_OK);
  ASSERT_EQ(size, 12u);
  const auto value = [&](std::size_t i) { return bytes[2 * i] + 256 * bytes[2 * i + 1]; };
  EXPECT_EQ(value(0), 65535);
  EXPECT_EQ(value(1), 16384);
  EXPECT_EQ(value(2), 49151);
  EXPECT_EQ(value(3), 0);
  EXPECT_EQ(value(4), 1);
  EXPECT_EQ(value(5), 0);
}

TEST(PackedMaps, RefuseWhatIsNoWeight) {
  PackedMaps packed;
  for (const float bad : {-0.5f, 1.5f, std::nanf("")}) {
    const float map[] = {bad};
    EXPECT_THROW(packed.add(map, 1), Error) << bad;
  }
  const float map[] = {0.5f};
  EXPECT_THROW(packed.add(map, 2), Error);
  packed.finish();
  EXPECT_THROW(packed.add(map, 1), Error);
}

TEST(Report, IsOnePageThatAsksForNothing) {
  Report report = test_report();
  report.title = "a </script><b> & c";
  report.prompts[0].tokens[1] = "</script><!--";
  report.prompts[0].tokens[2] = "\xff";
  const std::string page = report_page(report);
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("<title>a &lt;/script&gt;&lt;b&gt; &amp; c</title>"));
  EXPECT_THAT(page, HasSubstr(std::string(viewer_script())));
  // Figures are in base64; the one address is the name of the elements of SVG, which nothing asks
  // for.
  std::string addresses = page;
  constexpr std::string_view kSvg = "\"http://www.w3.org/2000/svg\"";
  if (const std::size_t at = addresses.find(kSvg); at != std::string::npos)
    addresses.erase(at, kSvg.size());
  EXPECT_THAT(addresses, Not(HasSubstr("http://")));
  EXPECT_THAT(addresses, Not(HasSubstr("https://")));

  // The data come back as they went in.
  const std::string_view open = "type=\"application/json\">";
  const std::size_t begin = page.find(open) + open.size(), end = page.find("</script>", begin);
  const auto json = nlohmann::json::parse(page.substr(begin, end - begin));
  EXPECT_EQ(json["title"], report.title);
  EXPECT_EQ(json["prompts"][0]["tokens"][1], "</script><!--");
  EXPECT_EQ(json["prompts"][0]["tokens"][2], "\xef\xbf\xbd");
  EXPECT_EQ(json["models"][1]["roles"].size(), 20u);
  EXPECT_TRUE(json["pairs"][0][0]["matrix"][0][1].is_null()) << "an undefined correlation";
  EXPECT_EQ(json["models"][0]["layers"], (std::vector<std::string>{"L0", "L1", "L2", "L3"}));
  ASSERT_EQ(json["models"][1]["heads"].size(), 20u);
  EXPECT_EQ(json["models"][1]["heads"][19], "L3H4");
  EXPECT_EQ(json["colors"]["light"]["categories"][0], hex_text(kLightPalette.categories[0]));
  EXPECT_EQ(json["colors"]["dark"]["magnitude"][5], hex_text(kDarkPalette.magnitude[5]));
}

TEST(Report, HoldsTasksWithTheirFigures) {
  const std::string page = report_page(test_report());
  const std::string_view open = "type=\"application/json\">";
  const std::size_t begin = page.find(open) + open.size(), end = page.find("</script>", begin);
  const auto json = nlohmann::json::parse(page.substr(begin, end - begin));
  ASSERT_EQ(json["tasks"].size(), 1u);
  const auto& task = json["tasks"][0];
  EXPECT_EQ(task["columns"], (std::vector<std::string>{"for 90 %", "dense", "sparse", "ratio"}));
  EXPECT_EQ(task["rows"][0], (std::vector<std::string>{"heads", "61 of 144", "9 of 144", "6.78"}));
  EXPECT_EQ(task["rows"][1],
            (std::vector<std::string>{"edges", "4,110 of 32,491", "not reached", ""}));
  EXPECT_EQ(task["rows"][2],
            (std::vector<std::string>{"attention edges", "2,000 of 30,240", "none claimed", ""}));
  EXPECT_EQ(task["figures"][1]["title"], "Edges of the circuits");
  EXPECT_THAT(unpacked(task["figures"][0]["svg"].get<std::string>()), HasSubstr("<svg "));
  EXPECT_TRUE(task["figures"][0]["dark_svg"].is_null());
}

TEST(Report, HoldsStoredRunsPackedAndGoesWithoutThem) {
  Report report = test_report();
  const auto parsed = [&] {
    const std::string page = report_page(report);
    const std::string_view open = "type=\"application/json\">";
    const std::size_t begin = page.find(open) + open.size(), end = page.find("</script>", begin);
    return nlohmann::json::parse(page.substr(begin, end - begin));
  };
  EXPECT_EQ(unpacked(parsed()["prompts"][0]["stored"].get<std::string>()), test_stored_prompt());
  EXPECT_EQ(unpacked(parsed()["tasks"][0]["stored"].get<std::string>()), test_stored_circuits());
  EXPECT_EQ(unpacked(parsed()["prompts"][0]["changed_maps"].get<std::string>()),
            test_changed_maps());
  report.prompts[0].stored = report.tasks[0].stored = report.prompts[0].changed_maps = "";
  EXPECT_TRUE(parsed()["prompts"][0]["changed_maps"].is_null());
  EXPECT_TRUE(parsed()["prompts"][0]["stored"].is_null());
  EXPECT_TRUE(parsed()["tasks"][0]["stored"].is_null());
}

TEST(CircuitSection, SaysWhatIsThereWithoutAnyPart) {
  const ReportTask task = circuit_section(
      {.task = "x",
       .models = {"a", "b"},
       .sizes = {{"heads", {1, std::nullopt}, {2, 2}, {-1e-9, 0.838}, {true, false}},
                 {"edges", {5, std::nullopt}, {9, 9}, {0.12, 0.2}, {true, true}}},
       .heads = {{"L0H1"}, {}}});
  EXPECT_EQ(task.rows[0][1], "1 of 2 (none kept: 0 %)");
  EXPECT_EQ(task.rows[0][2], "do not carry it (none kept: 84 %)");
  EXPECT_EQ(task.rows[0][3], "");
  EXPECT_EQ(task.rows[1][2], "not reached (none kept: 20 %)");
  EXPECT_EQ(task.heads[0][0], "L0H1");
}

TEST(Report, RefusesTasksThatDoNotFit) {
  Report report = test_report();
  report.tasks[0].rows[0].pop_back();
  EXPECT_THROW(report_page(report), Error);
  CircuitSection section = {.task = "x", .models = {"a", "b"}, .sizes = {{"heads", {1}, {2, 2}}}};
  EXPECT_THROW(circuit_section(section), Error);
  section.models.clear();
  EXPECT_THROW(circuit_section(section), Error);
}

TEST(Report, RefusesPartsThatDoNotFit) {
  Report report = test_report();
  report.models[1].heads = 3;
  EXPECT_THROW(report_page(report), Error);
  report = test_report();
  report.prompts[0].maps.pop_back();
  EXPECT_THROW(report_page(report), Error);
  report = test_report();
  report.prompts.clear();
  EXPECT_THROW(report_page(report), Error);
  report = test_report();
  report.models[0].by_head.pop_back();
  EXPECT_THROW(report_page(report), Error);
}

}  // namespace
}  // namespace filigree
