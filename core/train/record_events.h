// The recorders of a run folder: metrics.jsonl, log.txt and summary.json. None of them can stop the training.
#pragma once

#include <filesystem>
#include <string>

#include "core/train/events.h"
#include "core/train/record_file.h"
#include "core/train/record_lines.h"

namespace pmaptrain::train {

// The event as one line of metrics.jsonl, without its end; empty for events that have none. Numbers read back exactly;
// a number that is not finite is null, and then "finite" is false.
std::string metrics_line(const Event& event);

// The summary document, indented, with its end of line. `version` is the program's.
std::string summary_json(const Ended& ended, const std::string& version);

// Appends to metrics.jsonl, one line and one write for each logged step, epoch and evaluation.
class JsonlRecorder : public Consumer {
 public:
  JsonlRecorder(std::filesystem::path path, Warn warn) : file_(std::move(path), std::move(warn)) {}
  void on(const Event& event) override;

 private:
  AppendFile file_;
};

// Appends to log.txt what a terminal shows, as plain lines, with the final report at the end.
class TextRecorder : public Consumer {
 public:
  TextRecorder(std::filesystem::path path, Warn warn, bool verbose = false)
      : lines_(verbose), file_(std::move(path), std::move(warn)) {}
  void on(const Event& event) override;

 private:
  EventLines lines_;
  AppendFile file_;
};

// Writes summary.json when the run ends, whole or not at all.
class SummaryRecorder : public Consumer {
 public:
  SummaryRecorder(std::filesystem::path path, std::string version, Warn warn)
      : path_(std::move(path)), version_(std::move(version)), warn_(std::move(warn)) {}
  void on(const Event& event) override;

 private:
  std::filesystem::path path_;
  std::string version_;
  Warn warn_;
};

}  // namespace pmaptrain::train
