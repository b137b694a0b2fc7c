// What a request may ask for: every bound in one place, all checked before memory is taken.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace filigree::serve {

struct Limits {
  std::size_t body_bytes = 256 << 10;
  std::size_t prompt_bytes = 64 << 10;        // its tokens are bounded by the model's context
  std::size_t interventions = 512;            // changes of a run
  std::size_t intervention_bytes = 96 << 10;  // all of them as they are written
  std::size_t patch_texts = 8;                // each is a run more
  std::size_t map_cells = 20'000'000;         // of one answer: 144 heads at 512 tokens
  std::size_t typed_bytes = 64 << 20;         // keys and values of the last text, of each model
  std::size_t head_cells = 600'000;           // of one head, written as numbers
  std::size_t lens_cells = 20'000;            // layers times tokens of one model
  std::int64_t generated_tokens = 256;
  std::int64_t traced_features = 4000;      // nodes of a graph before it is pruned
  std::int64_t trained_features = 2048;     // of a layer, of a session's own transcoders
  std::int64_t trained_tokens = 2'000'000;  // that they are trained on
  std::size_t waiting = 16;                 // requests that wait for one model
  std::size_t running_jobs = 2;
  std::size_t kept_jobs = 16;
  std::size_t job_watchers = 4;                      // answers that follow jobs, each a connection
  std::chrono::milliseconds watching{45'000};        // one of them; less than `send`
  std::chrono::milliseconds abandoned_job{180'000};  // nobody has asked for it so long
  std::size_t threads = 16;                          // connections that are served at once
  std::size_t waiting_connections = 64;              // that have sent a request
  std::size_t open_connections = 500;                // that have not, or whose answer is written
  std::size_t open_bytes = 32 << 20;                 // that those have sent
  std::chrono::milliseconds receive{10'000};         // until a request is there as a whole
  std::chrono::milliseconds send{60'000};            // until its answer is taken
};

}  // namespace filigree::serve
