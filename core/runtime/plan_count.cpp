#include "core/runtime/plan_count.h"

#include <atomic>

namespace pmaptrain {
namespace {

std::atomic<std::int64_t> made = 0;

}  // namespace

std::int64_t plans_made() { return made.load(std::memory_order_relaxed); }
void count_plan() { made.fetch_add(1, std::memory_order_relaxed); }

}  // namespace pmaptrain
