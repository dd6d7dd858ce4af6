// The library loaded by dlopen() before a fork(), as a server loads it before it makes its workers:
// loading makes no CUDA call, so that the child can create a context and multiply on the device,
// and the parent can too, at the same time and afterwards. Usage: gpu_fork_test LIBRARY; exit code
// 77 without a usable device.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "abi/loaded_library.h"
#include "abi/small_gemm.h"
#include "device_memory.h"
#include "octet/octet.h"

namespace {

constexpr int kSkipped = 77;

struct Library {
  decltype(&octet_status_message) status_message;
  decltype(&octet_gemm_problem_parse) problem_parse;
  decltype(&octet_plan_gemm) plan_gemm;
  decltype(&octet_gemm_args_init) args_init;
  decltype(&octet_cuda_context_create) context_create;
  decltype(&octet_cuda_context_device) context_device;
  decltype(&octet_cuda_context_destroy) context_destroy;
  decltype(&octet_cuda_prepare) prepare;
  decltype(&octet_cuda_run) run;
};

using octet_abi::find;

Library load(void* handle) {
  Library x;
  find(handle, "octet_status_message", x.status_message);
  find(handle, "octet_gemm_problem_parse", x.problem_parse);
  find(handle, "octet_plan_gemm", x.plan_gemm);
  find(handle, "octet_gemm_args_init", x.args_init);
  find(handle, "octet_cuda_context_create", x.context_create);
  find(handle, "octet_cuda_context_device", x.context_device);
  find(handle, "octet_cuda_context_destroy", x.context_destroy);
  find(handle, "octet_cuda_prepare", x.prepare);
  find(handle, "octet_cuda_run", x.run);
  return x;
}

// Operands go to the device, one product is computed there, D comes back into `gemm`.
bool multiply(const Library& octet, octet_cuda_context* context, octet_abi::SmallGemm& gemm) {
  using octet::tool::DeviceBuffer;
  const octet::tool::DeviceStream stream(0);
  const auto copy = [&](const auto& array) {
    DeviceBuffer buffer(sizeof array);
    buffer.upload(array, sizeof array, stream);
    return buffer;
  };
  const DeviceBuffer a = copy(gemm.a), b = copy(gemm.b), d = copy(gemm.d);
  const DeviceBuffer sfa = copy(gemm.sfa), sfb = copy(gemm.sfb);
  octet_gemm_problem problem;
  octet_device_spec device;
  octet_gemm_plan plan;
  octet_gemm_args args;
  octet.args_init(&args);
  gemm.fill(args);
  args.a.data = a.data();
  args.b.data = b.data();
  args.d.data = d.data();
  args.sfa.data = static_cast<const float*>(sfa.data());
  args.sfb.data = static_cast<const float*>(sfb.data());
  if (octet.problem_parse(gemm.text(), &problem) != OCTET_OK ||
      octet.context_device(context, &device) != OCTET_OK ||
      octet.plan_gemm(&problem, &device, &plan) != OCTET_OK ||
      octet.prepare(context, &plan, 1) != OCTET_OK ||
      octet.run(context, &plan, &args, stream.get()) != OCTET_OK) {
    std::printf("FAILED: %s\n", octet.status_message());
    return false;
  }
  if (!stream.wait(20)) {
    std::printf("FAILED: %s hangs\n", plan.kernel);
    std::fflush(stdout);
    std::_Exit(1);
  }
  d.download(gemm.d, sizeof gemm.d, stream);
  return true;
}

// The exit code of a process that does this; says on which side of the fork something went wrong.
int run(const Library& octet, const char* side, float scale) {
  octet_cuda_context* context = nullptr;
  if (const octet_code code = octet.context_create(0, &context); code != OCTET_OK) {
    const bool none = code == OCTET_NO_DEVICE || code == OCTET_UNSUPPORTED;
    std::printf("%s: %s: %s\n", none ? "SKIPPED" : "FAILED", side, octet.status_message());
    return none ? kSkipped : 1;
  }
  octet_abi::SmallGemm gemm(scale);
  bool done = false;
  try {
    done = multiply(octet, context, gemm);
  } catch (const std::exception& error) {
    std::printf("FAILED: %s\n", error.what());
  }
  octet.context_destroy(context);
  if (done && gemm.right()) return 0;
  std::printf("FAILED in %s%s\n", side, done ? ": a wrong product" : "");
  return 1;
}

pid_t fork_child(const Library& octet, const char* side, float scale) {
  std::fflush(stdout);  // or the child would print it again
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    const int code = run(octet, side, scale);
    std::fflush(stdout);
    _exit(code);
  }
  return child;
}

int code_of(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
    std::printf("FAILED: the child ended with status %#x\n", static_cast<unsigned>(status));
    return 1;
  }
  return WEXITSTATUS(status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::printf("usage: gpu_fork_test LIBRARY\n");
    return 2;
  }
  void* const handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::printf("FAILED: %s\n", dlerror());
    return 1;
  }
  const Library octet = load(handle);
  alarm(300);
  if (const int code = code_of(fork_child(octet, "the first child", 2)); code != 0) return code;
  // Both at once; the parent has made no CUDA call before this fork.
  const pid_t second = fork_child(octet, "the second child", 3);
  const int parent = run(octet, "the parent", 4);
  const int child = code_of(second);
  const int again = run(octet, "the parent, again", 5);
  if (parent == 0 && child == 0 && again == 0) {
    std::printf("two children and the parent: right products on the device\n");
    return 0;
  }
  return 1;
}
