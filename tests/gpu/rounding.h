// How far sums in float32 may be apart that are the same but for the order of their terms.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain::test {

// How many roundings follow one another on the longest way from an input to a result: the operations for one element of
// each equation on this way. So a sum of K products has 2K, whatever the order in which they are added.
double longest_chain(const Program& program);

// What such a chain may change by in another order, as a part of the sum of its terms' magnitudes.
//
// Each operation rounds by at most u = 2^-24 of its result. n errors of independent signs grow as sqrt(n): they exceed
// 8 sqrt(n) u with a probability of less than 2n exp(-32) (Higham and Mary, A New Approach to Probabilistic Rounding
// Error Analysis, SIAM J. Sci. Comput. 41(5), 2019). The bound without a probability is n u, which no sum comes near.
// Two orders are twice as far apart as one of them is from the exact sum.
double apart_by_order(double chain);

}  // namespace pmaptrain::test
