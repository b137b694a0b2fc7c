#include "filigree/ops.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaElementwise, BinaryWithEveryKindOfBroadcast) {
  FILIGREE_NEEDS_GPU();
  using Operation = Variable (*)(const Variable&, const Variable&);
  struct Named {
    const char* name;
    Operation operation;
  };
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{}, {}},         {{1}, {1}},          {{5}, {5}},          {{8200}, {8200}},
      {{3, 33}, {33}},  {{2, 5, 7}, {5, 7}}, {{2, 5, 7}, {5, 1}}, {{2, 5, 7}, {2, 1, 7}},
      {{4, 1}, {1, 6}}, {{3, 4}, {}},        {{1, 6}, {40, 6}},   {{2, 1, 3, 1}, {2, 4, 1, 5}},
      {{0, 4}, {4}}};
  for (const Named op :
       {Named{"add", add}, Named{"sub", sub}, Named{"mul", mul}, Named{"div", div}})
    for (const auto& [a, b] : shapes)
      check_cuda(
          {.name = std::string(op.name) + " " + a.to_string() + " " + b.to_string(),
           .inputs = {random_tensor(a, 1), random_tensor(b, 2, 0.5f, 1.5f)},
           .op = [&](const std::vector<Variable>& in) { return op.operation(in[0], in[1]); }});
}

TEST(CudaElementwise, AParameterBesideAnActivation) {
  FILIGREE_NEEDS_GPU();
  check_cuda({.name = "mul and add",
              .inputs = {random_tensor({6, 40}, 1), random_tensor({40}, 2), random_tensor({40}, 3)},
              .op = [](const std::vector<Variable>& in) { return add(mul(in[0], in[1]), in[2]); },
              .parameter = {false, true, true}});
}

TEST(CudaElementwise, Unary) {
  FILIGREE_NEEDS_GPU();
  using Operation = std::function<Variable(const Variable&)>;
  const std::vector<std::pair<std::string, Operation>> operations = {
      {"scale", [](const Variable& x) { return scale(x, -1.5f); }},
      {"shift", [](const Variable& x) { return shift(x, 0.25f); }},
      {"exp", [](const Variable& x) { return exp(x); }},
      {"log", [](const Variable& x) { return log(x); }},
      {"sqrt", [](const Variable& x) { return sqrt(x); }},
      {"square", [](const Variable& x) { return square(x); }},
      {"tanh", [](const Variable& x) { return tanh(x); }}};
  for (const auto& [name, operation] : operations)
    for (const std::int64_t count : {0, 1, 8, 1001}) {
      const bool positive = name == "log" || name == "sqrt";
      check_cuda({.name = name + " " + std::to_string(count),
                  .inputs = {random_tensor({count}, 1, positive ? 0.5f : -1.5f, 1.5f)},
                  .op = [&](const std::vector<Variable>& in) { return operation(in[0]); }});
    }
}

}  // namespace
}  // namespace filigree
