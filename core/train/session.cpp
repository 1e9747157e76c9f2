#include "core/train/session.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/machine.h"
#include "core/data/tokenizer.h"
#include "core/input/open.h"
#include "core/setup/initialize.h"
#include "core/setup/processes.h"
#include "core/setup/resident.h"
#include "core/setup/start.h"
#include "core/setup/values.h"
#include "core/train/checkpoint_writer.h"
#include "core/train/checks.h"
#include "core/train/comparisons.h"
#include "core/train/evaluations.h"
#include "core/train/live_measures.h"
#include "core/train/members.h"
#include "core/train/pacing.h"
#include "core/train/resources.h"
#include "core/train/run_report.h"
#include "core/train/saving.h"
#include "core/train/worth.h"
#include "core/train/write_checkpoint.h"

namespace pmaptrain::train {

class Session::Impl {
 public:
  Impl(const setup::Setup& setup, SessionOptions options)
      : setup_(setup),
        options_(std::move(options)),
        agreement_(options_.agreement != nullptr ? *options_.agreement : alone_),
        folder_(run::RunFolder::claim(options_.run_dir, options_.folder)),
        private_copies_(options_.verify_replicas || setup.timetable.verify_every > 0),
        timetable_(timetable()),
        steps_(options_.max_steps ? std::min(*options_.max_steps, timetable_.steps) : timetable_.steps),
        step_(resumed() != nullptr ? resumed()->step : 0),
        deadline_(deadline()),
        module_(loaded_module()),
        reader_(*module_),
        members_(setup, reader_),
        report_(setup, *module_),
        checks_(setup, members_, report_, agreement_, private_copies_),
        tracer_(options_.trace, setup.spec(), *module_, step_, steps_),
        writer_(setup, folder_, reader_, tracer_.checkpoints()),
        saving_(timetable_, writer_, members_, report_, agreement_),
        evaluations_(setup, *module_, members_, report_, agreement_, [this] { return is_signalled(); }),
        loader_(setup.loader_dataset(), setup::training_streams(setup, *module_), setup.batch,
                setup::batch_slots(*module_, setup::train_entry, *setup.loader_dataset(), setup.batch),
                input::LoaderOptions{step_, std::max(step_, steps_), batches_in_use(*module_), tracer_.loader()},
                setup::shorter_batches(*module_, setup)),
        pacing_(*module_, loader_, tracer_, !setup.model.drawing_layers().empty(), setup::training_entries(setup)) {
    if (setup.initial_file) setup.initial_file->release();
    if (resumed() != nullptr) {
      await_reads();
      continue_from(*resumed());
      options_.resume->checkpoint.release();
    }
    if (step_ < steps_) pacing_.take_first_batch();
    ask();  // all processes have got this far
  }

  run::Ended run(std::span<run::Consumer* const> consumers) {
    if (is_signalled()) return stopped_before_the_first_step();
    live_measures_.emplace(setup_.model, setup_.roles, *module_, consumers);
    folder_.begin(setup_.loaded.resolved + spec::print_changes(setup_.loaded.changes),
                  data::text_of(setup_.source.tokenizer.get()));
    report_.begin(consumers, folder_, options_.run_dir.string(), steps_, workers_, options_.notes, resumed());
    try {
      ask();
      loop();
      finish();
      if (!is_alone()) ask();  // GPUs of other processes may still read from those of this one
    } catch (const std::exception& error) {
      keep_what_is_trained();
      fail(error);
      throw;
    }
    return ended_;
  }
  const std::optional<TraceSummary>& trace_summary() const { return tracer_.summary(); }

 private:
  // ---- before the first step ----

  step::Timetable timetable() const {
    step::Timetable all = setup_.timetable;
    if (private_copies_ && all.verify_every == 0) all.verify_every = all.log_every;
    return all;
  }

  std::optional<Clock::time_point> deadline() const {
    const auto& most = options_.max_time ? options_.max_time : setup_.spec().train.max_time;
    if (!most) return std::nullopt;
    return Clock::now() + duration_of(spec::seconds_of(*most) - seconds_since_process_began());
  }

  // The programs, planned and loaded, with their values and the splits that stay on the devices.
  std::unique_ptr<Module> loaded_module() {
    if (options_.resume != nullptr && folder_.writes()) check_newest(*options_.resume, options_.run_dir);
    const Processes& processes = agreement_.processes();
    if (!is_alone()) {
      setup::prepare_processes(agreement_, setup_,
                               std::to_string(options_.max_steps.value_or(0)) + (options_.trace ? " traced" : "") +
                                   (resumed() != nullptr ? " from step " + std::to_string(step_) : ""));
    }
    const setup::PlannedSource run = setup::plan_run(setup_, private_copies_, options_.kernels, processes);
    workers_ = setup::workers_text(run, processes);
    check_memory(estimate_memory(setup_, run.planned->needs()), setup_, *run.backend, run.planned->source(), processes);
    if (!is_alone()) agree(false);  // processes load together
    std::unique_ptr<Module> module = std::move(*run.planned).load();
    base_ =
        setup::set_initial_values(*module, setup_, options_.resume != nullptr ? &options_.resume->checkpoint : nullptr);
    setup::copy_resident_splits(*module, setup_, options_.working);
    return module;
  }

  // Tells the other processes what this one does.
  void tell(Transport::Phase phase) const {
    if (!is_alone()) agreement_.processes().transport->tell(phase, step_ + 1);
  }

  const run::RunState* resumed() const {
    return options_.resume != nullptr ? &options_.resume->checkpoint.state : nullptr;
  }

  void continue_from(const run::RunState& state) {
    if (!state.evaluation_is_due) saving_.continue_from(step_);  // else the checkpoint is to be written again
    evaluation_is_due_ = state.evaluation_is_due && !evaluations_.empty();
    members_.continue_from(state, setup_.spec().train);
    for (const MemberRun& member : members_) {
      setup::set_learning_rate_scale(*module_, setup_, member.decisions.learning_rate_scale(), member.number);
    }
  }

  run::Ended stopped_before_the_first_step() const {
    run::Ended ended;
    ended.status = "stopped";
    ended.reason = "signal";
    ended.exit_status = 128 + static_cast<int>(agreed_.signal);
    return ended;
  }

  // ---- the loop ----

  // The first batch has been read. A new run takes at least one step, even if a signal has arrived, so from here on the
  // run ends with a checkpoint.
  void loop() {
    saving_.begin();
    stopping_ = is_to_stop();
    if (evaluation_is_due_) evaluate_and_save();
    while (step_ < steps_ && (step_ == 0 || !(stopping_ || members_.all_finished()))) {
      // A process that cannot read its next batch must tell the others before these begin a step.
      tell(Transport::Phase::reading);
      if (!is_alone()) pacing_.take_next_batch();
      tell(Transport::Phase::computing);
      if (is_to_stop() && step_ > 0) break;
      if (members_.has_finished()) report_.report_left_behind(step_, members_.drop_finished());
      const std::int64_t most = options_.between_steps ? 1 : steps_to_next_event(timetable_, step_, steps_);
      step_ += pacing_.submit(step_, most, members_.submitted());
      tell(Transport::Phase::recording);
      report_.read_outputs_of(pacing_.newest_entry());
      report_.report_progress(step_, live_measures_->submitted(pacing_.newest_entry(), members_.active()));
      after_step();
      if (tracer_.is_due(step_) && !writer_.is_writing()) tracer_.write(report_);
    }
  }

  // The work after a step, in this order: log, end of the epoch, evaluation and its decisions, checkpoint.
  void after_step() {
    // Read once: a signal may arrive at any time, and all of this function must agree on whether the step is the last.
    stopping_ = is_to_stop();
    const bool last = step_ == steps_ || stopping_;
    const bool logs = step_ == 1 || is_due(step_, timetable_.log_every);
    evaluation_is_due_ = !evaluations_.empty() && is_due(step_, timetable_.eval_every);
    const bool saves = saving_.is_due_at(step_) || agreed_.save_is_due;
    const bool epoch_ends = is_due(step_, timetable_.steps_per_epoch) &&
                            (ends_each_epoch(timetable_) || logs || evaluation_is_due_ || saves || last);
    if (logs) {
      log();
    } else if (epoch_ends || evaluation_is_due_ || saves || last) {
      // If a step was not finite, the guard has kept the parameters from before it. This must be known before
      // parameters are evaluated or saved as those of `step_`. log() checks it too.
      check_finite();
      checks_.emit_told();
    }
    if (options_.between_steps) options_.between_steps(*module_, step_);
    if (is_due(step_, timetable_.verify_every)) checks_.replicas(step_);
    if ((epoch_ends || evaluation_is_due_ || saves) && members_.sound().empty()) return;
    if (epoch_ends) end_epoch();
    if (evaluation_is_due_) {
      if (!evaluate_and_save() && saves) save();
    } else if (saves) {
      save();
    }
    saving_.report_failed_write();
  }

  bool is_due(std::int64_t step, std::int64_t every) const { return every > 0 && step % every == 0; }
  bool is_alone() const { return agreement_.processes().placement.processes == 1; }

  // Before all processes read values of members together (Module::read). One that has failed answers this, and takes no
  // part in the reads that follow.
  void await_reads() {
    if (!module_->member_share().is_whole()) agreement_.any(false);
  }

  // All processes ask at the same places, and get the same answers. Throws FailedElsewhere.
  void ask() { agree(saving_.is_due_by_clock()); }
  void agree(bool save_is_due) {
    const int signal = options_.stop != nullptr ? options_.stop->load() : 0;
    agreed_ = agreement_.agree({signal, deadline_ && coarse_now() >= *deadline_, save_is_due});
  }
  bool is_signalled() {
    ask();
    return agreed_.signal != 0;
  }
  bool is_to_stop() {
    ask();
    return agreed_.signal != 0 || agreed_.time_is_over;
  }

  void log() {
    const auto span = tracer_.span(step_, "log");
    check_finite();
    report_.log(step_, members_.active());
    checks_.loss_spikes(step_);
    checks_.emit_told();
    folder_.check_in_place();
  }

  void check_finite() {
    checks_.nonfinite(step_, pacing_.newest_entry(), [this](std::int64_t step, std::span<const std::int64_t> members) {
      return pacing_.repeat(step, members, step_, std::max(step_, steps_),
                            [this](bool own) { return agreement_.any(own); });
    });
  }

  void end_epoch() {
    const auto span = tracer_.span(step_, "end of the epoch");
    check_data_unchanged();
    await_reads();
    const std::vector<std::int64_t> sound = members_.sound();
    const std::vector<EpochLoss> losses = members_.epoch_losses(sound);
    for (std::size_t i = 0; i < sound.size(); ++i) members_[sound[i]].loss_watch.epoch_ends(losses[i]);
    report_.end_epoch(step_, sound);
  }

  // Runs the evaluation that is due after this step, and acts on its decisions. Returns whether a checkpoint was saved
  // because it is the best of a member.
  bool evaluate_and_save() {
    const auto span = tracer_.span(step_, "evaluation");
    await_reads();
    const std::vector<evaluate::Evaluation> evaluations = evaluations_.run(step_);
    if (evaluations.empty()) {  // a signal interrupted it, so it stays due
      stopping_ = true;
      return false;
    }
    evaluation_is_due_ = false;
    // Waits until the previous checkpoint is written. If that fails, the evaluation of that checkpoint is no longer the
    // best one, and the new evaluations must be compared with the right one.
    if (setup_.spec().train.checkpoint.best) saving_.finish_write();
    bool best = false;
    MemberTexts falls, without_value;
    for (const evaluate::Evaluation& evaluation : evaluations) {
      MemberRun& member = members_[evaluation.member];
      Decisions& decisions = member.decisions;
      const double scale = decisions.learning_rate_scale();
      best = decisions.observe(step_, evaluation.measures) || best;
      for (const std::string& text : decisions.no_value_warnings(evaluation.measures, evaluation.split)) {
        without_value.add(member.number, text, false);
      }
      if (decisions.learning_rate_scale() < scale) falls.add(member.number, decisions.rate_decrease_note(step_), false);
      setup::set_learning_rate_scale(*module_, setup_, decisions.learning_rate_scale(), member.number);
      if (decisions.stops_early() && !member.is_finished())
        checks_.finish(member, early_stopping, decisions.stop_reason(), step_);
    }
    const bool is_ensemble = setup_.spec().ensemble.has_value();
    for (run::Warned& warned : without_value.take(is_ensemble)) report_.emit(std::move(warned));
    for (const run::Warned& fall : falls.take(is_ensemble)) report_.emit(run::Noted{fall.text});
    checks_.emit_told();
    if (best) save();
    return best;
  }

  // ---- checkpoints ----

  run::RunState state() {
    run::RunState state;
    state.is_ensemble = setup_.spec().ensemble.has_value();
    members_.store_in(state, step_);
    state.example_cursor = state.step / timetable_.steps_per_epoch * setup_.batch.dataset +
                           state.step % timetable_.steps_per_epoch * setup_.batch.global;
    state.schedule_steps = timetable_.schedule_steps;
    state.encoding = setup_.source.encoding;
    state.base = base_;
    state.evaluation_is_due = evaluation_is_due_ && !members_.sound().empty();
    if (const auto& best = setup_.spec().train.checkpoint.best) state.best_mode = spec::to_string(mode_of(*best));
    report_.save(state, step_);
    return state;
  }

  void save() {
    const auto span = tracer_.span(step_, "checkpoint");
    check_data_unchanged();
    saving_.save(step_, [this] { return state(); });
  }

  // ---- after the last step ----

  void finish() {
    tell(Transport::Phase::recording);  // process 0 may take its time to save and to load checkpoints
    await_reads();
    check_finite();
    checks_.emit_told();
    if (private_copies_) checks_.replicas(step_);
    if (step_ == timetable_.steps)
      checks_.all_skipped(step_);  // after a resume, a run that stops earlier may still have a good step
    folder_.check_in_place();
    check_data_unchanged();
    saving_.finish_write();
    tracer_.write(report_);
    await_reads();
    const run::RunState last = state();  // before the lines that are written only because the run stops
    report_.report_last_lines(step_, members_.active());
    saving_.save_last(last);
    // A process 0 that could not save answers this, and not the reads that follow.
    if (reader_.is_divided()) agreement_.any(false);
    add_results();
    selected_ = evaluations_.run_last(step_, folder_);
    await_reads();
    checks_.tell_skipped();
    set_status();
    fill_totals(last.step);
    const auto stuck = [&](std::int64_t member) { return report_.stuck_loss(member); };
    for (const run::Warned& told : useless_result_warnings(setup_.model, setup_.source, timetable_.steps_per_epoch,
                                                           ended_, stuck, setup_.spec().train)) {
      report_.emit(told);
    }
    folder_.check_in_place();
    report_.records().flush();
    note_what_is_missing();
    report_.emit(ended_);
    const int told = ended_.exit_status;
    note_what_is_missing();  // the last lines, or the summary, may have failed
    if (ended_.exit_status != told) report_.records().write_summary(ended_);
  }

  void set_status() {
    const bool signalled = is_signalled();
    const bool guard = members_.all_stopped_by_guards();
    const bool early = members_.all_finished() && !guard;
    const bool stopped = guard || signalled || (!early && step_ < timetable_.steps);
    ended_.status = stopped ? "stopped" : "done";
    // The reason that ended the training stays, even if a signal then interrupts the last evaluation.
    ended_.reason = guard            ? "guard"
                    : early          ? "early_stopping"
                    : signalled      ? "signal"
                    : !stopped       ? "duration"
                    : step_ < steps_ ? "max_time"
                                     : "max_steps";
    if (signalled) ended_.exit_status = 128 + static_cast<int>(agreed_.signal);
    if (guard) ended_.exit_status = static_cast<int>(ExitStatus::guard);
    ended_.continues = stopped && (!guard || evaluation_is_due_);
  }

  // If training is complete but a file of the run could not be written, the run fails.
  void note_what_is_missing() {
    ended_.missing = report_.records().missing();
    if (!tracer_.problem().empty()) ended_.missing.push_back(tracer_.problem());
    for (const run::Warned& lost : members_.lost_best(setup_.spec().ensemble.has_value()))
      ended_.missing.push_back(lost.text);
    if (ended_.missing.empty() || ended_.exit_status != 0) return;
    ended_.status = "failed";
    ended_.reason = "error";
    ended_.exit_status = static_cast<int>(ExitStatus::failed);
  }

  // If data files were modified, a part of the training used the new contents. A resumed run would not notice.
  void check_data_unchanged() const {
    for (const data::Split split : data::all_splits) {
      if (setup_.source.of(split)) setup_.source.of(split)->check_unchanged();
    }
  }

  static std::string message_of(const std::exception& error) {
    const auto* const known = dynamic_cast<const Error*>(&error);
    return known != nullptr ? known->diagnostics().front().message : error.what();
  }

  // Reports the error that ended the run, even if saving fails too.
  void keep_what_is_trained() {
    if (saving_.has_saved_last() || step_ == 0 || pacing_.wait_and_count_failed() > 0 || folder_.is_removed()) return;
    if (reader_.is_divided()) {
      return report_.emit(run::Warned{
          std::string("no checkpoint could be written: other processes have ") +
          (reader_.is_sharded() ? "shards of the parameters or of the optimizer's state" : "other members") +
          ", and one that fails is alone"});
    }
    try {
      check_data_unchanged();
    } catch (const Error& error) {
      report_.emit(run::Warned{message_of(error)});
    }
    try {
      saving_.finish_write();
      saving_.save_last(state());
    } catch (const std::exception& error) {
      report_.emit(run::Warned{"no checkpoint could be written: " + message_of(error)});
    }
  }

  // Adds to each member's report its number of skipped steps, and the final values of the parameters that are compared
  // with known true values.
  void add_results() {
    // What other processes have is read by all processes together, and one that fails is alone.
    const bool is_alone = ended_.status == "failed";
    if (is_alone && !module_->member_share().is_whole()) return;
    const std::vector<GuardState> guards = members_.guard_states(members_.all());
    for (MemberRun& member : members_) {
      member.steps_skipped = member.guards.steps_skipped(guards[static_cast<std::size_t>(member.number)]);
      if (!is_alone || !reader_.is_divided()) add_current_values(member.comparisons, *module_, member.number);
    }
  }

  void fill_totals(std::int64_t steps) {
    ended_.is_ensemble = setup_.spec().ensemble.has_value();
    for (const MemberRun& member : members_) {
      run::MemberEnded& ended = ended_.members.emplace_back(member.ended(steps));
      if (const auto number = static_cast<std::size_t>(member.number); number < selected_.size())
        ended.selected = std::move(selected_[number]);
      else if (ended.best)  // the run failed before its last evaluations
        ended.selected = run::Selected{"best", ended.best->step, {}};
    }
    report_.add_totals(ended_, steps);
    ended_.run_dir = folder_.present_path().string();
    ended_.name = setup_.spec().name;
    ended_.config_hash = config_hash(setup_);
    ended_.parameters = setup_.model.parameter_count();
  }

  // The caller reports the error at the terminal; this writes it to the log.
  void fail(const std::exception& error) {
    const auto* const known = dynamic_cast<const Error*>(&error);
    ended_.status = "failed";
    ended_.reason = "error";
    ended_.exit_status = static_cast<int>(known != nullptr ? known->status() : ExitStatus::failed);
    const std::int64_t failed = pacing_.wait_and_count_failed();
    if (failed == 0) {
      add_results();
      if (module_->member_share().is_whole()) report_.note_epoch(step_, members_.active());
    }
    fill_totals(step_ - failed);
    if (folder_.is_removed()) report_.detach_records();  // nothing can be written, and this was already reported
    run::Records& records = report_.records();
    records.on(run::Warned{message_of(error), true});
    records.flush();
    ended_.missing = records.missing();
    for (const std::string& missing : ended_.missing) report_.emit(run::Warned{missing});
    report_.emit(ended_);
  }

  // In the order in which one is made of others.
  const setup::Setup& setup_;
  const SessionOptions options_;
  Agreement alone_;
  Agreement& agreement_;
  Agreement::Word agreed_;  // the last answer
  run::RunFolder folder_;
  const bool private_copies_;
  const step::Timetable timetable_;
  const std::int64_t steps_;  // number of steps to run: from the duration, or fewer because of max_steps
  std::int64_t step_;
  const std::optional<Clock::time_point> deadline_;  // train.max_time
  std::string workers_;
  std::string base_;  // RunState::base; loaded_module() sets it
  const std::unique_ptr<Module> module_;
  setup::SlicedReader reader_;
  Members members_;
  RunReport report_;
  Checks checks_;
  Tracer tracer_;
  CheckpointWriter writer_;  // its thread uses what is above
  Saving saving_;
  Evaluations evaluations_;
  input::Loader loader_;
  Pacing pacing_;

  std::optional<LiveMeasures> live_measures_;  // of run(), which knows its consumers
  bool stopping_ = false;                      // because of a signal, or because train.max_time is over
  bool evaluation_is_due_ = false;
  run::Ended ended_;
  std::vector<std::optional<run::Selected>> selected_;  // by member; empty before the last evaluations
};

Session::Session(const setup::Setup& setup, SessionOptions options)
    : impl_(std::make_unique<Impl>(setup, std::move(options))) {}
Session::~Session() = default;

run::Ended Session::run(std::span<run::Consumer* const> consumers) { return impl_->run(consumers); }

const std::optional<TraceSummary>& Session::trace_summary() const { return impl_->trace_summary(); }

run::Ended train(const setup::Setup& setup, const SessionOptions& options, std::span<run::Consumer* const> consumers) {
  return Session(setup, options).run(consumers);
}

}  // namespace pmaptrain::train
