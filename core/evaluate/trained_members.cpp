#include "core/evaluate/trained_members.h"

#include "core/evaluate/evaluator.h"
#include "core/run/find_checkpoint.h"

namespace pmaptrain::evaluate {

TrainedMembers load_members(const spec::Loaded& loaded, const std::filesystem::path& run_dir,
                            const std::string& checkpoint, spec::Weights weights, run::MemberNumber member,
                            const run::FirstProcess& first) {
  TrainedMembers found;
  found.members = chosen_members(loaded.spec, member);
  found.trained = run::load_weights(run_dir, checkpoint, weights, first);
  const run::RunState& state = found.trained.state;
  check_same_members(loaded.spec, state);
  const bool best = checkpoint == "best" && state.is_ensemble;
  if (best && member) run::check_has_best(state, *member, "--checkpoint last");
  if (best) found.left_out = remove_members_without_best(found.members, state);
  found.is_whole_ensemble = loaded.spec.ensemble && !member;
  const bool each_its_own = best && found.members.size() > 1;
  found.checkpoint = each_its_own ? "best"
                     : best       ? run::best_checkpoint(state, found.members.front())
                                  : run::checkpoint_name(state.step);
  return found;
}

}  // namespace pmaptrain::evaluate
