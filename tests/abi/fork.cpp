// The library loaded by dlopen(), as language bindings load it, and used on both sides of a fork():
// what a run leaves behind (threads, locks, tables) must not stop the child. Usage: abi_fork
// LIBRARY
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "loaded_library.h"
#include "octet/octet.h"
#include "small_gemm.h"

namespace {

struct Library {
  decltype(&octet_version) version;
  decltype(&octet_status_message) status_message;
  decltype(&octet_gemm_problem_parse) problem_parse;
  decltype(&octet_device_preset) device_preset;
  decltype(&octet_plan_gemm) plan_gemm;
  decltype(&octet_gemm_args_init) args_init;
  decltype(&octet_cpu_options_init) options_init;
  decltype(&octet_cpu_run) cpu_run;
};

using octet_abi::find;

Library load(void* handle) {
  Library x;
  find(handle, "octet_version", x.version);
  find(handle, "octet_status_message", x.status_message);
  find(handle, "octet_gemm_problem_parse", x.problem_parse);
  find(handle, "octet_device_preset", x.device_preset);
  find(handle, "octet_plan_gemm", x.plan_gemm);
  find(handle, "octet_gemm_args_init", x.args_init);
  find(handle, "octet_cpu_options_init", x.options_init);
  find(handle, "octet_cpu_run", x.cpu_run);
  return x;
}

// Threads and all; says on which side of the fork something went wrong.
bool run(const Library& octet, const char* side, float scale) {
  octet_gemm_problem problem;
  octet_device_spec device;
  octet_gemm_plan plan;
  octet_gemm_args args;
  octet_cpu_options options;
  octet_abi::SmallGemm gemm(scale);
  octet.args_init(&args);
  gemm.fill(args);
  octet.options_init(&options);
  options.threads = 4;
  const bool ok = octet.problem_parse(gemm.text(), &problem) == OCTET_OK &&
                  octet.device_preset("cpu", &device) == OCTET_OK &&
                  octet.plan_gemm(&problem, &device, &plan) == OCTET_OK &&
                  octet.cpu_run(&plan, &args, &options, nullptr) == OCTET_OK;
  if (ok && gemm.right()) return true;
  std::printf("FAILED in %s: %s\n", side, ok ? "a wrong product" : octet.status_message());
  std::fflush(stdout);
  return false;
}

bool child_ends_well(const Library& octet) {
  const pid_t child = fork();
  if (child < 0) {
    std::perror("fork");
    return false;
  }
  if (child == 0) {
    alarm(60);  // a lock that nobody holds any more would wait for ever
    _exit(run(octet, "the child", 2) && run(octet, "the child, again", 3) ? 0 : 1);
  }
  const bool parent = run(octet, "the parent", 4);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return false;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::printf("FAILED: the child ended with status %#x\n", static_cast<unsigned>(status));
    return false;
  }
  return parent;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::printf("usage: abi_fork LIBRARY\n");
    return 2;
  }
  void* const handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::printf("FAILED: %s\n", dlerror());
    return 1;
  }
  const Library octet = load(handle);
  // Before the library's first run, and after one.
  bool ok = child_ends_well(octet);
  ok = run(octet, "the parent, before the second fork", 1) && ok;
  ok = child_ends_well(octet) && ok;
  if (dlclose(handle) != 0) {
    std::printf("FAILED: %s\n", dlerror());
    ok = false;
  }
  return ok ? 0 : 1;
}
