#include "bench/limits/team.h"

#include <omp.h>

#include <algorithm>

#include "core/base/clock.h"

namespace pmaptrain::limits {

Team::Team(int size) : barrier_(size) {
  omp_set_num_threads(1);
  for (int worker = 1; worker < size; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
}

Team::~Team() {
  work_ = nullptr;
  barrier_.arrive_and_wait();
  for (std::thread& thread : threads_) thread.join();
}

void Team::serve(int worker) {
  omp_set_num_threads(1);  // a new thread starts with one for each core
  while (true) {
    barrier_.arrive_and_wait();
    if (work_ == nullptr) return;
    (*work_)(worker);
    barrier_.arrive_and_wait();
  }
}

double Team::run(const Work& work) {
  work_ = &work;
  barrier_.arrive_and_wait();
  const Clock::time_point start = Clock::now();
  work(0);
  barrier_.arrive_and_wait();
  return seconds_since(start);
}

Seconds statistics(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  const double median = samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
  return {median, samples.front()};
}

Seconds repeat(double seconds, const std::function<double()>& sample) {
  sample();
  std::vector<double> samples;
  const Clock::time_point start = Clock::now();
  while (samples.size() < 5 || seconds_since(start) < seconds) samples.push_back(sample());
  return statistics(std::move(samples));
}

}  // namespace pmaptrain::limits
