// What the GPUs of several processes need from each other before their first collective. The processes exchange it as
// messages; each calls these functions at the same places.
#pragma once

#include <functional>

#include "core/runtime/gpu/plans.h"
#include "core/runtime/rendezvous.h"
#include "core/runtime/transport.h"

namespace pmaptrain::gpu {

// Calls `f` in each process. If it throws in any, this throws in all: there the same exception, and elsewhere Error
// with the message of the first process that has failed.
void run_in_all(const Processes& processes, const std::function<void()>& f);

// Throws Error (resource) in all processes unless all have the same number of GPUs.
void check_equal_gpus(const Processes& processes, int gpus);

// The collectives of the plans of a GPU, in order. Ranks are the GPUs of all processes.
std::vector<Rendezvous> collectives_of(const std::vector<Plan>& plans);

// The identities of all communicators of the plans whose ranks are in several processes. The process of a
// communicator's first rank creates its identity.
CommunicatorIds exchange_communicator_ids(const Plans& plans, Platform& platform, Processes processes);

}  // namespace pmaptrain::gpu
