// See watchdog.h.
#include "watchdog.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "commands.h"
#include "complain.h"

namespace octet::tool {

Watchdog::Watchdog(double seconds) : limit_(seconds), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::step(std::string doing) {
  const std::lock_guard lock(mutex_);
  doing_ = std::move(doing);
  since_ = std::chrono::steady_clock::now();
}

void Watchdog::give_up(const std::string& doing, double seconds) {
  std::fflush(stdout);
  complain("\noctet: {}: not done after {:.3g} s, so it hangs\n", doing, seconds);
  std::_Exit(kCheckFailed);
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!done_) {
    const auto deadline =
        since_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit_);
    if (std::chrono::steady_clock::now() >= deadline) give_up(doing_, limit_.count());
    changed_.wait_until(lock, deadline);
  }
}

}  // namespace octet::tool
