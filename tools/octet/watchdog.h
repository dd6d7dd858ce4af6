// Ends the command when a step takes too long: a hang of a device or its driver becomes a message
// and an exit code. Nothing gentler works, for every later call of the driver would hang too.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace octet::tool {

class Watchdog {
 public:
  explicit Watchdog(double seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // The clock starts anew. `doing` is what a hang will be reported as.
  void step(std::string doing);

  // Prints that `doing` hangs and ends the process with the exit code of a failed check.
  [[noreturn]] static void give_up(const std::string& doing, double seconds);

 private:
  void watch();

  const std::chrono::duration<double> limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string doing_ = "starting";
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  bool done_ = false;
  std::thread thread_;
};

}  // namespace octet::tool
