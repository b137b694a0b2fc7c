// The page of `filigree serve` in a real browser: a prompt is typed, heads are looked at and
// switched off.
#include "browser/live_page.h"
#include "filigree/study_figures.h"

namespace filigree {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(LivePage, PredictionsAndMapsFollowWhatIsTyped) {
  EXPECT_EQ(browser_->run("return document.querySelectorAll('button.head').length"), 16);
  const std::string dense = picture(0, "L1H2"), sparse = picture(1, "L1H2"),
                    next = text_of("#predictions");
  EXPECT_NE(dense, sparse);
  const std::string tokens = text_of(".tokens");
  browser_->type("#prompt", " on the mat");
  wait_for_prompt("The cat sat on the mat");
  browser_->wait_for(fmt::format("return document.querySelector('#predictions').textContent !== {}",
                                 nlohmann::json(next).dump()));
  EXPECT_NE(picture(0, "L1H2"), dense);
  EXPECT_NE(picture(1, "L1H2"), sparse);
  EXPECT_THAT(text_of(".tokens"), AllOf(StartsWith(tokens), HasSubstr("\u00b7the")));
  browser_->wait_for("return location.hash.includes('on+the+mat')");
}

TEST_F(LivePage, PointingAtACellNamesItsTokensInBothModels) {
  const auto place = browser_->run(
      "const b = document.querySelector('button[data-model=\"0\"][data-head=\"L0H1\"] .map')"
      ".getBoundingClientRect(); return [b.left + 2, b.top + b.height - 3]");
  browser_->point_at(place[0].get<double>(), place[1].get<double>());
  browser_->wait_for("return document.querySelectorAll('.head.twin').length === 2");
  EXPECT_THAT(text_of("#cell-readout"), AllOf(HasSubstr("L0H1"), HasSubstr("(0)"),
                                              HasSubstr("dense "), HasSubstr("sparse ")));
}

TEST_F(LivePage, AHeadIsLookedAtAndSwitchedOff) {
  browser_->click("button[data-model=\"1\"][data-head=\"L0H3\"]");
  browser_->wait_for("return document.querySelector('dialog').open");
  EXPECT_EQ(browser_->run("return document.querySelectorAll('dialog canvas').length"), 3);
  EXPECT_THAT(std::string(browser_->run("return location.hash")), HasSubstr("head=L0H3"));
  browser_->press("\uE00C");  // Escape
  browser_->wait_for("return !document.querySelector('dialog').open");
  const std::string later = picture(0, "L1H1");
  EXPECT_THAT(text_of("#predictions"), Not(HasSubstr("was")));
  browser_->click("#switch");
  browser_->click("button[data-model=\"0\"][data-head=\"L0H3\"]");
  wait_for_off("L0H3");
  browser_->wait_for("return document.querySelectorAll('#predictions .was').length > 2");
  EXPECT_NE(picture(0, "L1H1"), later) << "heads above see what is missing";
  EXPECT_EQ(browser_->run("return document.querySelectorAll('.head.off').length"), 2);
  EXPECT_THAT(std::string(browser_->run("return location.hash")), HasSubstr("off=L0H3"));
  browser_->click(".chip");
  wait_for_off("");
  EXPECT_EQ(picture(0, "L1H1"), later);
}

TEST_F(LivePage, TheLargeViewShowsWhatAHeadLooksForReadsAndWrites) {
  browser_->click("button[data-model=\"1\"][data-head=\"L1H3\"]");
  browser_->wait_for("return document.querySelector('dialog').open");
  const std::string map = "document.querySelector('canvas[data-map=\"model-1\"]').toDataURL()";
  browser_->run("window.weights = " + map);
  // The map of another kind is asked for when it is first chosen.
  for (const char* kind : {"scores", "gate", "value-weighted"}) {
    browser_->click(fmt::format("[data-kind=\"{}\"]", kind));
    browser_->wait_for(fmt::format("return {} !== window.weights", map));
    browser_->click("[data-kind=\"weights\"]");
    browser_->wait_for(fmt::format("return {} === window.weights", map));
  }
  browser_->wait_for("return document.querySelectorAll('dialog .reads').length === 2");
  browser_->wait_for(
      "return /\\(2\\)/.test(document.querySelector('dialog .writes caption').textContent)");
  set("#query", "1");
  browser_->wait_for(
      "return /\\(1\\)/.test(document.querySelector('.writes caption').textContent)");
  // The cell of query 1 and key 0.
  const auto place = browser_->run(
      "const b = document.querySelector('canvas[data-map=\"model-0\"]').getBoundingClientRect(),"
      "  t = 3, side = b.width - 78 - 30;"
      "return [b.left + 78 + side / t / 2, b.top + 30 + side / t * 1.5]");
  browser_->point_at(place[0].get<double>(), place[1].get<double>());
  EXPECT_THAT(text_of("#readout"), AllOf(HasSubstr("query 1"), HasSubstr("key 0")));
  browser_->press_mouse();
  wait_for_changes("L1H3.pattern@1<-0");
  browser_->press("\uE014");  // the right arrow
  browser_->wait_for("return /L0H0/.test(document.querySelector('#detail-title').textContent)");
}

TEST_F(LivePage, HeadsAreOrderedAndChosen) {
  const auto first = [&] {
    return std::string(browser_->run(
        "return [...document.querySelectorAll('.panel')].map(p => "
        "[...p.querySelectorAll('.head')].map(h => h.dataset.head).join()).join(' ')"));
  };
  const std::string by_layer = first();
  EXPECT_THAT(by_layer, StartsWith("L0H0,L0H1"));
  for (const char* order : {"importance", "change"}) {
    set("#order", order);
    browser_->wait_for("return !document.querySelector('.maps').classList.contains('by-layer')");
    EXPECT_EQ(first().size(), by_layer.size());
    EXPECT_NE(first(), by_layer) << order;
    EXPECT_THAT(hash(), HasSubstr(fmt::format("order={}", order)));
  }
  set("#order", "role");
  browser_->wait_for("return !document.querySelector('#role').disabled");
  const std::string role = browser_->run("return document.querySelector('#role').options[1].value");
  set("#role", role);
  browser_->wait_for("return document.querySelectorAll('.head').length < 16");
  EXPECT_GT(count(".head"), 0);
  set("#role", "");
  set("#order", "layer");
  browser_->wait_for("return document.querySelectorAll('.head').length === 16");
  EXPECT_EQ(first(), by_layer);
}

TEST_F(LivePage, ATokensWayIsDrawnAsArcs) {
  browser_->click("#tab-tokens");
  browser_->wait_for("return document.querySelectorAll('#arcs .arc').length > 0");
  const int all = count("#arcs .arc");
  EXPECT_EQ(count("#arcs .arc.out"), 0) << "nothing comes after the last token";
  browser_->click("#arcs .word[data-token=\"1\"]");
  browser_->wait_for("return document.querySelectorAll('#arcs .arc.out').length > 0");
  EXPECT_THAT(hash(), AllOf(HasSubstr("at=1"), HasSubstr("view=tokens")));
  set("#least", "0.9");
  browser_->wait_for(
      fmt::format("return document.querySelectorAll('#arcs .arc').length < {}", all));
  set("#least", "0.01");
  const int low = count("#arcs .arc");
  set("#layer", "2");
  EXPECT_LE(count("#arcs .arc"), low);
  EXPECT_THAT(hash(), HasSubstr("layer=1"));
  EXPECT_THAT(text_of("#arcs"), AllOf(HasSubstr("L1H"), Not(HasSubstr("L0H"))));
  browser_->click("#arcs .edges .chip");
  browser_->wait_for("return document.body.dataset.changes.includes('.pattern@')");
  EXPECT_THAT(hash(), HasSubstr("<-"));
  const std::string link = browser_->run("return location.href");
  browser_->open("about:blank");
  browser_->open(link);  // as somebody else would
  browser_->wait_for("return document.querySelectorAll('#arcs .arc.out').length > 0");
}

TEST_F(LivePage, ChangesStackAndAreUndone) {
  browser_->click("[data-mlp=\"L1MLP\"]");
  wait_for_changes("L1MLP");
  set("#part", "L0H2");
  set("#how", "scale");
  set("#factor", "0.5");
  wait_for_changes("L1MLP L0H2=0.5");
  set("#factor", "0.25");  // dragged on: the same step
  wait_for_changes("L1MLP L0H2=0.25");
  set("#part", "L1H1@-1");
  set("#how", "patch");
  browser_->type("#other", "A dog ran");
  browser_->click("#apply");
  wait_for_changes("L1MLP L0H2=0.25 L1H1@-1=A dog ran");
  EXPECT_THAT(text_of("#off"),
              AllOf(HasSubstr("L1MLP off"), HasSubstr("L0H2 \u00d7 0.25"), HasSubstr("A dog ran")));
  EXPECT_THAT(text_of("#predictions"), AllOf(HasSubstr("was"), HasSubstr("nats")));
  const std::string link = browser_->run("return location.href");
  browser_->click("#undo");
  wait_for_changes("L1MLP L0H2=0.25");
  browser_->click("#undo");
  wait_for_changes("L1MLP");
  browser_->click("#redo");
  wait_for_changes("L1MLP L0H2=0.25");
  browser_->click("#restore");
  wait_for_changes("");
  browser_->run("location.href = '" + link + "'");
  wait_for_changes("L1MLP L0H2=0.25 L1H1@-1=A dog ran");
  set("#how", "off");
  set("#part", "L77H0");
  browser_->click("#apply");
  browser_->wait_for("return /no layer 77/.test(document.querySelector('#refused').textContent)");
  EXPECT_THAT(hash(), Not(HasSubstr("L77H0")));
}

TEST_F(LivePage, KeysReachEveryHeadAndView) {
  const auto focused = [&] {
    return std::string(
        browser_->run("const e = document.activeElement; return (e.dataset.model ?? '') + "
                      "(e.dataset.head ?? e.id)"));
  };
  EXPECT_EQ(count(".panel .head[tabindex=\"0\"]"), 2) << "one stop a panel";
  browser_->run("document.querySelector('button[data-model=\"0\"][data-head=\"L0H0\"]').focus()");
  browser_->press("\uE014");  // right
  EXPECT_EQ(focused(), "0L0H1");
  browser_->press("\uE015");  // down
  EXPECT_EQ(focused(), "0L1H1");
  browser_->press("\uE011");  // Home
  EXPECT_EQ(focused(), "0L0H0");
  browser_->press("\uE004");  // the tabulator goes on to the other panel
  EXPECT_EQ(focused(), "1L0H0");
  browser_->press("\uE007");  // Enter
  browser_->wait_for("return document.querySelector('dialog').open");
  browser_->press("\uE00C");
  browser_->wait_for("return !document.querySelector('dialog').open");
  browser_->run("document.querySelector('#tab-heads').focus()");
  browser_->press("\uE014");
  EXPECT_EQ(focused(), "tab-tokens");
  browser_->wait_for("return document.querySelectorAll('#arcs .arc').length > 0");
  // Everything that can be used has a name.
  EXPECT_EQ(
      browser_->run("return [...document.querySelectorAll("
                    "'button,input,select,textarea,canvas,img,[role=button]')].filter(e => "
                    "!(e.getAttribute('aria-label') || e.textContent.trim() || e.title || "
                    "e.alt || e.getAttribute('aria-hidden') || (e.labels && e.labels.length)))"
                    ".map(e => e.outerHTML)"),
      nlohmann::json::array());
}

TEST_F(LivePage, FollowsALinkAndTheTheme) {
  browser_->run("location.hash = '#prompt=A+dog&off=L0H0,L0H1'");
  wait_for_prompt("A dog");
  wait_for_off("L0H0,L0H1");
  EXPECT_EQ(browser_->run("return document.querySelector('#prompt').value"), "A dog");
  const auto page_color = [&] {
    return browser_->run("return getComputedStyle(document.body).backgroundColor");
  };
  const auto before = page_color();
  browser_->click("#theme");
  EXPECT_NE(page_color(), before);
}

TEST_F(LivePage, TasksGiveExamplesAndCircuits) {
  browser_->click("#tab-task");
  set("#task", "copy");
  browser_->wait_for("return document.querySelectorAll('.example').length === 4");
  EXPECT_THAT(hash(), HasSubstr("task=copy"));
  const std::string example = text_of(".example");
  browser_->click(".example");
  browser_->wait_for(
      fmt::format("return document.body.dataset.shown === {}", nlohmann::json(example).dump()));
  set("#task-prompts", "4");
  const auto find = [&] {
    browser_->click("#find");
    browser_->wait_for(
        "return /dense: .* heads, sparse: .* heads/.test("
        "document.querySelector('#circuit').textContent)");
    EXPECT_EQ(count("#found tbody tr"), 2);
  };
  find();
  set("#task", "own prompts");
  browser_->wait_for("return !document.querySelector('#own').hidden");
  EXPECT_THAT(std::string(browser_->run("return document.querySelector('#own').value")),
              AllOf(StartsWith(example), HasSubstr(" | ")));
  find();
  browser_->click("#found [data-save=\"json\"]");
  browser_->wait_for(
      "return performance.getEntriesByType('resource').some(e => "
      "e.name.endsWith('/export') && e.responseStatus === 200)");
}

TEST_F(LivePage, OnePatchAtATimeIsAJob) {
  browser_->click("#tab-task");
  set("#task", "copy");
  set("#task-prompts", "4");
  for (const char* what : {"0", "2"}) {
    set("#sweep-what", what);
    browser_->click("#sweep");
    browser_->wait_for("return document.querySelectorAll('#sweeps [data-save=json]').length === 1");
    EXPECT_EQ(text_of("#sweep"), "patch everywhere");
  }
}

TEST_F(LivePage, TranscodersAreTrainedForTheSession) {
  browser_->click("#tab-trace");
  set("#train-features", "16");
  set("#train-tokens", "2048");
  browser_->click("#train");
  browser_->wait_for("return /16 features/.test(document.querySelector('#trained').textContent)");
  EXPECT_THAT(text_of("#trained"), HasSubstr("held-out"));
  browser_->click("#trace");
  browser_->wait_for("return document.querySelectorAll('svg.features .node').length > 1");
}

TEST_F(LivePage, TheLensAndTheAttributionOfATokenAreShown) {
  browser_->click("#tab-lens");
  browser_->wait_for(
      "return document.querySelectorAll('.lens').length === 2 && "
      "document.querySelectorAll('#attribution .cells').length === 2");
  EXPECT_EQ(count(".lens tbody tr"), 2 * 3) << "before, and after each layer";
  EXPECT_EQ(count("#attribution .cells tr"), 2 * 2);
  EXPECT_THAT(text_of("#attribution h2"), HasSubstr("likeliest"));
  browser_->click(".lens .token[data-token=\"2\"]");
  browser_->wait_for(
      "return /\\(2\\)/.test(document.querySelector('#attribution h2').textContent)");
  EXPECT_THAT(hash(), HasSubstr("at=2"));
  // Of a changed run, it is that run that is explained.
  const std::string before = text_of("#attribution");
  browser_->click("[data-mlp=\"L1MLP\"]");
  wait_for_changes("L1MLP");
  browser_->wait_for(
      "return /with the changes/.test(document.querySelector('#attribution h2').textContent)");
  EXPECT_NE(text_of("#attribution"), before);
}

// Every view has files and a command of its own.
TEST_F(LivePage, WhatEachViewShowsIsExported) {
  const auto exported = [&](const std::string& view, const std::string& format) {
    browser_->click("#tab-" + view);
    set("#format", format);
    browser_->click("#export");
    browser_->wait_for("return / kB/.test(document.querySelector('#exported').textContent)");
    browser_->click("#command");
    return text_of("#exported");
  };
  EXPECT_THAT(exported("tokens", "json"), StartsWith("filigree attention"));
  EXPECT_THAT(exported("lens", "json"), AllOf(StartsWith("filigree lens"), HasSubstr("--target")));
  browser_->click("#tab-generate");
  set("#tokens", "3");
  EXPECT_THAT(exported("generate", "json"),
              AllOf(StartsWith("filigree generate"), HasSubstr("--max-tokens 3")));
  for (const char* view : {"tokens", "lens", "generate"}) exported(view, "pdf");
  browser_->click("#tab-task");
  EXPECT_TRUE(browser_->run("return document.querySelector('#export').hidden"))
      << "results of jobs have buttons of their own";
}

TEST_F(LivePage, BothModelsGoOnWithThePrompt) {
  browser_->click("#tab-generate");
  set("#tokens", "3");
  browser_->click("#generate");
  browser_->wait_for("return document.querySelectorAll('.growing[data-finish]').length === 2");
  EXPECT_EQ(count(".growing .fresh"), 6);
  EXPECT_GT(count(".growing .arc"), 0);
  browser_->click(".growing h3 button");
  browser_->wait_for("return document.body.dataset.shown.length > 'The cat sat'.length");
  EXPECT_THAT(std::string(browser_->run("return document.querySelector('#prompt').value")),
              StartsWith("The cat sat"));
}

TEST_F(LivePage, WhatIsShownIsExportedAndSaidAsACommand) {
  browser_->click("button[data-model=\"0\"][data-head=\"L0H3\"]");
  browser_->wait_for("return document.querySelector('dialog').open");
  browser_->press("\uE00C");
  browser_->wait_for("return !document.querySelector('dialog').open");
  browser_->click("[data-mlp=\"L1MLP\"]");
  wait_for_changes("L1MLP");
  for (const char* format : {"npz", "json", "svg"}) {
    set("#format", format);
    browser_->click("#export");
    browser_->wait_for("return / kB/.test(document.querySelector('#exported').textContent)");
  }
  browser_->click("#command");
  EXPECT_EQ(text_of("#exported"),
            "filigree attention dense sparse --prompt 'The cat sat' --ablate L1MLP --out maps.svg");
  browser_->click("#link");
  EXPECT_THAT(text_of("#exported"), AllOf(StartsWith(server_.address()), HasSubstr("off=L1MLP")));
}

// A folder that lives longer than the page that reads it.
struct FeaturesFolder {
  const TemporaryFolder beside_ = {};
};

class TracedPage : public FeaturesFolder, public LivePage {
 protected:
  TracedPage() : LivePage(beside_.path()) {}
};

TEST_F(TracedPage, NodesOfAGraphArePinnedAndGrouped) {
  browser_->click("#tab-trace");
  browser_->click("#trace");
  browser_->wait_for("return document.querySelectorAll('svg.features .node').length > 3");
  const int nodes = count("svg.features .node");
  const auto pin = [&](int n) {
    browser_->run(
        fmt::format("document.querySelectorAll('svg.features .node.feature')[{}]"
                    ".dispatchEvent(new MouseEvent('click'))",
                    n));
  };
  pin(0);
  browser_->wait_for("return document.querySelectorAll('svg.features .pinned').length === 1");
  pin(1);
  browser_->wait_for("return document.querySelectorAll('svg.features .pinned').length === 2");
  EXPECT_THAT(hash(), HasSubstr("pins=0."));
  browser_->type("#group-name", "names");
  browser_->click("#group");
  browser_->wait_for(fmt::format(
      "return document.querySelectorAll('svg.features .node').length === {}", nodes - 1));
  EXPECT_THAT(text_of("svg.features"), HasSubstr("names"));
  EXPECT_THAT(hash(), HasSubstr("=names"));
  browser_->click("#ungroup");
  browser_->wait_for(
      fmt::format("return document.querySelectorAll('svg.features .node').length === {}", nodes));
}

}  // namespace
}  // namespace filigree
