// The commands, one file each.
#pragma once

#include <string>
#include <vector>

namespace filigree::cli {

class Program;

// The program with all its commands, on what was written after its name; the exit code.
int run_filigree(const std::vector<std::string>& arguments);

void add_info(Program& program);
void add_fetch(Program& program);
void add_prepare(Program& program);
void add_convert(Program& program);
void add_pretrain(Program& program);
void add_sparsify(Program& program);
void add_gates(Program& program);
void add_generate(Program& program);
void add_eval(Program& program);
void add_attention(Program& program);
void add_compare(Program& program);
void add_task(Program& program);
void add_circuit(Program& program);
void add_patch(Program& program);
void add_run(Program& program);
void add_lens(Program& program);
void add_head(Program& program);
void add_trace(Program& program);
void add_features(Program& program);
void add_bench(Program& program);
void add_demo(Program& program);
void add_serve(Program& program);

}  // namespace filigree::cli
