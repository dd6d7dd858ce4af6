// See bench_session.h.
#include "bench_session.h"

#include <ctime>
#include <fstream>

#include <fmt/format.h>

#ifndef OCTET_COMMIT
#define OCTET_COMMIT "unknown"
#endif

namespace octet::tool {
namespace {

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// "580.159.04" from the driver's own file, "" where there is none.
std::string driver_release() {
  std::ifstream in("/proc/driver/nvidia/version");
  std::string word;
  while (in >> word) {
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos) {
      return word;
    }
  }
  return "";
}

std::string cuda_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

OperandSets::OperandSets(const GemmProblem& p, std::int64_t workspace_bytes, BenchData& data)
    : layout_(layout_of(p)) {
  const bool fp8 = p.in_type == OCTET_E4M3;
  const bool blocks = p.granularity == OCTET_1D2D;
  const auto make = [&](const OperandExtent& x, Content content) {
    return data.make(content, layout_.sets * x.bytes);
  };
  a_ = make(layout_.a, fp8 ? Content::kCodes1x128 : values_of(p.in_type));
  b_ = make(layout_.b, !fp8     ? values_of(p.in_type)
                       : blocks ? Content::kCodes128x128
                                : Content::kCodes1x128);
  sfa_ = make(layout_.sfa, Content::kScales1x128);
  sfb_ = make(layout_.sfb, blocks ? Content::kScales128x128 : Content::kScales1x128);
  c_ = make(layout_.c, values_of(p.d_type));
  d_ = make(layout_.d, Content::kNothing);
  bias_ = make(layout_.bias, values_of(p.bias_type));
  workspace_ = data.make(Content::kNothing, workspace_bytes);
  if (!layout_.groups.metadata.empty()) metadata_ = data.copy_of(layout_.groups.metadata);
  const auto base = [](const DeviceBuffer& buffer) { return static_cast<char*>(buffer.data()); };
  bases_ = {base(a_), base(b_),    base(sfa_),       base(sfb_),     base(c_),
            base(d_), base(bias_), base(workspace_), base(metadata_)};
  for (int set = 0; set < layout_.sets; ++set) {
    args_.push_back(args_of(p, layout_, bases_, set, workspace_bytes));
  }
}

cuda::Context BenchSession::open(int ordinal) {
  auto context = cuda::Context::create(ordinal);
  if (!context.ok()) throw Error(OCTET_NO_DEVICE, context.message());
  return std::move(context).value();
}

BenchSession::BenchSession(const BenchOptions& options)
    : context_(open(options.device)),
      device_(context_.device().value()),
      stream_(options.device),
      data_(stream_),
      timer_(stream()) {
  cudaDeviceProp properties{};
  cuda_ok(cudaGetDeviceProperties(&properties, options.device), "reading the device's name");
  int driver = 0;
  cuda_ok(cudaDriverGetVersion(&driver), "reading the driver's version");
  note("date", now());
  note("gpu", properties.name);
  const std::string release = driver_release();
  note("driver", (release.empty() ? "" : release + ", ") + "CUDA " + cuda_version(driver));
  note("commit", OCTET_COMMIT);
  note("octet", version());
  note("command", options.command);
  note("method",
       "sets of operands beyond 256 MB in turn, CUDA graph, 10 ms of rest, median of 7 replays of "
       "4 ms or more, Gaussian data");
  if (!options.cublaslt) return;
  std::string why_not;
  peer_ = CublasLt::open(stream(), options.fast_accumulation, why_not);
  note("cublaslt", peer_ == nullptr ? "none: " + why_not
                                    : peer_->version() + (options.fast_accumulation
                                                              ? ", fast accumulation"
                                                              : ", accurate accumulation"));
}

std::vector<cuda::BoundGemm> BenchSession::bind(const GemmPlan& plan,
                                                const std::vector<GemmArgs>& sets) {
  context_.prepare(plan).value();
  std::vector<cuda::BoundGemm> bound;
  for (const GemmArgs& args : sets) bound.push_back(context_.bind(plan, args).value());
  return bound;
}

Timing BenchSession::measure(const GemmPlan& plan, const OperandSets& operands, double floor_us,
                             bool sustained) {
  const std::vector<cuda::BoundGemm> bound = bind(plan, operands.args());
  return timer_.measure(
      [&](int launch_index) {
        launch(bound[static_cast<std::size_t>(launch_index) % bound.size()]);
      },
      operands.count(), floor_us, sustained);
}

}  // namespace octet::tool
