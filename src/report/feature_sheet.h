// The offline page of one feature: plain HTML without a script, light or dark as the reader's
// system is. Tokens of examples are coloured by the feature's activation.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace filigree {

struct SheetExample {
  std::vector<std::string> tokens = {};
  std::vector<double> activations = {};  // of each token
  std::size_t centre = 0;
  double value = 0;  // the activation there
};

struct SheetBand {
  std::string name = {};
  std::vector<SheetExample> examples = {};
};

// Names with numbers, drawn as bars.
struct SheetList {
  std::string title = {}, note = {};
  std::vector<std::pair<std::string, double>> rows = {};
  bool tokens = false;  // the names are tokens
  bool sizes = false;   // the numbers have no sign
};

struct FeatureSheet {
  std::string name = {}, words = {}, model = {};
  std::vector<std::pair<std::string, std::string>> facts = {};
  std::vector<SheetList> lists = {};
  std::vector<double> histogram = {};  // shares, from 0 to the largest activation
  double largest = 0;                  // activation, which has the full colour
  std::vector<SheetBand> bands = {};
  std::string foot = {};
};

std::string feature_html(const FeatureSheet& sheet);

}  // namespace filigree
