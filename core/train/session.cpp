#include "core/train/session.h"

#include <algorithm>
#include <chrono>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/base/version.h"
#include "core/data/open.h"
#include "core/train/checkpoint.h"
#include "core/train/evaluator.h"
#include "core/train/record_events.h"
#include "core/train/replicas.h"
#include "core/train/start.h"
#include "core/train/values.h"

namespace pmaptrain::train {

class Session::Impl {
 public:
  Impl(const Setup& setup, SessionOptions options)
      : setup_(setup),
        options_(std::move(options)),
        timetable_(setup.timetable),
        folder_(RunFolder::claim(options_.run_dir, options_.folder)) {
    private_copies_ = options_.verify_replicas || timetable_.verify_every > 0;
    if (private_copies_ && timetable_.verify_every == 0) timetable_.verify_every = timetable_.log_every;
    steps_ = options_.max_steps ? std::min(*options_.max_steps, timetable_.steps) : timetable_.steps;
    prepare();
  }

  Ended run(std::span<Consumer* const> consumers) {
    if (signalled()) return stopped_before_the_first_step();
    folder_.begin(setup_.loaded.resolved);
    begin_ = logged_at_ = Clock::now();
    consumers_.assign(consumers.begin(), consumers.end());
    add_recorders();
    emit(started());
    for (const std::string& note : setup_.loaded.notes) emit(Warned{note});
    for (const std::string& note : setup_.source.notes) emit(Warned{note});
    for (const std::string& warning : setup_.warnings) emit(Warned{warning});
    for (const std::string& warning : folder_.warnings()) emit(Warned{warning});
    if (setup_.mesh().devices() < 2) {
      emit(Warned{"the mesh has one logical device: there is nothing to synchronise (mesh.axes, --devices)"});
    }
    try {
      loop();
      finish();
    } catch (const Error& error) {
      keep_what_is_trained();
      fail(static_cast<int>(error.status()), error.diagnostics().front().message);
      throw;
    } catch (const std::exception& error) {
      keep_what_is_trained();
      fail(static_cast<int>(ExitStatus::failed), error.what());
      throw;
    }
    return ended_;
  }

 private:
  // ---- before the first step ----

  // Everything that can fail for want of something, up to the first batch.
  void prepare() {
    const std::unique_ptr<Backend> backend = backend_of(setup_.spec().mesh, options_.kernels);
    const Source source = run_source(setup_, private_copies_);
    workers_ = backend->workers(source);
    check_memory(estimate_memory(setup_, backend->needs(source)), setup_);
    module_ = backend->load(source);
    reader_.emplace(*module_);
    set_initial_values(*module_, setup_);
    if (setup_.evaluation) {
      evaluator_.emplace(*module_, evaluate_entry, setup_.source.test, *setup_.evaluation_batch, setup_.model,
                         setup_.source.test_name);
    }
    for (const auto& [name, tensor] : setup_.spec().model.initial_values) {
      Comparison& comparison = ended_.comparisons.emplace_back();
      comparison.parameter = name;
      comparison.initial = parameter(name);
    }
    for (const data::Truth& truth : known_truths()) {
      const auto known = std::find_if(ended_.comparisons.begin(), ended_.comparisons.end(),
                                      [&](const Comparison& c) { return c.parameter == truth.parameter; });
      Comparison& comparison = known != ended_.comparisons.end() ? *known : ended_.comparisons.emplace_back();
      comparison.parameter = truth.parameter;
      comparison.initial = parameter(truth.parameter);
      comparison.truth = truth.values;
    }
    loader_.emplace(setup_.source.train,
                    data::training_sampler(setup_.spec().data, data::seed_of(setup_.spec().data, setup_.spec().seed),
                                           setup_.batch.dataset),
                    setup_.batch, batch_slots(*module_, train_entry, *setup_.source.train, setup_.batch),
                    data::LoaderOptions{0, steps_});
    slot_ = loader_->next().slot;
  }

  // What the source knows of this model's parameters: it made its targets by one dense layer on its features, so it
  // knows nothing of a model that computes anything else.
  std::vector<data::Truth> known_truths() const {
    const model::Model& model = setup_.model;
    const std::vector<const model::PlannedLayer*> layers = model.leaves();
    if (layers.size() != 1 || layers.front()->kind != "dense" || model.normalize) return {};
    std::vector<data::Truth> truths;
    for (const data::Truth& truth : setup_.source.truths) {
      const auto parameter = std::find_if(model.parameters.begin(), model.parameters.end(),
                                          [&](const model::Parameter& p) { return p.name == truth.parameter; });
      if (parameter == model.parameters.end()) continue;  // a layer of another name, or without a bias
      if (numel(parameter->shape) != static_cast<std::int64_t>(truth.values.size())) return {};
      truths.push_back(truth);
    }
    return truths;
  }

  Ended stopped_before_the_first_step() const {
    Ended ended;
    ended.status = "stopped";
    ended.reason = "signal";
    ended.exit_status = 128 + signal();
    return ended;
  }

  void add_recorders() {
    const Warn warn = [this](const std::string& text) { recorder_warnings_.push_back(text); };
    records_.emplace(folder_.place("metrics.jsonl"), folder_.place("log.txt"), folder_.place("summary.json"),
                     std::string(version), warn);
    consumers_.push_back(&*records_);
  }

  Started started() const {
    Started event{setup_.spec().name, options_.run_dir.string(), 0, steps_, timetable_.steps_per_epoch, {}};
    const data::BatchPlan& batch = setup_.batch;
    event.description.push_back(setup_.source.description);
    event.description.push_back(counted(setup_.model.parameter_count(), "parameter") + " on " +
                                counted(batch.devices, "logical device") + ", carried by " +
                                counted(workers_, "worker"));
    event.description.push_back(
        "batches of " + with_commas(batch.global) + ": " + counted(batch.rows_per_device, "row") + " a device" +
        (batch.microbatches > 1 ? " in " + std::to_string(batch.microbatches) + " microbatches" : "") + ", " +
        counted(timetable_.steps_per_epoch, "step") + " an epoch");
    return event;
  }

  // Recorders that cannot write say so once, as an event of their own.
  void emit(const Event& event) {
    for (Consumer* consumer : consumers_) consumer->on(event);
    while (!recorder_warnings_.empty()) {
      const Event warning = Warned{recorder_warnings_.back()};
      recorder_warnings_.pop_back();
      for (Consumer* consumer : consumers_) consumer->on(warning);
    }
  }

  // ---- values ----

  double output(std::size_t index) const { return scalar(*module_, module_->output(train_entry, index)); }
  double state(std::size_t index) const { return scalar(*module_, module_->input(train_entry, index)); }
  std::vector<double> parameter(const std::string& name) const { return numbers(*module_, module_->input(name)); }
  std::int64_t steps_skipped() const {
    return setup_.roles.skipped ? static_cast<std::int64_t>(state(*setup_.roles.skipped)) : 0;
  }
  std::int64_t epoch_of(std::int64_t step) const { return (step - 1) / timetable_.steps_per_epoch + 1; }
  bool is_due(std::int64_t step, std::int64_t every) const { return every > 0 && step % every == 0; }

  // ---- the loop ----

  // The first batch is there, and its step is run whatever happens: from here on the run ends with a checkpoint.
  void loop() {
    // A batch that never changes is filled once. Its rows do change, but only dropout reads them.
    const bool resident = !loader_->prefetches() && setup_.model.drawing_layers().empty();
    bool last = false;
    while (!last) {
      module_->wait(submitted_);  // the batch of the step before is given back
      if (!resident && step_ > 0) slot_ = loader_->next().slot;
      submitted_ = module_->submit(train_entry, slot_);
      ++step_;
      emit(Progressed{step_, epoch_of(step_)});
      const bool epoch_ends = is_due(step_, timetable_.steps_per_epoch);
      const bool evaluates = evaluator_ && is_due(step_, timetable_.eval_every);
      // Asked once a step, so that the step that turns out to be the last is logged as such. What would be measured
      // after a bad step are the parameters of an earlier one.
      last = step_ == steps_ || signalled() || ((epoch_ends || evaluates) && !finite());
      if (step_ == 1 || last || is_due(step_, timetable_.log_every)) log();
      if (options_.between_steps) options_.between_steps(*module_, step_);
      if (is_due(step_, timetable_.verify_every)) verify();
      if (!guard_.empty() && logged_step_ != step_) log();
      if (epoch_ends) end_epoch(last || !guard_.empty());
      if (evaluates && !last) evaluate();  // after the last step it waits for the checkpoint
      last = last || !guard_.empty() || signalled();
    }
    if (step_ > 0 && logged_step_ != step_) log();  // a signal came while this step was thought not to be the last
  }

  int signal() const { return options_.stop != nullptr ? options_.stop->load() : 0; }
  bool signalled() const { return signal() != 0; }

  void log() {
    Logged event;
    event.step = step_;
    event.epoch = epoch_of(step_);
    std::vector<std::vector<double>> means;
    for (std::size_t mean : setup_.roles.means) {
      means.push_back(numbers(*module_, module_->output(train_entry, mean)));
    }
    event.measures = model::finish_measures(setup_.model, means);
    event.learning_rate = output(setup_.roles.used_learning_rate);
    event.grad_norm = output(setup_.roles.grad_norm);
    event.seconds = seconds_since(begin_);
    const std::int64_t examples = examples_until(step_);
    const double elapsed = seconds_since(logged_at_);
    event.examples_per_second = elapsed > 0 ? static_cast<double>(examples - logged_examples_) / elapsed : 0;
    logged_at_ = Clock::now();
    logged_examples_ = examples;
    logged_step_ = step_;
    last_measures_ = event.measures;
    emit(event);
    check_count();
    check_finite();
    folder_.check_in_place();
  }

  void check_count() const {
    if (output(setup_.roles.count) > 0) return;
    fail_running("step " + std::to_string(step_) + ": no example of the batch counts", "its mask is all zero");
  }

  // False once a step was not finite with on_nonfinite: halt. The update itself has kept the last good values since.
  bool finite() const { return !setup_.roles.finite || state(*setup_.roles.finite) != 0; }

  // The count of updates says which step was the first bad one, however many have run since.
  void check_finite() {
    if (finite() || !guard_.empty()) return;
    const auto good = static_cast<std::int64_t>(state(setup_.roles.step));
    guard_ = "step " + std::to_string(good + 1) +
             ": the loss, the gradient or the update is not finite; stopped with the "
             "parameters " +
             (good == 0 ? "that training began with" : "after step " + std::to_string(good)) +
             " (train.on_nonfinite: halt)";
    good_steps_ = good;
    emit(Warned{guard_, true});
  }

  // With on_nonfinite: skip every step may have been left out, and then nothing was trained.
  void check_any_good() {
    if (step_ == 0 || steps_skipped() < step_ || !guard_.empty()) return;
    guard_ = (step_ == 1 ? "the only step was" : "all " + with_commas(step_) + " steps were") +
             std::string(" skipped: the loss, the gradient or the update was not finite (train.on_nonfinite: skip)");
    emit(Warned{guard_, true});
  }

  void verify() {
    if (verified_at_ == step_ || !guard_.empty()) return;
    verified_at_ = step_;
    const auto divergence = find_divergence(*reader_);
    if (!divergence) return;
    guard_ = "step " + std::to_string(step_) + ": " + describe(*divergence, *setup_.training) +
             "; the checkpoint holds what device 0 has, which may be damaged too";
    emit(Warned{guard_, true});
  }

  // Whether the epoch's means are told. Of epochs that are shorter than the log interval only those at its steps are.
  bool tells_epoch(bool last) const {
    return last || timetable_.log_every <= timetable_.steps_per_epoch || logged_step_ == step_;
  }

  // Means over the epoch so far, then the sums begin anew.
  void end_epoch(bool last) {
    check_data_unchanged();
    const double examples = state(setup_.roles.epoch_examples);
    if (examples > 0 && tells_epoch(last)) tell_epoch(examples);
    epoch_began_ = seconds_since(begin_);
    const auto clear = [&](std::size_t input) {
      const Handle value = module_->input(train_entry, input);
      const std::vector<std::byte> zeros(module_->slice_bytes(value));
      module_->wait(module_->write(value, every_device, zeros));
    };
    for (std::size_t sum : setup_.roles.epoch_sums) clear(sum);
    clear(setup_.roles.epoch_examples);
  }

  void tell_epoch(double examples) {
    EpochEnded event;
    event.step = step_;
    event.epoch = epoch_of(step_);
    event.examples = static_cast<std::int64_t>(examples);
    event.seconds = seconds_since(begin_) - epoch_began_;
    std::vector<std::vector<double>> means;
    for (std::size_t sum : setup_.roles.epoch_sums) {
      means.push_back(numbers(*module_, module_->input(train_entry, sum)));
      for (double& value : means.back()) value /= examples;
    }
    event.measures = model::finish_measures(setup_.model, means);
    last_measures_ = event.measures;
    emit(event);
  }

  void evaluate() {
    if (!evaluator_ || evaluated_at_ == step_ || !guard_.empty()) return;
    const auto evaluation = evaluator_->run(options_.stop);
    if (!evaluation) return;  // a signal came
    logged_at_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(evaluation->seconds));
    evaluated_at_ = step_;
    test_measures_ = evaluation->measures;
    emit(Evaluated{step_, epoch_of(std::max<std::int64_t>(step_, 1)), evaluation->split, evaluation->measures,
                   evaluation->examples, evaluation->seconds});
  }

  std::int64_t examples_until(std::int64_t step) const {
    return step / timetable_.steps_per_epoch * setup_.batch.examples_per_epoch +
           step % timetable_.steps_per_epoch * setup_.batch.global;
  }

  // ---- after the last step ----

  void finish() {
    if (private_copies_) verify();
    if (step_ > 0 && !is_due(step_, timetable_.steps_per_epoch)) end_epoch(true);
    check_any_good();
    save();
    if (!signalled()) evaluate();  // after the checkpoint, since it may take long and be cut short
    if (const std::int64_t skipped = steps_skipped(); skipped > 0 && guard_.empty()) {
      emit(Warned{
          (skipped == 1 ? "1 step was" : with_commas(skipped) + " steps were") +
          std::string(" skipped: the loss, the gradient or the update was not finite (train.on_nonfinite: skip)")});
    }
    ended_.status = "done";
    ended_.reason = "duration";
    if (!guard_.empty()) {
      ended_.status = "stopped";
      ended_.reason = "guard";
      ended_.exit_status = static_cast<int>(ExitStatus::guard);
    } else if (signalled()) {
      ended_.status = "stopped";
      ended_.reason = "signal";
    } else if (step_ < timetable_.steps) {
      ended_.status = "stopped";
      ended_.reason = "max_steps";
    }
    if (signalled()) ended_.exit_status = 128 + signal();  // the process ends by it, whatever else happened
    fill_totals(good_steps_.value_or(step_));
    folder_.check_in_place();
    records_->flush();
    note_what_is_missing();
    emit(ended_);
    const int told = ended_.exit_status;
    note_what_is_missing();  // the last lines, or the summary
    if (ended_.exit_status != told) records_->write_summary(ended_);
  }

  // Training is done, but not all that was to be kept of it could be written.
  void note_what_is_missing() {
    ended_.missing = records_->missing();
    if (ended_.missing.empty() || ended_.exit_status != 0) return;
    ended_.status = "failed";
    ended_.reason = "error";
    ended_.exit_status = static_cast<int>(ExitStatus::failed);
  }

  // Data that was written into has been trained on in part; who goes on would never know.
  void check_data_unchanged() const {
    setup_.source.train->check_unchanged();
    if (setup_.source.test) setup_.source.test->check_unchanged();
  }

  void save() {
    folder_.check_in_place();
    check_data_unchanged();
    write_checkpoint();
  }

  void write_checkpoint() {
    saved_ = true;  // or it cannot be, and a second try would end as the first
    const std::int64_t steps = good_steps_.value_or(step_);
    const std::int64_t cursor = steps / timetable_.steps_per_epoch * setup_.batch.dataset +
                                steps % timetable_.steps_per_epoch * setup_.batch.global;
    records_->flush();
    save_checkpoint(folder_, setup_, *reader_, {steps, cursor, steps_skipped()});
  }

  // Whether the last step failed, after which the module's values are undefined. Otherwise they are those of a whole
  // step.
  bool step_failed() {
    try {
      module_->wait(submitted_);
      return false;
    } catch (...) {  // it is what ended the run, and has been caught there
      return true;
    }
  }

  // What ended the run is told, even where the disk fails too.
  void keep_what_is_trained() {
    if (saved_ || step_ == 0 || step_failed() || folder_.is_removed()) return;
    try {
      check_data_unchanged();
    } catch (const Error& error) {
      emit(Warned{error.diagnostics().front().message});
    }
    try {
      write_checkpoint();
    } catch (const Error& error) {
      emit(Warned{"no checkpoint could be written: " + error.diagnostics().front().message});
    } catch (const std::exception& error) {
      emit(Warned{std::string("no checkpoint could be written: ") + error.what()});
    }
  }

  void fill_totals(std::int64_t steps) {
    ended_.steps_skipped = steps_skipped();
    for (Comparison& comparison : ended_.comparisons) comparison.learned = parameter(comparison.parameter);
    fill_counts(steps);
  }

  // What is known without the module's values.
  void fill_counts(std::int64_t steps) {
    ended_.steps = steps;
    ended_.epochs = steps / timetable_.steps_per_epoch;
    ended_.examples_seen = examples_until(steps);
    ended_.examples_skipped = ended_.epochs * setup_.batch.skipped_per_epoch;
    if (!last_measures_.empty()) ended_.final_measures.emplace_back("train", last_measures_);
    if (!test_measures_.empty()) ended_.final_measures.emplace_back(setup_.source.test_name, test_measures_);
    ended_.run_dir = folder_.present_path().string();
    ended_.seconds = seconds_since(begin_);
  }

  // Whoever catches the error tells it at the terminal; here it goes into the log.
  void fail(int exit_status, const std::string& message) {
    ended_.status = "failed";
    ended_.reason = "error";
    ended_.exit_status = exit_status;
    step_failed() ? fill_counts(step_ - 1) : fill_totals(step_);
    if (folder_.is_removed()) std::erase(consumers_, &*records_);  // nothing can be written, and that is told already
    records_->on(Warned{message, true});
    records_->flush();
    ended_.missing = records_->missing();
    for (const std::string& missing : ended_.missing) emit(Warned{missing});
    emit(ended_);
  }

  const Setup& setup_;
  const SessionOptions options_;
  Timetable timetable_;
  std::int64_t steps_ = 0;  // to run: the duration's, or fewer by max_steps
  RunFolder folder_;
  bool private_copies_ = false;
  bool saved_ = false;  // the run's checkpoint

  std::unique_ptr<Module> module_;
  int workers_ = 1;
  std::optional<SlicedReader> reader_;
  std::optional<Evaluator> evaluator_;
  std::optional<data::Loader> loader_;
  std::optional<Records> records_;
  int slot_ = 0;      // of the batch at hand
  Ticket submitted_;  // the last step
  std::vector<Consumer*> consumers_;
  std::vector<std::string> recorder_warnings_;

  Clock::time_point begin_, logged_at_;
  double epoch_began_ = 0;
  std::int64_t logged_examples_ = 0;
  std::int64_t step_ = 0;
  std::int64_t logged_step_ = 0, evaluated_at_ = -1, verified_at_ = -1;
  std::optional<std::int64_t> good_steps_;
  std::string guard_;  // why a guard stopped the run
  Measures last_measures_, test_measures_;
  Ended ended_;
};

Session::Session(const Setup& setup, SessionOptions options)
    : impl_(std::make_unique<Impl>(setup, std::move(options))) {}
Session::~Session() = default;

Ended Session::run(std::span<Consumer* const> consumers) { return impl_->run(consumers); }

Ended train(const Setup& setup, const SessionOptions& options, std::span<Consumer* const> consumers) {
  return Session(setup, options).run(consumers);
}

Evaluation evaluate_checkpoint(const Setup& setup, const std::filesystem::path& run_dir, const std::string& checkpoint,
                               const std::string& split) {
  const bool on_train = split == "train";
  const std::shared_ptr<const data::Dataset> dataset = on_train ? setup.source.train : setup.source.test;
  if ((!on_train && split != setup.source.test_name) || !dataset) {
    throw Error(ExitStatus::usage, Diagnostic{"usage",
                                              {},
                                              "the data has no split '" + split + "'",
                                              setup.source.test ? "there are train and " + setup.source.test_name
                                                                : "there is train: add --split train",
                                              {}});
  }
  const std::filesystem::path folder = find_checkpoint(run_dir, checkpoint);
  const CheckpointParameters parameters = load_parameters(folder);
  const data::BatchPlan batch = data::plan_evaluation(dataset->size(), setup.batch.rows_at_once(), setup.batch.devices);
  const std::unique_ptr<Backend> backend = backend_of(setup.spec().mesh);
  const Source source{{{"evaluate", std::make_shared<const Program>(evaluation_program(setup, batch)),
                        data::batches_in_memory(data::Sampler::in_order(batch.dataset), batch)}}};
  check_memory(estimate_evaluation(backend->needs(source)), setup);
  const std::unique_ptr<Module> module = backend->load(source);
  write_group(*module, 0, Group::params, parameters.tensors, parameters.path);
  Evaluation result = *Evaluator(*module, 0, dataset, batch, setup.model, split).run();
  parameters.file.check_intact();
  return result;
}

}  // namespace pmaptrain::train
