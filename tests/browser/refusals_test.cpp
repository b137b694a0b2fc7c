// What the live page does with what the server refuses, and with runs that have parts switched off:
// nothing that is refused sticks, and nothing is shown of another request than the one at hand.
#include <algorithm>

#include "browser/live_page.h"

namespace filigree {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Refusals : public LivePage {
 protected:
  void TearDown() override {
    if (browser_) browser_->console_errors();  // a refusal is one
    LivePage::TearDown();
  }
  void follow(const std::string& link) { browser_->run("location.hash = '#" + link + "'"); }
  void type_prompt(const std::string& text) {
    browser_->run("const box = document.querySelector('#prompt'); box.value = " +
                  nlohmann::json(text).dump() + "; box.dispatchEvent(new Event('input'))");
  }
  void wait_for_text(const std::string& selector, const std::string& text) {
    browser_->wait_for(fmt::format("return document.querySelector('{}').textContent.includes({})",
                                   selector, nlohmann::json(text).dump()));
  }
  bool seen(const std::string& selector) {
    return browser_->run(
        fmt::format("return document.querySelector('{}').checkVisibility()", selector));
  }
};

TEST_F(Refusals, HeadsHaveNoArcsWhereTheyAreOff) {
  follow("prompt=The+cat+sat&view=tokens&least=0.01");
  wait_for_text("#arcs", "L1H2");
  follow("prompt=The+cat+sat&view=tokens&least=0.01&off=L1H2");
  wait_for_off("L1H2");
  EXPECT_THAT(text_of("#arcs"), AllOf(Not(HasSubstr("L1H2")), HasSubstr("L1H1")));
  // However they are named.
  follow("prompt=The+cat+sat&view=tokens&least=0.01&off=L1");
  wait_for_off("L1");
  EXPECT_THAT(text_of("#arcs"), AllOf(Not(HasSubstr("L1H")), HasSubstr("L0H")));
  EXPECT_EQ(count(".head.off"), 2 * 4);
  browser_->click("#tab-generate");
  set("#tokens", "2");
  browser_->click("#generate");
  browser_->wait_for("return document.querySelectorAll('.growing[data-finish]').length === 2");
  EXPECT_THAT(text_of("#generation"), AllOf(Not(HasSubstr("L1H")), HasSubstr("L0H")));
  browser_->click("#tab-heads");
  const auto place = browser_->run(
      "const b = document.querySelector('.token').getBoundingClientRect();"
      "return [b.left + b.width / 2, b.top + b.height / 2]");
  browser_->point_at(place[0].get<double>(), place[1].get<double>());
  wait_for_text("#token-readout", "looks at");
  EXPECT_THAT(text_of("#token-readout"), HasSubstr("dense (4 heads)")) << "of eight";
}

TEST_F(Refusals, ABadPlaceIsRefusedWhereItIsTyped) {
  for (const char* how : {"off", "scale", "patch"}) {
    set("#part", "L99H1");
    set("#other", "A dog ran");
    set("#how", how);
    if (std::string(how) == "scale")
      set("#factor", "0.5");
    else
      browser_->click("#apply");
    wait_for_text("#refused", "no layer 99");
    set("#how", "off");  // a new start
    EXPECT_EQ(text_of("#refused"), "");
  }
  set("#part", "");
  browser_->click("#apply");
  wait_for_text("#refused", "is no place in a model");
  EXPECT_EQ(browser_->run("return document.querySelector('#part').ariaInvalid"), "true");
  EXPECT_THAT(hash(), AllOf(Not(HasSubstr("off=")), Not(HasSubstr("L99"))));
  EXPECT_EQ(count("#off .chip"), 0);
  EXPECT_TRUE(browser_->run("return document.querySelector('#undo').disabled"));
  // What comes later is made.
  browser_->click("[data-mlp=\"L1MLP\"]");
  wait_for_changes("L1MLP");
  EXPECT_EQ(text_of("#status"), "");
  set("#part", "L0H2, L0H3");
  browser_->click("#apply");
  wait_for_changes("L1MLP L0H2 L0H3");
  EXPECT_EQ(text_of("#refused"), "");
  set("#part", "L1H1");
  set("#how", "patch");
  set("#other", "A text of another length");
  browser_->click("#apply");
  wait_for_text("#refused", "say at which position");
  EXPECT_EQ(count("#off .chip"), 3);
}

TEST_F(Refusals, AChangeThatDoesNotFitIsLeftOutUntilItDoes) {
  follow("prompt=The+cat+sat&off=L0H0,L99H1,L1H1@7");
  wait_for_off("L0H0");
  EXPECT_THAT(text_of("#status"),
              AllOf(HasSubstr("L1H1@7 is left out"), HasSubstr("no position 7")));
  EXPECT_THAT(hash(), AllOf(HasSubstr("L1H1@7"), Not(HasSubstr("L99H1"))));
  EXPECT_EQ(count("#off .chip"), 2);
  EXPECT_EQ(count("#off .chip.out"), 1);
  browser_->click("#command");
  EXPECT_THAT(text_of("#exported"), HasSubstr("--ablate L0H0 "));
  browser_->click("[data-mlp=\"L1MLP\"]");
  wait_for_changes("L0H0 L1MLP");
  type_prompt("The cat sat on the mat and the dog");
  wait_for_changes("L0H0 L1H1@7 L1MLP");
  EXPECT_EQ(text_of("#status"), "");
  EXPECT_EQ(count("#off .chip.out"), 0);
  // A place that no prompt has is taken back with its reason.
  follow("prompt=The+cat+sat&off=L99H1");
  wait_for_text("#status", "L99H1 is taken back");
  wait_for_changes("");
  EXPECT_THAT(text_of("#status"), HasSubstr("no layer 99"));
  EXPECT_THAT(hash(), Not(HasSubstr("off")));
}

TEST_F(Refusals, TooManyChangesAreTakenBack) {
  browser_->click("[data-mlp=\"L1MLP\"]");
  wait_for_changes("L1MLP");
  std::string many = "L0H0";
  for (int n = 0; n < 512; ++n) many += ",L0H0";
  follow("prompt=The+cat+sat&off=" + many);
  wait_for_text("#status", "513 interventions");
  EXPECT_EQ(count("#off .chip"), 1) << "as it was";
  browser_->click("[data-mlp=\"L0MLP\"]");
  wait_for_changes("L1MLP L0MLP");
  EXPECT_EQ(text_of("#status"), "");
}

TEST_F(Refusals, APlaceWithATokenThatHoldsACommaComesBackFromALink) {
  type_prompt("The cat, sat");
  wait_for_prompt("The cat, sat");
  set("#part", "L0H1@','");
  browser_->click("#apply");
  browser_->wait_for("return document.body.dataset.off === \"L0H1@','\"");
  browser_->click("[data-mlp=\"L1MLP\"]");
  browser_->wait_for("return document.body.dataset.off === \"L0H1@',',L1MLP\"");
  const std::string link = browser_->run("return location.href");
  browser_->open("about:blank");
  browser_->open(link);
  wait_for_prompt("The cat, sat");
  EXPECT_EQ(count("#off .chip"), 2);
  EXPECT_EQ(text_of("#status"), "");
}

TEST_F(Refusals, NothingIsShownOfAnEmptyPrompt) {
  type_prompt("");
  wait_for_text("#instead", "The prompt is empty");
  EXPECT_EQ(count("#predictions table"), 0);
  EXPECT_EQ(text_of("#count"), "");
  for (const char* part : {".tabs", "#grid", "#exports"}) EXPECT_FALSE(seen(part)) << part;
  browser_->click("#example");
  browser_->wait_for("return document.querySelectorAll('#predictions table').length === 2");
  for (const char* part : {".tabs", "#grid", "#exports"}) EXPECT_TRUE(seen(part)) << part;
  EXPECT_FALSE(seen("#instead"));
  EXPECT_THAT(std::string(browser_->run("return document.querySelector('#prompt').value")),
              HasSubstr("Mary and John"));
  // Also where the page begins so.
  browser_->open("about:blank");
  browser_->open(server_.address() + "#prompt=");
  wait_for_text("#instead", "The prompt is empty");
  browser_->type("#prompt", "The");
  wait_for_prompt("The");
}

TEST_F(Refusals, ATooLongPromptSaysHowLongItIsAndMayBe) {
  std::string cats;
  for (int n = 0; n < 90; ++n) cats += " cat";
  type_prompt(cats);
  wait_for_text("#instead", "The prompt has 90 tokens, more than the context of 64");
  EXPECT_EQ(count("#predictions table"), 0);
  EXPECT_FALSE(seen(".tabs"));
  type_prompt("A dog ran");
  wait_for_prompt("A dog ran");
  EXPECT_TRUE(seen(".tabs"));
  for (const std::size_t bytes : {70'000, 400'000}) {
    browser_->run(
        fmt::format("const box = document.querySelector('#prompt'); box.value = 'x'.repeat({});"
                    "box.dispatchEvent(new Event('input'))",
                    bytes));
    browser_->wait_for("return document.querySelector('#instead').checkVisibility()");
    EXPECT_THAT(text_of("#instead"), HasSubstr(fmt::format("The prompt has {} bytes", bytes)));
    EXPECT_THAT(text_of("#instead"), HasSubstr("at most 65536, and at most 64 tokens"));
    type_prompt("A dog ran");
    wait_for_prompt("A dog ran");
  }
}

TEST_F(Refusals, TheAnswerOfBeforeStaysInTheListWithBothRanks) {
  const std::string first = text_of("#predictions th");
  EXPECT_EQ(count("#predictions .now"), 0) << "nothing is changed";
  follow("prompt=The+cat+sat&off=L0,L1,L*MLP");
  wait_for_off("L0,L1,L*MLP");
  EXPECT_EQ(count("#predictions .original"), 2) << "one a model";
  EXPECT_EQ(text_of("#predictions .original th"), first);
  EXPECT_THAT(text_of("#predictions .original .was"), HasSubstr(", rank 1"));
  EXPECT_GT(std::stoi(text_of("#predictions .original .now")), 6)
      << "or the test would pass without it";
}

TEST_F(Refusals, ViewsSayWhatToDoUntilTheyHaveSomethingToShow) {
  for (const auto& [view, words] :
       {std::pair("generate", "\u201cgenerate\u201d"), std::pair("trace", "\u201ctrace\u201d"),
        std::pair("task", "\u201cfind the circuit\u201d")}) {
    browser_->click(fmt::format("#tab-{}", view));
    const std::string hint = fmt::format("#view-{} .hint", view);
    EXPECT_TRUE(seen(hint)) << view;
    EXPECT_THAT(text_of(hint), HasSubstr(words));
  }
  EXPECT_THAT(text_of("#sweeps .hint"), HasSubstr("\u201cpatch everywhere\u201d"));
  EXPECT_THAT(text_of("#view-trace .hint"), HasSubstr("\u201ctrain\u201d"))
      << "there are no transcoders";
}

TEST_F(Refusals, ResultsOfBeforeSayWhatTheyAreOf) {
  browser_->click("#tab-generate");
  set("#tokens", "2");
  browser_->click("#generate");
  browser_->wait_for("return document.querySelectorAll('.growing[data-finish]').length === 2");
  EXPECT_FALSE(seen("#generation .hint"));
  EXPECT_FALSE(seen("#generation .still"));
  type_prompt("A dog");
  wait_for_prompt("A dog");
  EXPECT_TRUE(seen("#generation .still"));
  EXPECT_THAT(text_of("#generation .still"), HasSubstr("The cat sat"));
  browser_->click("[data-mlp=\"L1MLP\"]");
  wait_for_changes("L1MLP");
  browser_->click(".growing h3 button");  // goes on from what it was made of
  browser_->wait_for("return document.body.dataset.shown.startsWith('The cat sat')");
  browser_->click("#tab-task");
  set("#task", "copy");
  set("#task-prompts", "4");
  browser_->click("#sweep");
  browser_->wait_for("return document.querySelectorAll('#sweeps [data-save=json]').length === 1");
  browser_->click("#find");
  browser_->wait_for("return document.querySelectorAll('#found tbody tr').length === 2");
  EXPECT_EQ(count("#tasks .still:not([hidden])"), 0);
  set("#task", "ioi");
  EXPECT_EQ(count("#tasks .still:not([hidden])"), 2);
  EXPECT_THAT(text_of("#tasks .still"), HasSubstr("\u201ccopy\u201d"));
  set("#task", "copy");
  EXPECT_EQ(count("#tasks .still:not([hidden])"), 0);
}

TEST_F(Refusals, ALinkToWhatIsNotThereShowsTheUsual) {
  follow("prompt=The+cat+sat&head=L99H1&view=nothing&layer=77&task=nothing");
  browser_->wait_for("return location.hash === '#prompt=The+cat+sat'");
  set("#format", "json");
  browser_->click("#export");
  browser_->wait_for("return / kB/.test(document.querySelector('#exported').textContent)");
  browser_->wait_for("return !document.querySelector('#role').disabled");
  follow("prompt=The+cat+sat&role=nothing");
  browser_->wait_for("return location.hash === '#prompt=The+cat+sat'");
  EXPECT_EQ(count(".head"), 16);
  // Without a prompt, the box has that of the runs.
  follow("view=tokens");
  browser_->wait_for("return document.body.dataset.shown.startsWith('When Mary')");
  EXPECT_EQ(browser_->run("return document.querySelector('#prompt').value"),
            browser_->run("return document.body.dataset.shown"));
}

// Answers that fail, and answers that cross.
TEST_F(Refusals, NoViewKeepsTheAnswerToAnotherQuestion) {
  browser_->click("#tab-lens");
  browser_->wait_for("return document.querySelectorAll('.lens').length === 2");
  browser_->run(
      "window.refused = ''; window.slow = ''; const whole = window.fetch;"
      "window.fetch = async (path, options) => {"
      "  if (path === refused)"
      "    return new Response(JSON.stringify({error: 'too much', remedy: 'less'}), {status: 413});"
      "  const answer = await whole(path, {...options, signal: null});"
      "  if (slow && options.body.includes(slow)) await new Promise(wake => setTimeout(wake, 500));"
      "  return answer;"
      "}");
  // The first click is answered after the second one.
  browser_->run(
      "window.titles = []; window.slow = '\"at\":1';"
      "new MutationObserver(() => titles.push(document.querySelector('#attribution "
      "h2').textContent))"
      "  .observe(document.querySelector('#attribution'), { childList: true })");
  browser_->click(".lens .token[data-token=\"1\"]");
  browser_->click(".lens .token[data-token=\"2\"]");
  wait_for_text("#attribution h2", "(2)");
  browser_->run("return new Promise(wake => setTimeout(wake, 700))");
  EXPECT_THAT(text_of("#attribution h2"), HasSubstr("(2)"));
  EXPECT_THAT(browser_->run("return titles.join()").get<std::string>(), Not(HasSubstr("(1)")));
  // A refused lens is not that of the prompt before.
  browser_->run("window.refused = '/api/lens'");
  type_prompt("A dog ran");
  wait_for_text("#lens", "too much \u2013 less");
  EXPECT_EQ(count(".lens"), 0);
  // Nor a head that is open: it is closed, and the page says why.
  browser_->click("#tab-heads");
  browser_->click("button[data-model=\"1\"][data-head=\"L0H3\"]");
  browser_->wait_for("return document.querySelector('dialog').open");
  browser_->run("window.refused = '/api/head'");
  follow("prompt=The+cat&head=L0H3");
  browser_->wait_for("return !document.querySelector('dialog').open");
  wait_for_text("#status", "too much");
}

}  // namespace
}  // namespace filigree
