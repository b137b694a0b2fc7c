#include "apps/cli/commands.h"

#include "apps/cli/program/exit_handlers.h"
#include "apps/cli/program/program.h"

namespace filigree::cli {

void add_all_commands(Program& program) {
  add_info(program);
  add_fetch(program);
  add_prepare(program);
  add_pretrain(program);
  add_sparsify(program);
  add_gates(program);
  add_generate(program);
  add_convert(program);
  add_eval(program);
  add_attention(program);
  add_compare(program);
  add_task(program);
  add_circuit(program);
  add_patch(program);
  add_run(program);
  add_lens(program);
  add_head(program);
  add_trace(program);
  add_features(program);
  add_bench(program);
  add_demo(program);
  add_serve(program);
}

int run_filigree(const std::vector<std::string>& arguments) {
  leave_nothing_half_written();
  catch_interrupts();
  catch_shrinking_files();
  catch_missing_memory();
  Program program;
  add_all_commands(program);
  return program.run(arguments);
}

}  // namespace filigree::cli
