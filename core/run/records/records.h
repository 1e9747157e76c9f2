// The recorders of a run folder: metrics.jsonl, log.txt and summary.json. None of them can stop the training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/run/files/append_file.h"
#include "core/run/records/events.h"
#include "core/run/records/lines.h"
#include "core/run/records/tensorboard.h"

namespace pmaptrain::run {

// The lines that an event adds to metrics.jsonl, with their ends: one for each member, none for most events. Numbers
// read back exactly. A number that is not finite is written as null, and "finite" is then false.
std::string metrics_lines(const Event& event);

// The text of summary.json, indented, with its end of line. `version` is the program's.
std::string summary_json(const Ended& ended, const std::string& version);

// Parses summary.json, without comparisons; none if the document is damaged.
std::optional<Ended> parse_summary(const std::string& text);

// Writes the files of a run folder while the run goes on: metrics.jsonl, one line and one write for each logged step,
// epoch and evaluation; TensorBoard's event files, if requested, with the same contents; log.txt, the plain lines of a
// terminal, with the final report at the end; and summary.json when the run ends, completely or not at all.
class Records : public Consumer {
 public:
  // The directories of the places outlive this.
  Records(FilePlace metrics, FilePlace log, FilePlace summary, std::string version, const Warn& warn)
      : metrics_(std::move(metrics), warn),
        log_(std::move(log), warn),
        summary_(std::move(summary)),
        version_(std::move(version)),
        warn_(warn) {}
  // Writes TensorBoard's files too from now on. The arguments are those of TensorBoard's constructor.
  void begin_tensorboard(const Directory& run, std::int64_t members, std::int64_t step) {
    tensorboard_.emplace(run, members, step, warn_);
  }
  void on(const Event& event) override;

  // From now on nothing is written: another process of the run writes the files.
  void be_silent() { is_silent_ = true; }
  // Writes an event only to metrics.jsonl and TensorBoard's files.
  void write_metrics(const Event& event);
  // Writes summary.json, as the event Ended does.
  void write_summary(const Ended& ended);

  // Tries again to write what waits, and flushes the files to the disk.
  void flush();
  // The length of metrics.jsonl.
  std::uint64_t metrics_bytes() const { return is_silent_ ? 0 : metrics_.bytes(); }
  // Sentences that say what is missing in the files; empty if nothing is.
  std::vector<std::string> missing() const;

 private:
  AppendFile metrics_, log_;
  std::optional<TensorBoard> tensorboard_;
  FilePlace summary_;
  std::string version_;
  Warn warn_;
  EventLines lines_;
  std::string summary_problem_;
  bool is_silent_ = false;
};

}  // namespace pmaptrain::run
