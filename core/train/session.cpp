#include "core/train/session.h"

#include <algorithm>

#include "core/data/open.h"
#include "core/train/checkpoint.h"
#include "core/train/comparisons.h"
#include "core/train/evaluator.h"
#include "core/train/guards.h"
#include "core/train/run_report.h"
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
    report_->begin(consumers, folder_, options_.run_dir.string(), steps_, workers_);
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
    guards_.emplace(setup_, *reader_);
    report_.emplace(setup_, *module_);
    set_initial_values(*module_, setup_);
    if (!setup_.evaluations.empty()) {
      evaluator_.emplace(*module_, evaluate_entry, setup_.evaluations.front(), setup_.model);
    }
    ended_.comparisons = initial_comparisons(setup_, *module_);
    loader_.emplace(setup_.source.train,
                    data::training_sampler(setup_.spec().data, data::seed_of(setup_.spec().data, setup_.spec().seed),
                                           setup_.batch.dataset),
                    setup_.batch, batch_slots(*module_, train_entry, *setup_.source.train, setup_.batch),
                    data::LoaderOptions{0, steps_});
    slot_ = loader_->next().slot;
  }

  Ended stopped_before_the_first_step() const {
    Ended ended;
    ended.status = "stopped";
    ended.reason = "signal";
    ended.exit_status = 128 + signal();
    return ended;
  }

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
      report_->progressed(step_);
      const bool epoch_ends = is_due(step_, timetable_.steps_per_epoch);
      const bool evaluates = evaluator_ && is_due(step_, timetable_.eval_every);
      // Asked once a step, so that the step that turns out to be the last is logged as such. What would be measured
      // after a bad step are the parameters of an earlier one.
      last = step_ == steps_ || signalled() || ((epoch_ends || evaluates) && !guards_->finite());
      if (step_ == 1 || last || is_due(step_, timetable_.log_every)) log();
      if (options_.between_steps) options_.between_steps(*module_, step_);
      if (is_due(step_, timetable_.verify_every)) tell_if(guards_->check_replicas(step_));
      if (guards_->stop() && report_->logged_step() != step_) log();
      if (epoch_ends) end_epoch(last || guards_->stop());
      if (evaluates && !last) evaluate();  // after the last step it waits for the checkpoint
      last = last || guards_->stop() || signalled();
    }
    if (step_ > 0 && report_->logged_step() != step_) log();  // a signal came while it was thought not to be the last
  }

  bool is_due(std::int64_t step, std::int64_t every) const { return every > 0 && step % every == 0; }
  int signal() const { return options_.stop != nullptr ? options_.stop->load() : 0; }
  bool signalled() const { return signal() != 0; }

  void tell_if(bool guard_stops) {
    if (guard_stops) report_->emit(Warned{guards_->reason(), true});
  }

  void log() {
    report_->log(step_);
    guards_->check_count(step_);
    tell_if(guards_->check_finite());
    folder_.check_in_place();
  }

  void end_epoch(bool last) {
    check_data_unchanged();
    report_->end_epoch(step_, last);
  }

  void evaluate() {
    if (!evaluator_ || evaluated_at_ == step_ || guards_->stop()) return;
    const auto evaluation = evaluator_->run(options_.stop);
    if (!evaluation) return;  // a signal came
    evaluated_at_ = step_;
    report_->evaluated(step_, *evaluation);
  }

  // ---- after the last step ----

  void finish() {
    if (private_copies_) tell_if(guards_->check_replicas(step_));
    if (step_ > 0 && !is_due(step_, timetable_.steps_per_epoch)) end_epoch(true);
    tell_if(guards_->check_any_good(step_));
    folder_.check_in_place();
    check_data_unchanged();
    write_checkpoint();
    if (!signalled()) evaluate();  // after the checkpoint, since it may take long and be cut short
    if (const std::string skipped = guards_->skipped_steps(); !skipped.empty()) report_->emit(Warned{skipped});
    set_status();
    fill_totals(guards_->good_steps().value_or(step_), true);
    folder_.check_in_place();
    report_->records().flush();
    note_what_is_missing();
    report_->emit(ended_);
    const int told = ended_.exit_status;
    note_what_is_missing();  // the last lines, or the summary
    if (ended_.exit_status != told) report_->records().write_summary(ended_);
  }

  void set_status() {
    const bool stopped = guards_->stop() || signalled() || step_ < timetable_.steps;
    ended_.status = stopped ? "stopped" : "done";
    ended_.reason = guards_->stop() ? "guard" : signalled() ? "signal" : stopped ? "max_steps" : "duration";
    if (guards_->stop()) ended_.exit_status = static_cast<int>(ExitStatus::guard);
    if (signalled()) ended_.exit_status = 128 + signal();  // the process ends by it, whatever else happened
  }

  // Training is done, but not all that was to be kept of it could be written.
  void note_what_is_missing() {
    ended_.missing = report_->records().missing();
    if (ended_.missing.empty() || ended_.exit_status != 0) return;
    ended_.status = "failed";
    ended_.reason = "error";
    ended_.exit_status = static_cast<int>(ExitStatus::failed);
  }

  // Data that was written into has been trained on in part, which a run that goes on would not notice.
  void check_data_unchanged() const {
    for (const data::Split split : data::all_splits) {
      if (setup_.source.of(split)) setup_.source.of(split)->check_unchanged();
    }
  }

  void write_checkpoint() {
    saved_ = true;  // or it cannot be, and a second try would end as the first
    const std::int64_t steps = guards_->good_steps().value_or(step_);
    const std::int64_t cursor = steps / timetable_.steps_per_epoch * setup_.batch.dataset +
                                steps % timetable_.steps_per_epoch * setup_.batch.global;
    report_->records().flush();
    save_checkpoint(folder_, setup_, *reader_, {steps, cursor, guards_->steps_skipped()});
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
      report_->emit(Warned{error.diagnostics().front().message});
    }
    try {
      write_checkpoint();
    } catch (const Error& error) {
      report_->emit(Warned{"no checkpoint could be written: " + error.diagnostics().front().message});
    } catch (const std::exception& error) {
      report_->emit(Warned{std::string("no checkpoint could be written: ") + error.what()});
    }
  }

  // `whole`: the module's values are those of a whole step.
  void fill_totals(std::int64_t steps, bool whole) {
    if (whole) {
      ended_.steps_skipped = guards_->steps_skipped();
      add_learned(ended_.comparisons, *module_);
    }
    report_->add_totals(ended_, steps);
    ended_.run_dir = folder_.present_path().string();
  }

  // Whoever catches the error tells it at the terminal; here it goes into the log.
  void fail(int exit_status, const std::string& message) {
    ended_.status = "failed";
    ended_.reason = "error";
    ended_.exit_status = exit_status;
    const bool failed = step_failed();
    fill_totals(failed ? step_ - 1 : step_, !failed);
    if (folder_.is_removed()) report_->leave_records();  // nothing can be written, and that is told already
    Records& records = report_->records();
    records.on(Warned{message, true});
    records.flush();
    ended_.missing = records.missing();
    for (const std::string& missing : ended_.missing) report_->emit(Warned{missing});
    report_->emit(ended_);
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
  std::optional<Guards> guards_;
  std::optional<RunReport> report_;
  std::optional<Evaluator> evaluator_;
  std::optional<data::Loader> loader_;
  int slot_ = 0;      // of the batch at hand
  Ticket submitted_;  // the last step
  std::int64_t step_ = 0;
  std::int64_t evaluated_at_ = -1;
  Ended ended_;
};

Session::Session(const Setup& setup, SessionOptions options)
    : impl_(std::make_unique<Impl>(setup, std::move(options))) {}
Session::~Session() = default;

Ended Session::run(std::span<Consumer* const> consumers) { return impl_->run(consumers); }

Ended train(const Setup& setup, const SessionOptions& options, std::span<Consumer* const> consumers) {
  return Session(setup, options).run(consumers);
}

}  // namespace pmaptrain::train
