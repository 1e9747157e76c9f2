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

namespace pmaptrain::train {

// What metrics.jsonl gets of an event: one line for each member, with its end; nothing for most events. Numbers read
// back exactly; a number that is not finite is null, and then "finite" is false.
std::string metrics_lines(const Event& event);

// The summary document, indented, with its end of line. `version` is the program's.
std::string summary_json(const Ended& ended, const std::string& version);

// What a summary document says, but for comparisons; none of one that is damaged.
std::optional<Ended> parse_summary(const std::string& text);

// What a run folder gets while the run goes on: metrics.jsonl, one line and one write for each logged step, epoch and
// evaluation, and the same for TensorBoard where that is wanted; log.txt, what a terminal shows, as plain lines, with
// the final report at the end; summary.json when the run ends, whole or not at all.
class Records : public Consumer {
 public:
  // The places outlive this.
  Records(FilePlace metrics, FilePlace log, FilePlace summary, std::string version, const Warn& warn)
      : metrics_(std::move(metrics), warn),
        log_(std::move(log), warn),
        summary_(std::move(summary)),
        version_(std::move(version)),
        warn_(warn) {}
  // From now on also for TensorBoard, with the arguments of its constructor.
  void begin_tensorboard(const Directory& run, std::int64_t members, std::int64_t step) {
    tensorboard_.emplace(run, members, step, warn_);
  }
  void on(const Event& event) override;

  // An event in metrics.jsonl and for TensorBoard alone.
  void write_metrics(const Event& event);
  // Writes summary.json; a run's Ended does so too.
  void write_summary(const Ended& ended);

  // Tries again to write what could not be written, and asks the system to bring the lines to the disk.
  void flush();
  // The length of metrics.jsonl.
  std::uint64_t metrics_bytes() const { return metrics_.bytes(); }
  // What the files lack by now, as sentences; empty when all is there.
  std::vector<std::string> missing() const;

 private:
  AppendFile metrics_, log_;
  std::optional<TensorBoard> tensorboard_;
  FilePlace summary_;
  std::string version_;
  Warn warn_;
  EventLines lines_;
  std::string summary_problem_;
};

}  // namespace pmaptrain::train
