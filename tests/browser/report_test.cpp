// The report page in a real browser: what a reader clicks and points at.
#include "filigree/report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "browser/browser.h"
#include "filigree/palette.h"
#include "report/report_test_support.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReportPage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Browser::unavailable(); !why.empty()) GTEST_SKIP() << why;
    browser_ = std::make_unique<Browser>();
    write_report(test_report(), folder_.path() / "report.html");
    browser_->open("file://" + (folder_.path() / "report.html").string());
    browser_->wait_for("return document.querySelectorAll('button.head').length === 40");
  }

  void TearDown() override {
    if (!browser_) return;
    EXPECT_THAT(browser_->console_errors(), IsEmpty());
    EXPECT_THAT(browser_->requests(), IsEmpty());
  }

  std::string text_of(const std::string& selector) {
    return browser_->run(fmt::format("return document.querySelector('{}').textContent", selector));
  }

  // Points at the middle of a cell of a large map; the maps have 4 x 4 cells.
  void point_at_cell(const std::string& map, int query, int key) {
    const auto place =
        browser_->run(fmt::format("const c = document.querySelector('canvas[data-map=\"{}\"]'), b "
                                  "= c.getBoundingClientRect();"
                                  "return [b.left, b.top, b.width]",
                                  map));
    // Names of tokens on the left, bars of sums at the top and on the right.
    const double margin = 78, bars = 30, side = place[2].get<double>() - margin - bars;
    browser_->point_at(place[0].get<double>() + margin + (key + 0.5) * side / 4,
                       place[1].get<double>() + bars + (query + 0.5) * side / 4);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Browser> browser_;
};

TEST_F(ReportPage, ShowsBothModelsRolesStatisticsAndPairs) {
  EXPECT_EQ(browser_->run("return document.title"), "dense and sparse");
  EXPECT_THAT(text_of("#roles"), HasSubstr("sink+current"));
  EXPECT_THAT(text_of("#statistics"), HasSubstr("mean peak weight"));
  EXPECT_THAT(text_of("#statistics"), HasSubstr("0.0010"));
  EXPECT_THAT(text_of("#made"), HasSubstr("filigree compare dense sparse"));
  EXPECT_EQ(browser_->run("return document.querySelectorAll('#pairs canvas').length"), 2);
  // Thumbnails are really drawn: head L0H1 of the sparse model looks one token back.
  EXPECT_TRUE(browser_->run(
      "const c = document.querySelector('button[data-model=\"1\"][data-head=\"L0H1\"] canvas');"
      "const x = c.getContext('2d'), n = c.width / 4;"
      "const at = (i, j) => x.getImageData((j + .5) * n, (i + .5) * n, 1, 1).data;"
      "return at(1, 0)[0] < 200 && at(1, 1)[0] === 255 && at(0, 1)[3] === 0"));
}

TEST_F(ReportPage, BeginsWithTheStoryItsNumbersAndWhatColoursMean) {
  EXPECT_THAT(text_of("#story"), HasSubstr("sparse reads prose with 1 % of the edges."));
  EXPECT_EQ(browser_->run("return document.querySelectorAll('#story .tile').length"), 4);
  EXPECT_THAT(text_of("#legend"), AllOf(HasSubstr("weight0>00.250.50.751"), HasSubstr("previous"),
                                        HasSubstr("in the circuit")));
  // Side by side, and both there without scrolling.
  EXPECT_TRUE(browser_->run(
      "const [a, b] = [...document.querySelectorAll('.panel')].map(p => p.getBoundingClientRect());"
      "return innerWidth < 1000 || (a.top === b.top && a.right < b.left && b.bottom < "
      "innerHeight)"));
  // No fact of a model is cut.
  EXPECT_TRUE(
      browser_->run("return [...document.querySelectorAll('.panel .facts')].every("
                    "f => f.textContent && f.scrollWidth <= f.clientWidth)"));
}

TEST_F(ReportPage, MarksTheHeadsOfACircuit) {
  const auto marked = [&](int model) {
    return browser_->run(
        fmt::format("return [...document.querySelectorAll('button.member[data-model=\"{}\"]')]"
                    ".map(b => b.dataset.head + ' ' + b.querySelector('.rank').textContent).join()",
                    model));
  };
  EXPECT_EQ(marked(0), "L0H1 1,L3H4 2");
  EXPECT_EQ(marked(1), "L3H4 1");
  browser_->run(
      "const s = document.querySelector('#circuit'); s.value = '-1';"
      "s.dispatchEvent(new Event('change'))");
  EXPECT_EQ(marked(0), "");
}

TEST_F(ReportPage, PointingAtATokenShowsItInEveryHead) {
  EXPECT_EQ(browser_->run("return document.querySelectorAll('.token').length"), 4);
  const auto place = browser_->run(
      "const b = document.querySelector('[data-token=\"2\"]').getBoundingClientRect();"
      "return [b.left + b.width / 2, b.top + b.height / 2]");
  browser_->point_at(place[0].get<double>(), place[1].get<double>());
  browser_->wait_for(
      "return document.querySelector('#token-readout').textContent.includes('looks at')");
  // Dense head L0H0 gives each of three tokens a third; sparse heads give one key a half.
  EXPECT_THAT(text_of("#token-readout"),
              AllOf(HasSubstr("\u201c\u00b7sat\u201d looks at"), HasSubstr("L0H0 \u2192 The 0.33"),
                    HasSubstr("L0H0 \u2192 \u00b7sat 0.50")));
  // The row of the third of four tokens, in every map.
  EXPECT_EQ(browser_->run("return [...document.querySelectorAll('.map')].filter(m => {"
                          "  const s = getComputedStyle(m, '::before'), h = m.clientHeight;"
                          "  return Math.abs(parseFloat(s.top) - h / 2) < 1 &&"
                          "    Math.abs(parseFloat(s.height) - h / 4) < 1; }).length"),
            40);
}

TEST_F(ReportPage, ShowsTasksWithSizesAndPictures) {
  EXPECT_THAT(text_of("#tasks"), HasSubstr("61 of 144"));
  EXPECT_THAT(text_of("#tasks"), HasSubstr("6.78"));
  EXPECT_THAT(text_of("#tasks"), HasSubstr("metric: logit-diff"));
  browser_->wait_for("return document.querySelector('#tasks img').naturalWidth > 0");
  EXPECT_EQ(browser_->run("return document.querySelector('#tasks img').naturalWidth"), 30);
  EXPECT_EQ(text_of("nav a[href=\"#tasks\"]"), "tasks");
  EXPECT_THAT(text_of("#tasks"), HasSubstr("2,000 of 30,240"));
  EXPECT_THAT(text_of("#tasks"), HasSubstr("Edges of the circuits"));
  // A drawing wider than the page is made to fit it.
  browser_->wait_for("return document.querySelectorAll('#tasks img')[1].naturalWidth > 0");
  EXPECT_TRUE(
      browser_->run("const i = document.querySelectorAll('#tasks img')[1];"
                    "return i.naturalWidth === 3000 && i.clientWidth > 200 &&"
                    " i.clientWidth <= document.querySelector('#tasks').clientWidth"));
}

TEST_F(ReportPage, AClickShowsTheHeadAndPointingShowsTokensAndWeights) {
  browser_->click("button[data-model=\"0\"][data-head=\"L3H4\"]");
  browser_->wait_for("return document.querySelector('dialog').open");
  EXPECT_EQ(text_of("#detail-title"), "Head L3H4");
  EXPECT_EQ(browser_->run("return location.hash"), "#head=L3H4");

  // Head 19: dense weights are 1 / (2 (i + 1)), the sparse model looks three tokens back.
  point_at_cell("model-0", 3, 0);
  EXPECT_EQ(text_of("#readout"),
            "query 3 \u201c.\u201d \u2192 key 0 \u201cThe\u201d: dense 0.1250, sparse 0.5000");
  point_at_cell("model-1", 2, 1);
  EXPECT_EQ(text_of("#readout"),
            "query 2 \u201c\u00b7sat\u201d \u2192 key 1 \u201c\u00b7cat\u201d: dense 0.1667, "
            "sparse 0.0000");
  point_at_cell("difference", 0, 2);  // above the diagonal
  EXPECT_THAT(text_of("#readout"), HasSubstr("Point at a cell"));

  browser_->press("\uE012");  // left arrow
  browser_->wait_for("return location.hash === '#head=L3H3'");
  EXPECT_EQ(text_of("#detail-title"), "Head L3H3");
  browser_->press("\uE00C");  // Escape
  browser_->wait_for("return !document.querySelector('dialog').open");
  browser_->wait_for("return location.hash === ''");  // the dialog tells a moment after it closed
}

TEST_F(ReportPage, HeadsCanBeOrderedByRoleAndOpenedFromTheAddress) {
  const auto order = [&](const std::string& by, const std::string& second) {
    browser_->run(
        fmt::format("const s = document.querySelector('#order'); s.value = '{}';"
                    "s.dispatchEvent(new Event('change'))",
                    by));
    browser_->wait_for(fmt::format(
        "return document.querySelectorAll('button.head')[1].dataset.head === '{}'", second));
  };
  order("role", "L0H2");
  order("importance", "L2H1");
  browser_->run("location.hash = '#L2H0'");
  browser_->wait_for("return document.querySelector('dialog').open");
  EXPECT_EQ(text_of("#detail-title"), "Head L2H0");
}

// The views of the live page, over what the report has stored.
TEST_F(ReportPage, ATokensWayIsDrawnAsArcs) {
  browser_->click("#tab-tokens");
  browser_->wait_for("return document.querySelectorAll('#arcs .arc').length > 0");
  browser_->click("#arcs .word[data-token=\"1\"]");
  browser_->wait_for("return document.querySelectorAll('#arcs .arc.out').length > 0");
  // Sparse heads 0 and 1 of each four look at the token itself and at the one before.
  EXPECT_EQ(browser_->run("return [...document.querySelectorAll('#arcs .arc.model-1')]"
                          ".map(a => a.dataset.edge).sort().join()"),
            "1<-0,1<-1,2<-1,3<-1");
  EXPECT_THAT(text_of("#arcs"), HasSubstr("L0H1 0.50"));
  EXPECT_EQ(browser_->run("return document.querySelectorAll('#arcs .chip').length"), 0)
      << "what is stored cannot be switched off";
  EXPECT_EQ(browser_->run("return location.hash"), "#view=tokens&at=1");
}

TEST_F(ReportPage, TheLensAndTheAttributionOfATokenAreShown) {
  browser_->click("#tab-lens");
  browser_->wait_for(
      "return document.querySelectorAll('.lens').length === 2 && "
      "document.querySelectorAll('#attribution .cells').length === 2");
  EXPECT_EQ(browser_->run("return document.querySelectorAll('.lens tbody tr').length"), 2 * 5);
  EXPECT_THAT(text_of("#attribution h2"), HasSubstr("likeliest"));
  EXPECT_THAT(text_of("#attribution"), HasSubstr("dense: 4.00"));
  browser_->click(".lens .token[data-token=\"2\"]");
  browser_->wait_for(
      "return /\\(2\\)/.test(document.querySelector('#attribution h2').textContent)");
  EXPECT_THAT(text_of("#attribution"), AllOf(HasSubstr("dense: 2.00"), HasSubstr("L3H41.900")));
}

TEST_F(ReportPage, StoredChangesShowWhatBecomesOfAPrediction) {
  browser_->click("#tab-changes");
  browser_->wait_for("return document.querySelectorAll('.changed tbody tr').length === 3");
  EXPECT_THAT(text_of("#predictions"), HasSubstr("75.0 %"));
  browser_->click("[data-off=\"L3H4\"]");
  browser_->wait_for(
      "return document.querySelector('#predictions').textContent.includes('was 75.0 %')");
  EXPECT_THAT(text_of("#predictions"),
              AllOf(HasSubstr("50.0 %"), HasSubstr("62.5 %"), HasSubstr("was 2.25")));
  EXPECT_EQ(browser_->run("return location.hash"), "#off=L3H4&view=changes");
  browser_->click("[data-off=\"\"]");
  browser_->wait_for("return !document.querySelector('#predictions').textContent.includes('was')");
  // Where another token is likelier then, the one of before keeps its place in the list.
  browser_->click("[data-off=\"L1H0\"]");
  browser_->wait_for("return document.querySelectorAll('.original .now').length === 2");
  EXPECT_EQ(text_of("#predictions .original th"), "\u00b7It");
  EXPECT_EQ(text_of("#predictions .original .now"), "2.");
  EXPECT_EQ(text_of("#predictions .original .was"), "was 75.0 %, rank 1");
  // A change that is not stored is left out, with what would compute it; others can be chosen.
  browser_->run("location.hash = '#off=L0H0&view=changes'");
  browser_->wait_for(
      "return document.querySelector('#status').textContent.includes('filigree serve')");
  EXPECT_EQ(browser_->run("return document.querySelectorAll('#predictions .was').length"), 0)
      << "the run as it is";
  EXPECT_EQ(browser_->run("return document.querySelector('.changed [aria-selected=true] button')"
                          ".dataset.off"),
            "");
  browser_->click("[data-off=\"L3H4\"]");
  browser_->wait_for("return document.querySelectorAll('#predictions .was').length === 4");
  EXPECT_EQ(text_of("#status"), "");
}

TEST_F(ReportPage, APromptThatIsNotInItShowsNothingOfAnother) {
  browser_->run("location.hash = '#prompt=no+such+prompt'");
  browser_->wait_for(
      "return document.querySelector('#status').textContent.includes('that prompt')");
  EXPECT_FALSE(browser_->run("return document.querySelector('#views').checkVisibility()"));
  EXPECT_EQ(browser_->run("return document.querySelector('#prompt').selectedIndex"), -1);
  browser_->run(
      "const s = document.querySelector('#prompt'); s.value = '0';"
      "s.dispatchEvent(new Event('change'))");
  browser_->wait_for("return document.querySelector('#views').checkVisibility()");
  EXPECT_EQ(text_of("#status"), "");
}

// Every view shows the run with its change, as the live page does.
TEST_F(ReportPage, MapsArcsAndLensAreOfTheChangedRun) {
  const auto first_column = [&](const std::string& head) {  // colours of the last query's keys
    return browser_->run(fmt::format(
        "const c = document.querySelector('button[data-model=\"1\"][data-head=\"{}\"] canvas');"
        "const n = c.width / 4;"
        "return [0, 1, 2, 3].map(j => c.getContext('2d').getImageData((j + .5) * n, 3.5 * n, 1, 1)"
        "  .data.join()).join(' ')",
        head));
  };
  const auto plain = first_column("L2H1"), plain_before = first_column("L1H1");
  const auto choose = [&](const std::string& part) {
    browser_->run(
        fmt::format("const s = document.querySelector('#off'); s.value = '{}';"
                    "s.dispatchEvent(new Event('change'))",
                    part));
    browser_->wait_for(fmt::format("return document.body.dataset.off === '{}'", part));
  };
  choose("L1H0");
  EXPECT_NE(first_column("L2H1"), plain) << "behind the change";
  EXPECT_EQ(first_column("L1H1"), plain_before) << "beside it";
  EXPECT_EQ(browser_->run("return [...document.querySelectorAll('.head.off')]"
                          ".map(h => h.dataset.head).join()"),
            "L1H0,L1H0");
  browser_->run("location.hash = '#off=L1H0&head=L2H1'");
  browser_->wait_for("return document.querySelector('dialog').open");
  browser_->run("location.hash = '#off=L1H0&view=tokens&at=3&layer=2'");
  browser_->wait_for("return document.querySelectorAll('#arcs .arc').length > 0");
  EXPECT_THAT(text_of("#arcs"), HasSubstr("L2H1 1.00"));
  // Its weights are there, and carry nothing.
  browser_->run("location.hash = '#view=tokens&at=3&layer=1'");
  browser_->wait_for("return document.querySelector('#arcs').textContent.includes('L1H0')");
  browser_->run("location.hash = '#off=L1H0&view=tokens&at=3&layer=1'");
  browser_->wait_for("return !document.querySelector('#arcs').textContent.includes('L1H0')");
  EXPECT_THAT(text_of("#arcs"), HasSubstr("L1H1"));
  browser_->run("location.hash = '#off=L1H0&view=lens'");
  browser_->wait_for("return document.querySelectorAll('.lens').length === 2");
  EXPECT_EQ(browser_->run("return [...document.querySelectorAll('.lens')]"
                          ".map(t => t.querySelectorAll('tbody td')).map(cells =>"
                          "  [...cells].filter(c => c.textContent === 'moved').length).join()"),
            "12,12")
      << "three layers of four tokens";
  browser_->wait_for(
      "return document.querySelector('#attribution').textContent.includes('filigree serve')");
  choose("");
  browser_->wait_for("return document.querySelectorAll('#attribution .cells').length === 2");
  EXPECT_THAT(text_of("#lens"), Not(HasSubstr("moved")));
}

TEST_F(ReportPage, ShowsCircuitsAtWork) {
  browser_->wait_for("return document.querySelectorAll('.circuit-runs tbody tr').length === 4");
  EXPECT_THAT(text_of(".circuit-runs"),
              AllOf(HasSubstr("Tom gave it to"), HasSubstr("2 heads, the rest off"),
                    HasSubstr("as in the corrupt prompt"), HasSubstr("40.0 %")));
}

TEST_F(ReportPage, WithoutStoredRunsHasItsMapsAndArcs) {
  Report report = test_report();
  report.prompts[0].stored = "";
  write_report(report, folder_.path() / "maps.html");
  browser_->open("file://" + (folder_.path() / "maps.html").string());
  browser_->wait_for("return document.querySelectorAll('button.head').length === 40");
  EXPECT_EQ(browser_->run("return [...document.querySelectorAll('[role=tab]')]"
                          ".map(t => t.textContent).join()"),
            "Heads,Tokens");
  EXPECT_EQ(browser_->run("return document.querySelectorAll('#order option').length"), 3);
}

// The colours of the figures, dark and light: of the page, of a weight, of zero and of a role.
TEST_F(ReportPage, TakesItsColoursFromThePalette) {
  const auto written = [](Rgb color) {
    return fmt::format("rgb({}, {}, {})", color >> 16, color >> 8 & 255, color & 255);
  };
  // Head L0H1 of the sparse model gives the token before 0.5 and the others nothing.
  const auto colors = [&] {
    return browser_->run(
        "const b = document.querySelector('button[data-model=\"1\"][data-head=\"L0H1\"]');"
        "const c = b.querySelector('canvas'), x = c.getContext('2d'), n = c.width / 4;"
        "const at = (i, j) => {"
        "  const [r, g, v] = x.getImageData((j + .5) * n, (i + .5) * n, 1, 1).data;"
        "  return `rgb(${r}, ${g}, ${v})`; };"
        "const role = document.querySelector('button[data-model=\"1\"][data-head=\"L0H0\"]');"
        "return [getComputedStyle(document.body).backgroundColor, at(1, 0), at(1, 1),"
        "  getComputedStyle(role).borderBottomColor, getComputedStyle(b).borderBottomColor]");
  };
  for (const Palette& palette : {kLightPalette, kDarkPalette}) {
    const std::string page = written(palette.page);
    browser_->wait_for(
        fmt::format("return getComputedStyle(document.body).backgroundColor === '{}'", page));
    // A half, in 65535ths, of the way through six colours.
    const Rgb half = mixed(palette.magnitude[2], palette.magnitude[3], 32768 / 65535.0 * 5 - 2);
    EXPECT_EQ(colors(), (nlohmann::json{page, written(half), written(palette.empty),
                                        written(palette.categories[2]),     // previous
                                        written(palette.categories[0])}));  // sink+current
    browser_->click("#theme");
  }
}

// Paper is light, from a dark screen too, at once; afterwards the screen is as it was.
TEST_F(ReportPage, IsPrintedLight) {
  const auto theme = [&] { return browser_->run("return document.documentElement.dataset.theme"); };
  const auto zero_cell = [&] {  // a closed edge in the map of a sparse head
    return browser_->run(
        "const c = document.querySelector('button[data-model=\"1\"][data-head=\"L0H1\"] canvas');"
        "const n = c.width / 4;"
        "return c.getContext('2d').getImageData(1.5 * n, 1.5 * n, 1, 1).data[0]");
  };
  if (theme() != "dark") browser_->click("#theme");
  EXPECT_LT(zero_cell(), 64);
  browser_->run("dispatchEvent(new Event('beforeprint'))");
  EXPECT_EQ(theme(), "light");
  EXPECT_EQ(zero_cell(), 255);
  browser_->run("dispatchEvent(new Event('afterprint'))");
  EXPECT_EQ(theme(), "dark");
  EXPECT_LT(zero_cell(), 64);
}

TEST_F(ReportPage, ADamagedReportSaysSo) {
  std::string page = report_page(test_report());
  const std::string known = "filigree-report-5";
  page.replace(page.find(known), known.size(), "filigree-report-9");
  std::ofstream(folder_.path() / "other.html") << page;
  browser_->open("file://" + (folder_.path() / "other.html").string());
  EXPECT_THAT(text_of("body"), HasSubstr("does not know the format 'filigree-report-9'"));
}

}  // namespace
}  // namespace filigree
