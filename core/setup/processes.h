// What several processes do before they compute together.
#pragma once

#include <string>
#include <string_view>

#include "core/input/content.h"
#include "core/runtime/agreement.h"
#include "core/setup/setup.h"

namespace pmaptrain::setup {

// What processes that compute together must have in common, beside the program and the instruction set.
struct Alike {
  std::string_view config;     // resolved
  std::string_view options;    // a text that is equal for equal options of the command line
  std::string_view data;       // a description of the data
  std::string_view tokenizer;  // Encoding::tokenizer
  const input::Contents& contents;
};

// Sets the time after which a silent process ends the job (mesh.timeout), and throws Error (usage) unless all processes
// have the same. Every process calls this.
void check_processes(Agreement& agreement, const spec::MeshSpec& mesh, const Alike& alike);

// The version, the commit and the compiler of this program.
std::string program_identity();

// A text that is equal for equal data: its description and contents. Reads these. Throws Error (data).
std::string data_identity(const Setup& setup);

// check_processes() for a run: each process computes the parameters for itself, so all must compute the same. `options`
// is as in Alike.
void prepare_processes(Agreement& agreement, const Setup& setup, std::string_view options);

}  // namespace pmaptrain::setup
