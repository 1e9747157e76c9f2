// Completion of command lines by shells, and the manual page: both are made from what commands take.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "app/options/syntax.h"
#include "app/shells/config_keys.h"
#include "app/shells/manual.h"
#include "app/shells/scripts.h"
#include "core/base/text.h"
#include "core/spec/keys.h"
#include "tests/app/call.h"
#include "tests/app/process.h"
#include "tests/catch.h"
#include "tests/golden.h"

using namespace pmaptrain;
using app::Values;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::Finished;
using pmaptrain::tests::run_shell;
using pmaptrain::tests::TemporaryFolder;

namespace {

// The options that a command's help lists: "--set", "-q".
std::set<std::string> listed_options(const std::string& help) {
  std::set<std::string> options;
  for (const std::string& line : test::lines_of(help)) {
    std::istringstream words(line.starts_with("  -") ? line : "");
    std::string word;
    while (words >> word && word.starts_with('-')) {
      const bool more = word.ends_with(',');
      options.insert(word.substr(0, word.size() - (more ? 1 : 0)));
      if (!more) break;
    }
  }
  return options;
}

std::string sorted(const std::string& words) {
  std::istringstream all(words);
  std::vector<std::string> parts{std::istream_iterator<std::string>(all), {}};
  std::sort(parts.begin(), parts.end());
  return join(parts, " ");
}

// With each "-" as the source of a manual page has it.
std::string in_manual(const std::string& option) {
  std::string out;
  for (const char c : option) out += c == '-' ? "\\-" : std::string(1, c);
  return out;
}

std::vector<std::string> commands_with_options() {
  std::vector<std::string> all;
  for (const app::CommandEntry& entry : app::program_syntax().commands) {
    if (entry.syntax) all.push_back(entry.name);
    for (const app::CommandSyntax& sub : entry.subcommands) all.push_back(sub.command);
  }
  return all;
}

std::vector<std::string> split(const std::string& command) {
  const std::size_t space = command.find(' ');
  if (space == std::string::npos) return {command};
  return {command.substr(0, space), command.substr(space + 1)};
}

bool is_installed(const std::string& program) { return run_shell("command -v " + program).status == 0; }

// What bash completes the last word with, sorted, for each command line. Words are separated by one blank; "=" is a
// word of its own, as it is in bash.
std::vector<std::string> completed(const std::vector<std::string>& lines, const std::string& folder = ".") {
  const TemporaryFolder temporary;
  std::ofstream(temporary / "script") << call({"completion", "bash"}).out;
  std::ofstream commands(temporary / "commands");
  commands << "source " << (temporary / "script") << "\ncd " << folder << R"(
complete_line() {
  local IFS=' '
  COMP_LINE=${1// = /=}
  [[ $1 != *' =' ]] || COMP_LINE=${COMP_LINE% =}=
  COMP_POINT=${#COMP_LINE}
  COMP_WORDS=($1)
  [[ $1 != *[' ='] ]] || COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _pmaptrain
  echo "${COMPREPLY[*]}"
}
)";
  for (const std::string& line : lines) commands << "complete_line '" << line << "'\n";
  commands.close();
  const Finished finished = run_shell("bash --norc '" + (temporary / "commands") + "'");
  CHECK(finished.status == 0);
  CHECK(finished.err.empty());
  std::vector<std::string> replies = test::lines_of(finished.out);
  std::transform(replies.begin(), replies.end(), replies.begin(), sorted);
  return replies;
}

// A program with each kind of argument, and some keys.
app::ProgramSyntax small_program() {
  const auto option = [](std::vector<std::string> names, const std::string& value, const std::string& meaning) {
    return app::OptionSyntax{std::move(names), value, meaning, value == "KEY=VALUE", app::values_of(value)};
  };
  const auto place = [](const std::string& name, bool required) {
    return app::PositionalSyntax{name, "what is there", required, false, app::values_of(name)};
  };
  app::CommandSyntax run{"run", "Trains: a model's \\ [parameters].", {place("CONFIG", true), place("DIR", false)}};
  run.options = {option({"--set"}, "KEY=VALUE", "set a key; more"),
                 option({"-q", "--quiet"}, "", "say 'nothing'"),
                 option({"--color"}, "auto|always", "auto: on a terminal"),
                 option({"--steps"}, "N", "how many"),
                 option({"--trace"}, "FILE", "a file"),
                 option({"--output"}, "FILE.npz", "a file"),
                 option({"--input"}, "NAME=FILE.npy", "a file of an input")};
  run.footer = "In lines\nof a paragraph:\n  pmaptrain run x.yaml\n.and `more`\n";
  app::CommandSyntax show{"sweep show", "Shows a sweep.", {place("RUN", true)}, {option({"--json"}, "", "as JSON")}};
  show.options.push_back(option({"--set"}, "KEY=VALUE", "set a key"));
  show.options.back().values.words = {"trials"};
  app::CommandSyntax help{"help", "Describes a key.", {place("KEY", false)}, {option({"--man"}, "", "all")}};
  help.positionals.front().values = {Values::Kind::keys, {"run"}};
  show.positionals.front().repeats = true;
  return {{option({"--version"}, "", "its version")},
          {{"run", "train what a config describes", run, {}},
           {"sweep", "run many", {}, {show}},
           {"help", "describe", help, {}}}};
}

app::ConfigKeys small_keys() {
  return {{{"", {"name=", "layers="}}, {"layers.#.", {"dense="}}},
          {{{"name"}, {Values::Kind::files}}, {{"layers.#.dense", "layers"}, {Values::Kind::words, {"auto", "none"}}}},
          {{"layers.#.layers.", "layers."}},
          {"name", "layers"}};
}

}  // namespace

TEST_CASE("what stands for a value in help says what shells complete", "[app]") {
  using Kind = Values::Kind;
  CHECK(app::values_of("") == Values{});
  CHECK(app::values_of("N") == Values{Kind::any});
  CHECK(app::values_of("AXIS=N") == Values{Kind::any});
  CHECK(app::values_of("auto|bar|plain") == Values{Kind::words, {"auto", "bar", "plain"}});
  CHECK(app::values_of("last|best|STEP") == Values{Kind::words, {"last", "best"}});
  CHECK(app::values_of("FILE") == Values{Kind::files});
  CHECK(app::values_of("FILE.npz") == Values{Kind::files, {"npz"}});
  CHECK(app::values_of("CONFIG") == Values{Kind::files, {"yaml", "yml"}});
  CHECK(app::values_of("PROGRAM.pmt") == Values{Kind::files, {"pmt"}});
  CHECK(app::values_of("NAME=FILE.npy") == Values{Kind::named_files, {"npy"}});
  CHECK(app::values_of("RUN") == Values{Kind::folders});
  CHECK(app::values_of("DIR") == Values{Kind::folders});
  CHECK(app::values_of("KEY=VALUE") == Values{Kind::settings});
}

TEST_CASE("every command has a syntax, and the script of each shell has each option that its help lists", "[app]") {
  const std::string bash = call({"completion", "bash"}).out, zsh = call({"completion", "zsh"}).out,
                    fish = call({"completion", "fish"}).out, manual = call({"help", "--man"}).out;
  for (const app::CommandEntry& entry : app::program_syntax().commands) {
    INFO(entry.name);
    CHECK((entry.syntax.has_value() || !entry.subcommands.empty()));
    CHECK(contains(bash, " " + entry.name + " "));
    CHECK(contains(zsh, "\n    '" + entry.name + ":"));
    CHECK(contains(fish, "-n __pmaptrain_at -a " + entry.name + " "));
    CHECK(contains(manual, "\n\\fB" + entry.name + "\\fR\n"));
  }
  for (const std::string& command : commands_with_options()) {
    std::vector<std::string> arguments = split(command);
    arguments.emplace_back("--help");
    const std::set<std::string> options = listed_options(call(arguments).out);
    CHECK(options.contains("--help"));
    const std::string quoted = arguments.size() == 3 ? "'" + command + "'" : command;
    const std::size_t in_bash = bash.find("\n    " + quoted + ")\n      options='");
    REQUIRE(in_bash != std::string::npos);
    const std::size_t begin = bash.find('\'', in_bash + quoted.size() + 8);
    const std::string listed = " " + bash.substr(begin + 1, bash.find('\'', begin + 1) - begin - 1) + " ";
    const std::size_t begin_of_section = manual.find(".SS pmaptrain " + command + "\n");
    REQUIRE(begin_of_section != std::string::npos);
    const std::string section =
        manual.substr(begin_of_section, manual.find("\n.S", begin_of_section) - begin_of_section);
    std::string in_fish;
    for (const std::string& line : test::lines_of(fish)) {
      if (contains(line, "-n '__pmaptrain_in " + command + "'")) in_fish += line + "\n";
    }
    for (const std::string& option : options) {
      INFO(command << " " << option);
      CHECK(contains(listed, " " + option + " "));
      CHECK(contains(zsh, option));
      CHECK(
          contains(in_fish, (option.starts_with("--") ? " -l " + option.substr(2) : " -s " + option.substr(1)) + " "));
      CHECK(contains(section, "\\fB" + in_manual(option) + "\\fR"));
    }
  }
}

TEST_CASE("the keys that shells complete are those of the table of keys", "[app]") {
  const app::ConfigKeys keys = app::config_keys();
  std::vector<std::string> paths;  // without those of entries, whose names users choose
  for (const spec::Key& key : spec::keys()) {
    if (!key.path.ends_with(".*")) paths.push_back(key.path);
  }
  CHECK(keys.paths == paths);
  std::set<std::string> reached;
  for (const auto& [head, segments] : keys.below) {
    std::string path = head;
    for (std::size_t at = path.find("#."); at != std::string::npos; at = path.find("#.")) path.erase(at, 2);
    for (const std::string& segment : segments) reached.insert(path + segment.substr(0, segment.size() - 1));
  }
  for (const std::string& path : paths) CHECK((reached.contains(path)));
  for (const std::string path : {"model.layers.#.layers.", "model.layers.#.parallel.branches.#."}) {
    const std::pair<std::string, std::string> same(path, "model.layers.");
    CHECK(std::find(keys.same.begin(), keys.same.end(), same) != keys.same.end());
  }
}

TEST_CASE("bash completes commands, options and values", "[app][process]") {
  const std::vector<std::string> replies =
      completed({"pmaptrain sc", "pmaptrain --v", "pmaptrain sweep ", "pmaptrain sweep s", "pmaptrain sweep show --c",
                 "pmaptrain completion ", "pmaptrain init linear", "pmaptrain help optimizer.adamw.e",
                 "pmaptrain run --progress ", "pmaptrain run --progress = pl", "pmaptrain run x.yaml --verb",
                 "pmaptrain run -q --seed 3 --ov", "pmaptrain run --seed ", "pmaptrain eval runs/x --split v",
                 "pmaptrain eval runs/x --checkpoint ", "pmaptrain collectives --op ps", "pmaptrain frobnicate --s",
                 "pmaptrain devices "});
  CHECK(replies == std::vector<std::string>{"schema", "--version", "best run show", "show", "--csv", "bash fish zsh",
                                            "linear_regression", "optimizer.adamw.eps", "auto bar none plain", "plain",
                                            "--verbose", "--overwrite", "", "validation", "best last",
                                            "psum psum_scatter", "", ""});
}

TEST_CASE("bash completes config keys behind --set, whatever the index of an item is, and their values",
          "[app][process]") {
  const std::vector<std::string> replies = completed(
      {"pmaptrain run x.yaml --set data.batch", "pmaptrain run --set = data.batch", "pmaptrain validate --set me",
       "pmaptrain run --set model.layers.12.dropout.", "pmaptrain run --set model.layers.2.layers.0.layers.1.conv.st",
       "pmaptrain run --set optimizer.learning_rate.join.schedules.1.linear.init", "pmaptrain run --set model.layers.",
       "pmaptrain run --set precision = ", "pmaptrain run --set precision = m", "pmaptrain run --set = precision = f",
       "pmaptrain run --set optimizer.sgd.nesterov = ", "pmaptrain run --set data.batch_size = 64 --max-s",
       "pmaptrain run --set train.eval_every = n", "pmaptrain sweep run s.yaml --set see",
       "pmaptrain sweep run s.yaml --set tr", "pmaptrain sweep run s.yaml --set train.dur",
       "pmaptrain run x.yaml --resume --change optimizer.learning_rate.exp"});
  CHECK(replies == std::vector<std::string>{
                       "data.batch_size= data.batch_size_per_device=", "data.batch_size= data.batch_size_per_device=",
                       "mesh. metrics. metrics=", "model.layers.12.dropout.rate=",
                       "model.layers.2.layers.0.layers.1.conv.strides=",
                       "optimizer.learning_rate.join.schedules.1.linear.init_value=", "", "float32 mixed_bfloat16",
                       "mixed_bfloat16", "float32", "false true", "--max-steps", "never",
                       "seed=", "train. trials=", "train.duration=", "optimizer.learning_rate.exponential_decay."});
}

TEST_CASE("bash completes files with the endings that a command takes, and folders", "[app][process]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "runs/one");
  for (const char* name : {"a.yaml", "b.yml", "c.txt", "d.npy", "e.pmt"}) std::ofstream(folder / name) << "x";
  const std::vector<std::string> replies =
      completed({"pmaptrain run ", "pmaptrain run c", "pmaptrain eval ", "pmaptrain eval runs/o",
                 "pmaptrain run a.yaml --trace ", "pmaptrain exec e.pmt --input x = ", "pmaptrain exec ",
                 "pmaptrain init csv c", "pmaptrain run a.yaml --set data.source.csv.train = c"},
                folder.path().string());
  const std::string all = "a.yaml b.yml c.txt d.npy e.pmt runs";
  CHECK(replies == std::vector<std::string>{"a.yaml b.yml runs", "", "runs", "runs/one", all, "d.npy runs",
                                            "e.pmt runs", "c.txt", "c.txt"});
}

TEST_CASE("zsh and fish read their scripts, and fish completes by its own", "[app][process]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "_pmaptrain") << call({"completion", "zsh"}).out;
  std::ofstream(folder / "pmaptrain.fish") << call({"completion", "fish"}).out;
  if (is_installed("zsh")) {
    const Finished zsh = run_shell("zsh -f -n '" + (folder / "_pmaptrain") + "'");
    CHECK(zsh.status == 0);
    CHECK(zsh.err.empty());
  } else {
    WARN("skipped: zsh is not installed");
  }
  if (!is_installed("fish")) {
    WARN("skipped: fish is not installed");
    return;
  }
  const Finished fish =
      run_shell("cd '" + folder.path().string() +
                "' && HOME=$PWD fish --no-config -c 'source pmaptrain.fish\n"
                "for line in \"sc\" \"sweep sh\" \"run --prog\" \"run --progress p\" \"run --set data.batch\" "
                "\"run --set model.layers.2.layers.0.dropout.\" \"run --set precision=m\" \"help optimizer.adamw.e\"\n"
                "complete -C \"pmaptrain $line\" | string replace -r \"\\t.*\" \"\" | string join \" \"\nend'");
  CHECK(fish.err.empty());
  CHECK(fish.out ==
        "schema\nshow\n--progress\nplain\ndata.batch_size= data.batch_size_per_device=\n"
        "model.layers.2.layers.0.dropout.rate=\nprecision=mixed_bfloat16\noptimizer.adamw.eps\n");
}

TEST_CASE("the scripts of a small program and its manual page are those of the golden files", "[app]") {
  const app::ProgramSyntax program = small_program();
  test::check_golden("completion/bash", app::bash_script(program, small_keys()));
  test::check_golden("completion/zsh", app::zsh_script(program, small_keys()));
  test::check_golden("completion/fish", app::fish_script(program, small_keys()));
  const std::string manual = app::manual_page(program, "What it does.\n");
  test::check_golden("completion/manual", manual.substr(manual.find(".SH DESCRIPTION"),
                                                        manual.find(".SH CONFIG") - manual.find(".SH DESCRIPTION")));
}

TEST_CASE("groff formats the manual page without a warning", "[app][process]") {
  if (!is_installed("groff")) {
    WARN("skipped: groff is not installed");
    return;
  }
  const TemporaryFolder folder;
  std::ofstream(folder / "pmaptrain.1") << call({"help", "--man"}).out;
  const Finished shown = run_shell("groff -man -ww -Tutf8 -P-cbou '" + (folder / "pmaptrain.1") + "'");
  CHECK(shown.status == 0);
  CHECK(shown.err.empty());
  CHECK(contains(shown.out, "--set KEY=VALUE"));
  CHECK(contains(shown.out, "EXIT STATUS"));
}

TEST_CASE("completion refuses other shells, and --man a key", "[app]") {
  const auto refused = [](const std::vector<std::string>& arguments) {
    const Finished finished = call(arguments);
    CHECK(finished.status == 2);
    CHECK(finished.out.empty());
    return finished.err;
  };
  CHECK(refused({"completion", "tcsh"}) ==
        "error: there is no completion for the shell 'tcsh'\n  help: the shells are bash, zsh, fish\n");
  CHECK(refused({"completion", "zhs"}) ==
        "error: there is no completion for the shell 'zhs'\n  help: did you mean 'zsh'?\n");
  CHECK(refused({"completion"}) == "error: pmaptrain completion needs SHELL\n  help: pmaptrain completion bash\n");
  CHECK(refused({"help", "--man", "optimizer"}) ==
        "error: --man prints the whole manual page; it takes no KEY\n  help: pmaptrain help --man\n");
  CHECK(contains(call({"completion", "--help"}).out, "source <(pmaptrain completion bash)"));
}
