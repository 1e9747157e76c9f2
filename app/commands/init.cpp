// init: a commented example config to begin from, with its schema for editors beside it.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "app/commands/commands.h"
#include "app/data_config.h"
#include "app/display/terminal.h"
#include "app/examples.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "app/pretrained_config.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wrap.h"
#include "core/hints/hints.h"
#include "core/spec/load.h"

namespace pmaptrain::app {
namespace {

// The first sentence of the comment that the file begins with.
std::string summary(std::string_view text) {
  std::string out;
  while (text.starts_with("#")) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(1, end - 1);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (line.empty()) break;
    out += (out.empty() ? "" : " ") + std::string(line);
    const std::size_t stop = out.find(". ");
    if (stop != std::string::npos || out.ends_with('.'))
      return out.substr(0, stop == std::string::npos ? out.size() - 1 : stop);
  }
  return out;
}

// For a terminal of `columns` columns; 0: there is none.
std::string list(int columns) {
  std::vector<Definition> all;
  for (const Example& example : examples()) all.push_back({std::string(example.name), summary(example.text)});
  return "The example configs; `pmaptrain init NAME` writes NAME.yaml:\n\n" + definitions(all, columns);
}

constexpr std::string_view schema_name = "pmaptrain.schema.json";

// The schema's text in `folder` where it has to be written: an older one is brought up to date. Throws Error (usage)
// where a file that is none of ours has its name.
std::optional<std::string> schema_for(const std::filesystem::path& file) {
  std::string schema = spec::json_schema();
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, ignored))) return schema;
  std::ostringstream present;
  present << std::ifstream(file, std::ios::binary).rdbuf();
  if (present.view() == schema) return std::nullopt;
  if (present.view().find("\"title\": \"" + std::string(spec::schema_title) + "\"") == std::string_view::npos) {
    fail_usage("'" + file.string() + "' is not a schema of pmaptrain, and init does not replace other files",
               "init writes the schema for editors to this path; write the config to another folder");
  }
  return schema;
}

[[noreturn]] void fail_existing(const std::string& path) {
  fail_usage("'" + path + "' exists, and init does not replace files", "name another file, or remove this one");
}

void refuse_existing(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) fail_existing(path);
}

void write_new(const std::string& path, std::string_view text) {
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "wxe"), close);  // x: only a new file
  if (!file && errno == EEXIST) fail_existing(path);
  if (!file || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() || std::fflush(file.get()) != 0) {
    fail_running("'" + path + "' cannot be written: " + std::strerror(errno));
  }
}

// Writes a config, and the schema beside it, and says what to do with it.
void write_config(const std::string& path, std::string_view text, const Streams& streams) {
  const std::filesystem::path beside = std::filesystem::path(path).parent_path() / schema_name;
  const std::optional<std::string> schema = schema_for(beside);
  write_new(path, "# yaml-language-server: $schema=" + std::string(schema_name) + "\n" + std::string(text));
  if (schema) {
    std::error_code ignored;
    std::filesystem::remove(beside, ignored);
    write_new(beside.string(), *schema);
  }
  const std::string shown = shell_quoted(path);
  const std::string told = "wrote " + shown + (schema ? " and " + shell_quoted(beside.string()) : "") +
                           "\n\n  pmaptrain validate " + shown + "   # what a run would do\n  pmaptrain run " + shown +
                           "        # train\n";
  streams.out << for_reader(told, streams);
}

// Of `init csv data/houses.csv`: houses.yaml, in the current directory.
std::string default_file(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  const std::filesystem::path name = whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  return (name.extension() == ".gz" ? name.stem().stem() : name.stem()).string() + ".yaml";
}

std::optional<Pretrained> pretrained_kind(std::string_view name) {
  if (name == "hf") return Pretrained::hf;
  if (name == "torchvision") return Pretrained::torchvision;
  return std::nullopt;
}

// Of `init hf PATH FILE` and `init torchvision PATH FILE`.
void write_pretrained(Pretrained kind, const std::string& name, const std::optional<std::string>& path,
                      const std::optional<std::string>& named, const std::optional<std::string>& data,
                      const Streams& streams) {
  const bool is_folder = kind == Pretrained::hf;
  if (!path) {
    fail_usage("pmaptrain init " + name + " needs PATH, the model to write a config for",
               "pmaptrain init " + name + (is_folder ? " models/gpt2" : " resnet50.safetensors"));
  }
  const std::string file = named.value_or(default_file(*path));
  refuse_existing(file);  // before the weights are read
  for (const auto& given : {path, data}) {
    std::error_code ignored;
    if (given && !std::filesystem::exists(*given, ignored)) {
      fail_data("there is no '" + *given + "'", "PATH is relative to the current directory");
    }
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(*path, ignored) != is_folder) {
    fail_usage(is_folder ? "'" + *path + "' is a file; pmaptrain init hf takes the folder of a model"
                         : "'" + *path + "' is a folder; pmaptrain init torchvision takes a file of safetensors",
               is_folder
                   ? "it has config.json beside model.safetensors, as save_pretrained() of transformers writes them"
                   : "for a folder that transformers wrote: pmaptrain init hf " + shell_quoted(*path));
  }
  const PretrainedConfig config = pretrained_config(kind, *path, file, data);
  write_config(file, config.text, streams);
  print_notes(config.notes, streams);
}

// Which kind of data a path names; empty if none. What is not there is judged by its ending.
std::string kind_of_path(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return "images";
  const std::filesystem::path name(path);
  std::string ending = letters_of(name.extension().string());
  if (ending == "gz") ending = letters_of(name.stem().extension().string());
  return ending == "npz" || ending == "csv" ? ending : "";
}

}  // namespace

int command_init(CommandArguments arguments, const Streams& streams) {
  std::optional<std::string> name, first, second;
  std::vector<std::string> targets;
  std::optional<std::string> data;
  Arguments a(
      "init",
      "Writes a commented config to begin from and, beside it, pmaptrain.schema.json, with which an editor "
      "completes and checks it: an example, a config for data of your own, or one that trains a model of transformers "
      "or torchvision further; without NAME, lists the examples.");
  a.optional_positional("NAME", name, "an example, such as linear_regression; or npz, csv, images, hf or torchvision");
  a.optional_positional("PATH", first,
                        "with npz, csv and images, the archive, the table, or the folder of images; with hf, a folder "
                        "that transformers wrote; with torchvision, a file of safetensors with a ResNet");
  a.optional_positional("FILE", second,
                        "the path of the config; default NAME.yaml, or for data STEM.yaml, named after it. An existing "
                        "config is not replaced");
  a.list("--target", "COLUMN", targets,
         "with csv, the column to predict; default the last one, or one that is called target, label, class or so; may "
         "be repeated, for columns of 0 and 1 that are several labels, or of several numbers");
  a.text("--data", "PATH", data,
         "with hf and torchvision, what to train on: texts, or a folder of images with a folder for each class");
  std::vector<std::string> kinds{"npz", "csv", "images", "hf", "torchvision"};
  for (const Example& example : examples()) kinds.emplace_back(example.name);
  a.complete("NAME", {Values::Kind::words, std::move(kinds)});
  a.footer(
      "  pmaptrain init cnn my_cnn.yaml\n  pmaptrain init csv data/houses.csv     # writes houses.yaml\n"
      "  pmaptrain init csv data/houses.csv --target price\n"
      "  pmaptrain init hf models/gpt2 --data texts.txt\n");
  if (!a.parse(arguments, streams)) return 0;
  if (!targets.empty() && name != "csv") {
    fail_option("--target", targets.front(), "only a table has columns to predict",
                "pmaptrain init csv PATH --target COLUMN");
  }
  const std::optional<Pretrained> pretrained = pretrained_kind(name.value_or(""));
  if (data && !pretrained) {
    fail_option("--data", *data, "only a model that is trained further takes data beside it",
                "pmaptrain init hf DIR --data PATH");
  }
  if (pretrained) {
    write_pretrained(*pretrained, *name, first, second, data, streams);
    return 0;
  }
  if (!name) {
    streams.out << for_reader(list(display::text_columns(streams.out_fd)), streams);
    return 0;
  }
  if (const std::optional<DataKind> kind = data_kind(*name)) {
    if (!first) {
      fail_usage("pmaptrain init " + *name + " needs PATH, the data to write a config for",
                 "pmaptrain init " + *name + (*name == "images" ? " photos" : " data." + *name));
    }
    if (const std::string is = kind_of_path(*first); !is.empty() && is != "images" && is != *name) {
      fail_usage("'" + *first + "' is not what pmaptrain init " + *name + " reads",
                 "pmaptrain init " + is + " " + shell_quoted(*first));
    }
    const std::string file = second.value_or(default_file(*first));
    refuse_existing(file);  // before the data is read
    std::error_code ignored;
    if (!std::filesystem::exists(*first, ignored)) {
      fail_data("there is no '" + *first + "'", "PATH is relative to the current directory");
    }
    const DataConfig config = config_for(*kind, *first, file, targets);
    write_config(file, config.text, streams);
    if (!config.target.empty()) {
      streams.out << for_reader("\n" + config.target + "\n", streams);
    }
    print_notes(config.notes, streams);
    return 0;
  }
  std::vector<std::string> names;
  for (const Example& example : examples()) {
    names.emplace_back(example.name);
    if (example.name != *name) continue;
    if (second) fail_usage("unexpected argument '" + *second + "'", "pmaptrain init " + *name + " takes FILE alone");
    write_config(first.value_or(*name + ".yaml"), example.text, streams);
    return 0;
  }
  if (const std::string kind = kind_of_path(*name); !kind.empty()) {
    fail_usage("'" + *name + "' is data, and which kind it is of stands in front of it",
               "pmaptrain init " + kind + " " + shell_quoted(*name));
  }
  if (*name == "text" || name->ends_with(".txt")) {
    fail_usage("there is no example '" + *name + "'",
               "pmaptrain init gpt writes a config of a model of text; data.source.text.train names your file in it");
  }
  const std::string near = nearest(*name, names);
  const std::optional<Hint> hint = hint_for("source", *name);
  fail_usage("there is no example '" + *name + "'",
             hint && !hint->is_supported() ? hint->help
             : near.empty()                ? "the examples are " + join(names, ", ") +
                                  "; for data of your own: npz, csv, images; for a model: hf, torchvision"
                            : "did you mean '" + near + "'?");
}

}  // namespace pmaptrain::app
