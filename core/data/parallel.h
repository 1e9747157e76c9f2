// Work on many items by several threads.
#pragma once

#include <cstdint>
#include <functional>

namespace pmaptrain::data {

// Calls work(i) for each i from 0 to count - 1, by this thread and others, in no fixed order. If calls throw, rethrows
// the exception of the smallest such i, so that an error does not depend on the threads; items after it may be left
// out.
void for_each_item(std::int64_t count, const std::function<void(std::int64_t)>& work);

}  // namespace pmaptrain::data
