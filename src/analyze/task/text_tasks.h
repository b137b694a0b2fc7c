// Tasks without templates: passages of any text in which the next word follows from one place
// further up, found by small rules and corrupted there.
//
//   returning_word_draw     The bridge is closed, said the stranger ... asked the | stranger
//   agreement_in_text_draw  The piers of the old bridge | were
//   closing_quote_draw      Harrow stood up. "There is the bridge | ,"
//
// Each passage is given once, in an order that the random numbers decide; then there are no more.
// Clean and corrupt have equally many tokens wherever the text's words allow it, and agree in all
// tokens but those of the place that was changed.
#pragma once

#include "filigree/tasks.h"

namespace filigree {

DrawPair returning_word_draw(const TaskMaterial& material);
DrawPair agreement_in_text_draw(const TaskMaterial& material);
// With another subject of the text instead, for tokenizers that few nouns have two numbers in.
DrawPair agreement_other_noun_draw(const TaskMaterial& material);
DrawPair closing_quote_draw(const TaskMaterial& material);

}  // namespace filigree
