#include "app/shells/manual.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/version.h"
#include "core/spec/load.h"

namespace pmaptrain::app {
namespace {

// Text of the page: what `quotes` enclose is a command, in bold.
std::string source_text(std::string_view plain) {
  std::string out;
  bool bold = false;
  for (const char c : plain) {
    switch (c) {
      case '`':
        bold = !bold;
        out += bold ? "\\fB" : "\\fR";
        break;
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '\'': out += "\\(aq"; break;
      case '"': out += "\\(dq"; break;
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      default: out += c;
    }
  }
  return out;
}

// One line of the source, which begins no request.
std::string source_line(std::string_view plain) {
  const std::string escaped = source_text(plain);
  return (escaped.starts_with('.') ? "\\&" : "") + escaped + "\n";
}

// Lines as help has them: indented ones keep their form, others are filled. The first paragraph of a section needs no
// request.
std::string paragraphs(std::string_view lines, bool is_first = false) {
  std::string out;
  bool open = false, kept = false;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view one = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const bool keep = one.starts_with(' ');
    if (kept && !keep) out += ".EE\n";
    if (one.empty()) {
      open = false;
    } else {
      if (!open && !is_first) out += ".PP\n";
      is_first = false;
      if (keep && !kept) out += ".EX\n";
      out += source_line(one);
      open = true;
    }
    kept = keep;
  }
  return out + (kept ? ".EE\n" : "");
}

// "\fB\-\-set\fR \fIKEY=VALUE\fR"
std::string tag(const OptionSyntax& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", source_text(name));
  return option.value.empty() ? names : fmt::format("{} \\fI{}\\fR", names, source_text(option.value));
}

std::string item(const std::string& tag, std::string_view meaning) {
  return ".TP\n" + tag + "\n" + source_line(meaning);
}

std::string section(const CommandSyntax& command) {
  std::string out = fmt::format(".SS pmaptrain {}\n", command.command);
  out += fmt::format("\\fBpmaptrain {}\\fR {} [\\fIOPTION\\fR]...\n.PP\n", command.command,
                     source_text(command.arguments()));
  out += source_line(command.summary);
  for (const PositionalSyntax& positional : command.positionals) {
    out += item(fmt::format("\\fI{}\\fR{}", source_text(positional.name), positional.repeats ? "..." : ""),
                positional.meaning);
  }
  for (const OptionSyntax& option : command.options) out += item(tag(option), option.meaning);
  return out + paragraphs(command.footer);
}

constexpr std::pair<ExitStatus, std::string_view> statuses[] = {
    {ExitStatus::done, "done"},
    {ExitStatus::failed, "failed while running"},
    {ExitStatus::usage, "the command line or the config is invalid"},
    {ExitStatus::data, "the data is missing, damaged or does not fit the config"},
    {ExitStatus::resource, "a resource is missing or taken"},
    {ExitStatus::guard, "a guard stopped the training: a value is not finite, or replicas differ"},
};

}  // namespace

std::string manual_page(const ProgramSyntax& program, const std::string& introduction) {
  std::string out = fmt::format(
      ".\\\" Made by `pmaptrain help --man`.\n.TH PMAPTRAIN 1 \"{}\" \"pmaptrain {}\" \"User Commands\"\n.ad l\n"
      ".SH NAME\npmaptrain \\- train a model that a YAML file describes, data-parallel over named axes\n"
      ".SH SYNOPSIS\n\\fBpmaptrain\\fR \\fICOMMAND\\fR [\\fIARGUMENT\\fR]... [\\fIOPTION\\fR]...\n",
      commit_date, version);
  out += ".SH DESCRIPTION\n" + paragraphs(introduction, true);
  out += ".SH COMMANDS\n";
  for (const CommandEntry& entry : program.commands)
    out += item("\\fB" + source_text(entry.name) + "\\fR", entry.summary);
  out += ".SH OPTIONS\nEach command has its own options. Without a command there are\n";
  for (const OptionSyntax& option : program.options) out += item(tag(option), option.meaning);
  for (const CommandEntry& entry : program.commands) {
    if (entry.syntax) out += section(*entry.syntax);
    for (const CommandSyntax& sub : entry.subcommands) out += section(sub);
  }
  out += ".SH CONFIG\n" + paragraphs(spec::help(""), true);
  out += ".SH EXIT STATUS\n";
  for (const auto& [status, meaning] : statuses) {
    out += item(fmt::format("\\fB{}\\fR", static_cast<int>(status)), meaning);
  }
  out += item("\\fB128 + \\fIN\\fR", "ended by signal N");
  out += ".SH ENVIRONMENT\n";
  out += item("\\fBNO_COLOR\\fR", "where it is set, `--color auto` uses no colour");
  out += item("\\fBPMAPTRAIN_CUDA_MODULE\\fR", "the path of the module for GPUs, libpmaptrain_cuda.so");
  out += ".SH FILES\n";
  out += item("\\fIruns/NAME\\fR", "the run folder: config.yaml, metrics.jsonl, summary.json, log.txt, checkpoints");
  out += item("\\fIsweeps/NAME\\fR", "the folder of a sweep: sweep.yaml, sweep.sqlite, trials");
  return out;
}

}  // namespace pmaptrain::app
