// See interrupts.h.
#include "interrupts.h"

#include <pthread.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction and sigwait are POSIX
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "commands.h"

namespace octet::tool {
namespace {

// Never destroyed: the waiting thread may outlive main().
struct Ends {
  std::mutex mutex;
  std::set<std::string> names;
};

Ends& ends() {
  static auto* const kEnds = new Ends;
  return *kEnds;
}

std::atomic<bool> waiting{false};
std::atomic<bool> file_was_cut{false};

// By which the handler of SIGBUS, where nothing can be done, wakes the waiting thread.
constexpr int kWake = SIGUSR2;

void wait_for_end(const sigset_t& signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  remove_unfinished();
  if (file_was_cut) ::_exit(kBadInput);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  raise(signal);
}

// NOTE: neither here nor below std::call_once(): an exception out of it would pass through the C
// library's pthread_once(), which this program's own unwinder cannot, and end the process.
void start_waiting() {
  static bool started = false;
  const std::lock_guard lock(ends().mutex);
  if (std::exchange(started, true)) return;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, kWake);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // What the caller has us ignore, as nohup does, stays ignored.
    struct sigaction present {};
    sigaction(signal, nullptr, &present);
    if (present.sa_handler == SIG_DFL) sigaddset(&signals, signal);
  }
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  // A file-size limit is an error of write(), with a sentence.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, nullptr);
  try {
    std::thread([signals] { wait_for_end(signals); }).detach();
    waiting = true;
  } catch (const std::exception&) {
    // No thread to be had. Signals do what they usually do, and leave temporary names behind.
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
}

struct Mapping {
  std::atomic<const std::byte*> data{nullptr};
  std::atomic<const std::byte*> end{nullptr};
  std::atomic<const char*> path{nullptr};
};
// A model has hundreds of files at most; one more than fits is named as "an input file".
std::array<Mapping, 1024> mappings;

void say(const char* text) {
  // Nothing can be done about a message that cannot be written.
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void on_bus_error(int, siginfo_t* info, void*) {
  if (file_was_cut.exchange(true)) {
    for (;;) ::pause();
  }
  const auto* at = static_cast<const std::byte*>(info->si_addr);
  const char* path = "an input file";
  for (const Mapping& mapping : mappings) {
    const std::byte* data = mapping.data;
    if (data != nullptr && at >= data && at < mapping.end) path = mapping.path;
  }
  say("octet: ");
  say(path);
  say(": became shorter, or could not be read from its disk, while it was in use\n");
  if (!waiting) ::_exit(kBadInput);
  ::kill(::getpid(), kWake);
  for (;;) ::pause();
}

}  // namespace

void remove_when_ended(const std::string& path) {
  start_waiting();
  const std::lock_guard lock(ends().mutex);
  ends().names.insert(path);
}

void remove_unfinished() {
  ends().mutex.lock();  // for good: nothing is renamed any more
  for (const std::string& name : ends().names) {
    std::error_code ignored;
    std::filesystem::remove_all(name, ignored);
  }
}

int no_longer_remove(const std::vector<std::string>& paths, const std::function<int()>& change) {
  // Where no thread waits for the signals, they are held up here.
  sigset_t ends_us, before;
  sigemptyset(&ends_us);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends_us, signal);
  pthread_sigmask(SIG_BLOCK, &ends_us, &before);
  int result = 0;
  {
    const std::lock_guard lock(ends().mutex);
    result = change();
    for (const std::string& path : paths) ends().names.erase(path);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

void watch_mapping(const std::byte* data, int64_t size, const char* path) {
  static const int kInstalled = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGBUS, &action, nullptr);
  }();
  static_cast<void>(kInstalled);
  for (Mapping& mapping : mappings) {
    const char* none = nullptr;
    if (!mapping.path.compare_exchange_strong(none, path)) continue;
    mapping.end = data + size;
    mapping.data = data;
    return;
  }
}

void forget_mapping(const std::byte* data) {
  for (Mapping& mapping : mappings) {
    if (mapping.data != data) continue;
    mapping.data = nullptr;
    mapping.path = nullptr;
    return;
  }
}

}  // namespace octet::tool
