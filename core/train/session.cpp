#include "core/train/session.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/machine.h"
#include "core/data/open.h"
#include "core/train/checkpoint_writer.h"
#include "core/train/comparisons.h"
#include "core/train/decisions.h"
#include "core/train/evaluator.h"
#include "core/train/guards.h"
#include "core/train/loss_watch.h"
#include "core/train/record_lines.h"
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
        folder_(RunFolder::claim(options_.run_dir, options_.folder)),
        decisions_(setup.spec()) {
    private_copies_ = options_.verify_replicas || timetable_.verify_every > 0;
    if (private_copies_ && timetable_.verify_every == 0) timetable_.verify_every = timetable_.log_every;
    steps_ = options_.max_steps ? std::min(*options_.max_steps, timetable_.steps) : timetable_.steps;
    if (const auto& most = options_.max_time ? options_.max_time : setup.spec().train.max_time) {
      deadline_ = Clock::now() + duration_of(spec::seconds_of(*most) - seconds_since_process_began());
    }
    check_newest();
    prepare();
  }

  Ended run(std::span<Consumer* const> consumers) {
    if (signalled()) return stopped_before_the_first_step();
    folder_.begin(setup_.loaded.resolved);
    report_->begin(consumers, folder_, options_.run_dir.string(), steps_, workers_, resumed());
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
    loss_watch_.emplace(setup_, *module_);
    writer_.emplace(setup_, folder_, *reader_);
    set_initial_values(*module_, setup_, options_.resume != nullptr ? &options_.resume->checkpoint : nullptr);
    for (std::size_t i = 0; i < setup_.evaluations.size(); ++i) {
      evaluators_.push_back(
          std::make_unique<Evaluator>(*module_, evaluate_entry + i, setup_.evaluations[i], setup_.model));
    }
    ended_.comparisons = initial_comparisons(setup_);
    if (resumed() != nullptr) {
      continue_from(*resumed());
      options_.resume->checkpoint.release();
    }
    loader_.emplace(setup_.source.train, training_samplers(setup_), setup_.batch,
                    batch_slots(*module_, train_entry, *setup_.source.train, setup_.batch),
                    data::LoaderOptions{step_, std::max(step_, steps_)});
    if (step_ < steps_) slot_ = loader_->next().slot;
  }

  // The folder is locked since its checkpoint was looked for.
  void check_newest() const {
    if (options_.resume == nullptr) return;
    const std::vector<std::int64_t> steps = checkpoint_steps(options_.run_dir);
    if (!steps.empty() && steps.back() == options_.resume->newest_step) return;
    fail_resource("another pmaptrain has just written the run folder '" + options_.run_dir.string() + "'",
                  "resume it again");
  }

  const RunState* resumed() const { return options_.resume != nullptr ? &options_.resume->checkpoint.state : nullptr; }

  void continue_from(const RunState& state) {
    step_ = saved_step_ = state.step;
    evaluated_at_ = state.evaluated_step;
    evaluation_is_due_ = state.evaluation_is_due && !evaluators_.empty();
    guards_->continue_from(state.steps_skipped);
    decisions_.restore(state);
    set_learning_rate_scale(*module_, setup_, decisions_.learning_rate_scale());
    loss_watch_->restore(state);
    if (stays_finished(state, setup_.spec().train)) {
      finished_ = state.finished;
      finished_why_ = state.finished_why;
    }
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
    saved_at_ = Clock::now();
    // A batch that never changes is filled once. Its rows do change, but only dropout reads them.
    const bool resident = !loader_->prefetches() && setup_.model.drawing_layers().empty();
    bool has_batch = true;
    stopping_ = is_to_stop();
    if (evaluation_is_due_) evaluate_and_save();
    while (step_ < steps_ && (step_ == 0 || !(stopping_ || finished() || is_to_stop()))) {
      module_->wait(submitted_);  // the batch of the step before is given back
      if (!has_batch && !resident) slot_ = loader_->next().slot;
      has_batch = false;
      submitted_ = module_->submit(train_entry, slot_);
      ++step_;
      report_->progressed(step_);
      after_step();
    }
  }

  // What follows a step, in this order: log, end of the epoch, evaluation and what it decides, checkpoint.
  void after_step() {
    // Asked once, so that the step that turns out to be the last is treated as such throughout.
    stopping_ = is_to_stop();
    const bool last = step_ == steps_ || stopping_;
    const bool epoch_ends = is_due(step_, timetable_.steps_per_epoch);
    evaluation_is_due_ = !evaluators_.empty() && is_due(step_, timetable_.eval_every);
    const bool saves = checkpoint_is_due();
    if (step_ == 1 || is_due(step_, timetable_.log_every)) {
      log();
    } else if (epoch_ends || evaluation_is_due_ || saves || last) {
      // What would be measured and saved after a bad step are the parameters of an earlier one.
      check_finite();
    }
    if (options_.between_steps) options_.between_steps(*module_, step_);
    if (is_due(step_, timetable_.verify_every)) check_replicas();
    if (finished_ == nonfinite || finished_ == replicas) return;
    if (epoch_ends) end_epoch(last || evaluation_is_due_);  // an evaluation may end the run
    if (evaluation_is_due_) {
      if (!evaluate_and_save() && saves) save();
    } else if (saves) {
      save();
    }
    tell_failed_write();
  }

  bool is_due(std::int64_t step, std::int64_t every) const { return every > 0 && step % every == 0; }
  bool checkpoint_is_due() const {
    if (is_due(step_, timetable_.save_every)) return true;
    return timetable_.save_seconds > 0 && seconds_between(saved_at_, coarse_now()) >= timetable_.save_seconds;
  }
  int signal() const { return options_.stop != nullptr ? options_.stop->load() : 0; }
  bool signalled() const { return signal() != 0; }
  bool finished() const { return !finished_.empty(); }
  bool is_to_stop() const { return signalled() || (deadline_ && coarse_now() >= *deadline_); }

  // A guard, or early stopping, has found a reason to end the run whatever its duration.
  void finish_for(const std::string& kind, const std::string& why) {
    finished_ = kind;
    finished_why_ = why;
    report_->emit(Warned{why, kind != early_stopping});
  }

  void log() {
    report_->log(step_);
    guards_->check_count(step_);
    check_finite();
    const std::optional<std::string> spike = finished() ? std::nullopt : loss_watch_->logged(step_);
    if (spike && setup_.spec().train.loss_spike->action == spec::SpikeAction::halt) {
      finish_for("loss_spike", *spike);
    } else if (spike) {
      report_->emit(Warned{*spike});
    }
    folder_.check_in_place();
  }

  void check_finite() {
    if (!finished() && guards_->check_finite()) finish_for(nonfinite, guards_->reason());
  }
  void check_replicas() {
    if (!finished() && guards_->check_replicas(step_)) finish_for(replicas, guards_->reason());
  }

  void end_epoch(bool last) {
    check_data_unchanged();
    loss_watch_->epoch_ends();
    report_->end_epoch(step_, last);
  }

  // One of Setup::evaluations, of parameters that have so many updates behind them. Nothing where a signal left it
  // undone.
  std::optional<Evaluation> evaluate(std::size_t which, std::int64_t updates) {
    set_ema_correction(*module_, setup_, updates);
    if (updates == 0) begin_averages(*module_, setup_, true);
    auto evaluation = evaluators_[which]->run(options_.stop);
    if (updates == 0) begin_averages(*module_, setup_, false);
    if (!evaluation) return std::nullopt;
    if (which == 0) evaluated_at_ = step_;
    report_->evaluated(step_, *evaluation);
    return evaluation;
  }

  // The evaluation that is due after this step, and what it decides. Returns whether the checkpoint was saved for being
  // the best.
  bool evaluate_and_save() {
    const auto evaluation = signalled() ? std::nullopt : evaluate(0, guards_->updates());
    if (!evaluation) {  // it stays due
      stopping_ = true;
      return false;
    }
    evaluation_is_due_ = false;
    const bool best = decisions_.observe(step_, evaluation->measures);
    set_learning_rate_scale(*module_, setup_, decisions_.learning_rate_scale());
    if (decisions_.stops() && !finished()) finish_for(early_stopping, decisions_.why());
    if (best) save();
    return best;
  }

  // ---- checkpoints ----

  RunState state() {
    RunState state;
    state.step = guards_->good_steps().value_or(step_);
    state.steps_skipped = guards_->steps_skipped();
    state.updates = guards_->updates();
    state.example_cursor = state.step / timetable_.steps_per_epoch * setup_.batch.dataset +
                           state.step % timetable_.steps_per_epoch * setup_.batch.global;
    state.schedule_steps = timetable_.schedule_steps;
    state.evaluated_step = evaluated_at_;
    state.evaluation_is_due = evaluation_is_due_ && finished_ != nonfinite;
    state.finished = finished_;
    state.finished_why = finished_why_;
    decisions_.save(state);
    loss_watch_->save(state);
    report_->save(state, state.step == step_ && step_ > 0 && report_->logged_step() != step_);
    return state;
  }

  // Training goes on while the checkpoint is written.
  void save() {
    check_data_unchanged();
    const Clock::time_point begin = Clock::now();
    settle();
    const double waited = seconds_since(begin);
    if (waited > 0.5 && !waited_) {
      waited_ = true;
      report_->emit(Warned{"step " + std::to_string(step_) + " waited " + duration(waited) +
                           " until the checkpoint before was written: the disk is slower than train.checkpoint asks "
                           "for"});
    }
    writer_->save(state());
    saved_step_ = step_;
    saved_at_ = Clock::now();
  }

  // Waits for the write under way, and reports it if it failed.
  void settle() {
    writer_->wait();
    tell_failed_write();
  }

  void tell_failed_write() {
    const auto failure = writer_->take_failure();
    if (!failure) return;
    saved_step_ = -1;
    decisions_.lose_best(failure->step);
    report_->emit(Warned{"a checkpoint could not be written: " + failure->why + "; training goes on"});
  }

  // ---- after the last step ----

  void finish() {
    check_finite();
    if (private_copies_) check_replicas();
    const bool whole = step_ == timetable_.steps;  // a run that is stopped before may still have a good step
    if (!finished() && whole && guards_->check_any_good(step_)) finish_for("skipped", guards_->reason());
    folder_.check_in_place();
    check_data_unchanged();
    settle();
    const RunState last = state();  // before the lines that are written only because the run stops
    report_->last_step(step_);
    report_->last_epoch(step_);
    save_last(last);
    ended_.steps_skipped = guards_->steps_skipped();
    add_learned(ended_.comparisons, *module_);
    if (!finished_by_guard()) evaluate_last();
    if (const std::string skipped = guards_->skipped_steps(); !skipped.empty()) report_->emit(Warned{skipped});
    set_status();
    fill_totals(last.step);
    folder_.check_in_place();
    report_->records().flush();
    note_what_is_missing();
    report_->emit(ended_);
    const int told = ended_.exit_status;
    note_what_is_missing();  // the last lines, or the summary
    if (ended_.exit_status != told) report_->records().write_summary(ended_);
  }

  // The split that is evaluated at intervals, unless it has been after this step, and test beside it, with the best
  // parameters where there is a best checkpoint. A signal ends this.
  void evaluate_last() {
    if (evaluators_.empty() || signalled()) return;
    if (evaluated_at_ != step_ && !evaluate(0, guards_->updates())) return;
    if (evaluators_.size() < 2) {
      if (setup_.evaluations.front().split == "test") ended_.test_parameters = "last";
      return;
    }
    std::int64_t evaluated = guards_->updates();
    std::optional<Checkpoint> best;
    try {
      if (decisions_.best_step()) best = load_checkpoint(folder_.present_path() / "checkpoints/best");
    } catch (const Error& error) {
      report_->emit(Warned{"test is evaluated with the last parameters: " + error.diagnostics().front().message});
    }
    if (best) {
      restore(*module_, setup_, *best);
      evaluated = best->state.updates;
    }
    if (evaluate(1, evaluated)) ended_.test_parameters = best ? "best" : "last";
  }

  bool finished_by_guard() const { return finished() && finished_ != early_stopping; }

  void set_status() {
    const bool early = finished_ == early_stopping;
    const bool stopped = !early && (finished() || signalled() || step_ < timetable_.steps);
    ended_.status = stopped ? "stopped" : "done";
    ended_.reason = finished_by_guard() ? "guard"
                    : signalled()       ? "signal"
                    : early             ? "early_stopping"
                    : !stopped          ? "duration"
                    : step_ < steps_    ? "max_time"
                                        : "max_steps";
    if (finished_by_guard()) ended_.exit_status = static_cast<int>(ExitStatus::guard);
    if (signalled()) ended_.exit_status = 128 + signal();  // the process ends by it, whatever else happened
    ended_.continues = stopped && !finished();
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

  // Unless the one of this step is there, or on its way.
  void save_last(const RunState& state) {
    is_saved_ = true;  // or it cannot be, and a second try would end as the first
    report_->records().flush();
    if (saved_step_ == state.step && !state.evaluation_is_due && state.finished.empty()) {
      // The process that wrote it may have been killed before it removed others.
      folder_.prune_checkpoints(setup_.spec().train.checkpoint.keep);
    } else {
      writer_->save_now(state);
    }
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
    if (is_saved_ || step_ == 0 || step_failed() || folder_.is_removed()) return;
    try {
      check_data_unchanged();
    } catch (const Error& error) {
      report_->emit(Warned{error.diagnostics().front().message});
    }
    try {
      settle();
      save_last(state());
    } catch (const Error& error) {
      report_->emit(Warned{"no checkpoint could be written: " + error.diagnostics().front().message});
    } catch (const std::exception& error) {
      report_->emit(Warned{std::string("no checkpoint could be written: ") + error.what()});
    }
  }

  void fill_totals(std::int64_t steps) {
    RunState selected;
    decisions_.save(selected);
    ended_.best = selected.best;
    report_->add_totals(ended_, steps);
    ended_.run_dir = folder_.present_path().string();
  }

  // Whoever catches the error tells it at the terminal; here it goes into the log.
  void fail(int exit_status, const std::string& message) {
    ended_.status = "failed";
    ended_.reason = "error";
    ended_.exit_status = exit_status;
    const bool failed = step_failed();
    if (!failed) {
      ended_.steps_skipped = guards_->steps_skipped();
      add_learned(ended_.comparisons, *module_);
    }
    fill_totals(failed ? step_ - 1 : step_);
    if (folder_.is_removed()) report_->leave_records();  // nothing can be written, and that is told already
    Records& records = report_->records();
    records.on(Warned{message, true});
    records.flush();
    ended_.missing = records.missing();
    for (const std::string& missing : ended_.missing) report_->emit(Warned{missing});
    report_->emit(ended_);
  }

  static constexpr const char *early_stopping = "early_stopping", *nonfinite = "nonfinite", *replicas = "replicas";

  const Setup& setup_;
  const SessionOptions options_;
  Timetable timetable_;
  std::int64_t steps_ = 0;  // to run: the duration's, or fewer by max_steps
  RunFolder folder_;
  bool private_copies_ = false;

  std::unique_ptr<Module> module_;
  int workers_ = 1;
  std::optional<SlicedReader> reader_;
  std::optional<Guards> guards_;
  std::optional<RunReport> report_;
  std::optional<LossWatch> loss_watch_;
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  // of Setup::evaluations
  std::optional<data::Loader> loader_;
  Decisions decisions_;
  int slot_ = 0;      // of the batch at hand
  Ticket submitted_;  // the last step
  std::int64_t step_ = 0;
  bool stopping_ = false;  // by a signal, or because the time is up
  bool evaluation_is_due_ = false;
  std::int64_t evaluated_at_ = -1;
  std::string finished_, finished_why_;  // RunState::finished

  std::optional<Clock::time_point> deadline_;  // train.max_time

  bool is_saved_ = false;         // the last checkpoint
  std::int64_t saved_step_ = -1;  // of the newest checkpoint
  Clock::time_point saved_at_;
  bool waited_ = false;
  Ended ended_;
  std::optional<CheckpointWriter> writer_;  // last: its thread ends first
};

Session::Session(const Setup& setup, SessionOptions options)
    : impl_(std::make_unique<Impl>(setup, std::move(options))) {}
Session::~Session() = default;

Ended Session::run(std::span<Consumer* const> consumers) { return impl_->run(consumers); }

Ended train(const Setup& setup, const SessionOptions& options, std::span<Consumer* const> consumers) {
  return Session(setup, options).run(consumers);
}

}  // namespace pmaptrain::train
