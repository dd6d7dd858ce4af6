// See bench_cublaslt.h. cuBLAS is column-major: our row-major D[M,N] is its D[N,M], our B its A.
#include "bench_cublaslt.h"

#include <dlfcn.h>

#include <algorithm>

#include <fmt/format.h>

namespace octet::tool {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;
constexpr int kAsked = 8;  // algorithms that the heuristic names, all tried

// Newest first; the toolkit's folder for machines whose loader does not know it.
constexpr const char* kLibraries[] = {"libcublasLt.so.13",
                                      "/usr/local/cuda/lib64/libcublasLt.so.13",
                                      "libcublasLt.so.12",
                                      "/usr/local/cuda/lib64/libcublasLt.so.12"};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, lt::Functions& f) {
  return find(library, "cublasLtGetVersion", f.version) &&
         find(library, "cublasLtCreate", f.create) && find(library, "cublasLtDestroy", f.destroy) &&
         find(library, "cublasLtGetStatusString", f.status_string) &&
         find(library, "cublasLtMatmulDescCreate", f.desc_create) &&
         find(library, "cublasLtMatmulDescDestroy", f.desc_destroy) &&
         find(library, "cublasLtMatmulDescSetAttribute", f.desc_set) &&
         find(library, "cublasLtMatrixLayoutCreate", f.layout_create) &&
         find(library, "cublasLtMatrixLayoutDestroy", f.layout_destroy) &&
         find(library, "cublasLtMatrixLayoutSetAttribute", f.layout_set) &&
         find(library, "cublasLtMatmulPreferenceCreate", f.preference_create) &&
         find(library, "cublasLtMatmulPreferenceDestroy", f.preference_destroy) &&
         find(library, "cublasLtMatmulPreferenceSetAttribute", f.preference_set) &&
         find(library, "cublasLtMatmulAlgoGetHeuristic", f.heuristic) &&
         find(library, "cublasLtMatmul", f.matmul);
}

int data_type(octet_type type) {
  switch (type) {
    case OCTET_E4M3: return lt::kE4m3;
    case OCTET_BF16: return lt::kBf16;
    case OCTET_F16: return lt::kF16;
    default: return lt::kF32;
  }
}

// What cuBLASLt refuses; the arm stays empty.
struct Refusal {
  std::string text;
};

}  // namespace

// One product in cuBLASLt's terms, with the algorithms that its heuristic names.
class LtProduct {
 public:
  LtProduct(CublasLt& owner, const GemmProblem& p, const GemmArgs& args, CublasLt::Scaling scaling)
      : owner_(owner), f_(owner.f_), blocks_(scaling == CublasLt::Scaling::kBlocks) {
    beta_ = p.accumulate != 0 ? 1.0f : 0.0f;
    fp8_ = p.in_type == OCTET_E4M3;
    try {
      build(p, args);
    } catch (...) {
      release();
      throw;
    }
  }
  ~LtProduct() { release(); }
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  const std::vector<lt::HeuristicResult>& algorithms() const { return algorithms_; }
  void choose(std::size_t index) { chosen_ = index; }

  void enqueue(const GemmArgs& args) {
    if (fp8_) {
      const void* scale_a = blocks_ ? static_cast<const void*>(args.sfb.data) : owner_.one_.data();
      const void* scale_b = blocks_ ? static_cast<const void*>(args.sfa.data) : owner_.one_.data();
      set(lt::kScalePointerA, scale_a);
      set(lt::kScalePointerB, scale_b);
    }
    const float alpha = 1;
    const void* c = beta_ != 0 ? args.c.data : args.d.data;
    ok(f_.matmul(owner_.handle_, desc_, &alpha, args.b.data, a_, args.a.data, b_, &beta_, c, d_,
                 args.d.data, d_, &algorithms_[chosen_].algo, owner_.workspace_.data(),
                 kWorkspaceBytes, owner_.stream_),
       "cublasLtMatmul");
  }

 private:
  void build(const GemmProblem& p, const GemmArgs& args) {
    ok(f_.desc_create(&desc_, lt::kCompute32F, lt::kF32), "cublasLtMatmulDescCreate");
    set(lt::kTransA, static_cast<std::int32_t>(lt::kTransposed));
    set(lt::kTransB, static_cast<std::int32_t>(lt::kNormal));
    if (fp8_) {
      set(lt::kFastAccum, static_cast<std::int8_t>(owner_.fast_accumulation_ && !blocks_ ? 1 : 0));
      set(lt::kScalePointerA, static_cast<const void*>(owner_.one_.data()));
      set(lt::kScalePointerB, static_cast<const void*>(owner_.one_.data()));
    }
    if (blocks_) {
      set(lt::kScaleModeA, static_cast<std::int32_t>(lt::kBlock128x128));
      set(lt::kScaleModeB, static_cast<std::int32_t>(lt::kVec128));
    }
    layout(a_, p.in_type, p.k, p.n, args.b, p.groups);
    layout(b_, p.in_type, p.k, p.m, args.a, p.groups);
    layout(d_, p.d_type, p.n, p.m, args.d, p.groups);
    ok(f_.preference_create(&preference_), "cublasLtMatmulPreferenceCreate");
    ok(f_.preference_set(preference_, lt::kWorkspaceBytes, &kWorkspaceBytes,
                         sizeof kWorkspaceBytes),
       "cublasLtMatmulPreferenceSetAttribute");
    algorithms_.resize(kAsked);
    int found = 0;
    ok(f_.heuristic(owner_.handle_, desc_, a_, b_, d_, d_, preference_, kAsked, algorithms_.data(),
                    &found),
       "cublasLtMatmulAlgoGetHeuristic");
    algorithms_.resize(static_cast<std::size_t>(std::clamp(found, 0, kAsked)));
    std::erase_if(algorithms_, [](const lt::HeuristicResult& r) { return r.state != 0; });
    if (algorithms_.empty()) throw Refusal{"cuBLASLt names no algorithm"};
  }

  void layout(lt::Layout& out, octet_type type, std::int64_t rows, std::int64_t cols,
              const octet_matrix& x, std::int64_t batch) {
    ok(f_.layout_create(&out, data_type(type), static_cast<std::uint64_t>(rows),
                        static_cast<std::uint64_t>(cols), x.ld),
       "cublasLtMatrixLayoutCreate");
    if (batch == 1) return;
    const auto count = static_cast<std::int32_t>(batch);
    ok(f_.layout_set(out, lt::kBatchCount, &count, sizeof count), "the batch count");
    ok(f_.layout_set(out, lt::kBatchStride, &x.group_stride, sizeof x.group_stride),
       "the batch stride");
  }

  template <typename Value>
  void set(lt::DescAttribute attribute, Value value) {
    ok(f_.desc_set(desc_, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }

  void ok(lt::Status status, const char* doing) const {
    if (status != 0) throw Refusal{fmt::format("{}: {}", doing, f_.status_string(status))};
  }

  void release() {
    if (preference_ != nullptr) f_.preference_destroy(preference_);
    for (lt::Layout x : {a_, b_, d_}) {
      if (x != nullptr) f_.layout_destroy(x);
    }
    if (desc_ != nullptr) f_.desc_destroy(desc_);
  }

  CublasLt& owner_;
  const lt::Functions& f_;
  bool blocks_ = false, fp8_ = true;
  float beta_ = 0;
  lt::MatmulDesc desc_ = nullptr;
  lt::Layout a_ = nullptr, b_ = nullptr, d_ = nullptr;
  lt::Preference preference_ = nullptr;
  std::vector<lt::HeuristicResult> algorithms_;
  std::size_t chosen_ = 0;
};

std::unique_ptr<CublasLt> CublasLt::open(cudaStream_t stream, bool fast_accumulation,
                                         std::string& why_not) {
  void* library = nullptr;
  for (const char* name : kLibraries) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);  // never closed: CUDA keeps pointers into it
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    why_not = "libcublasLt.so.13 or .12 was not found";
    return nullptr;
  }
  std::unique_ptr<CublasLt> made(new CublasLt);
  if (!find_all(library, made->f_)) {
    why_not = "libcublasLt lacks a function that is needed";
    return nullptr;
  }
  if (const lt::Status status = made->f_.create(&made->handle_); status != 0) {
    why_not = fmt::format("cublasLtCreate: {}", made->f_.status_string(status));
    return nullptr;
  }
  made->stream_ = stream;
  made->fast_accumulation_ = fast_accumulation;
  made->workspace_ = DeviceBuffer(kWorkspaceBytes);
  made->one_ = DeviceBuffer(sizeof(float));
  const float one = 1;
  cuda_ok(cudaMemcpy(made->one_.data(), &one, sizeof one, cudaMemcpyHostToDevice),
          "copying to the device");
  return made;
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr) static_cast<void>(f_.destroy(handle_));
}

std::string CublasLt::version() const {
  const std::size_t v = f_.version();  // 130100 is 13.1.0
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

std::optional<LtTiming> CublasLt::measure(const GemmProblem& problem,
                                          const std::vector<GemmArgs>& sets, Scaling scaling,
                                          Timer& timer, double floor_us, bool sustained) {
  why_not_.clear();
  // Its block scaling takes rows by fours, column-major 1x128 scales and row-major 128x128 ones.
  if (scaling == Scaling::kBlocks &&
      (problem.in_type != OCTET_E4M3 || problem.granularity != OCTET_1D2D || problem.m % 4 != 0 ||
       problem.n % 4 != 0 || problem.sfa_layout != OCTET_COLUMN_MAJOR ||
       problem.sfb_layout != OCTET_ROW_MAJOR || problem.grouping != OCTET_DENSE)) {
    why_not_ = "not a problem of its block scaling";
    return std::nullopt;
  }
  if ((problem.grouping != OCTET_DENSE && problem.grouping != OCTET_BATCHED) ||
      problem.bias_type != OCTET_NONE || problem.m == 0 || problem.n == 0 || problem.k == 0) {
    why_not_ = "no arm for such problems";
    return std::nullopt;
  }
  try {
    LtProduct product(*this, problem, sets.front(), scaling);
    const auto enqueue = [&](int launch) {
      product.enqueue(sets[static_cast<std::size_t>(launch) % sets.size()]);
    };
    const int count = static_cast<int>(sets.size());
    double best_us = 0, first_us = 0;
    std::size_t best = 0, first = 0;
    for (std::size_t i = 0; i < product.algorithms().size(); ++i) {
      product.choose(i);
      double us = 0;
      try {
        // Once outside a capture: the library loads its kernels on first use.
        enqueue(0);
        cuda_ok(cudaStreamSynchronize(stream_), "waiting for cuBLASLt");
        us = timer.glance(enqueue, count, floor_us);
      } catch (const Refusal& refusal) {
        why_not_ = refusal.text;
        continue;
      }
      if (first_us == 0) {
        first_us = us;
        first = i;
      }
      if (best_us == 0 || us < best_us) {
        best_us = us;
        best = i;
      }
    }
    if (best_us == 0) return std::nullopt;
    product.choose(first);
    LtTiming out{timer.measure(enqueue, count, floor_us, sustained), {}};
    out.fastest_us = out.chosen.us;
    if (best != first) {
      product.choose(best);
      out.fastest_us = std::min(out.chosen.us, timer.measure(enqueue, count, floor_us, false).us);
    }
    return out;
  } catch (const Refusal& refusal) {
    why_not_ = refusal.text;
    return std::nullopt;
  }
}

}  // namespace octet::tool
