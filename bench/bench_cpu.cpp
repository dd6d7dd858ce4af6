// How fast the CPU backend is, as a share of what the same core does in a plain FP32 matrix product
// (plain_gemm.h) of the same instruction set, in the same process, repetitions interleaved. Prints
// one table, and a CSV when asked.
//
//   bench_cpu [--quick] [--shape MxNxK] [--repetitions N] [--csv FILE] [Google Benchmark's options]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "core/float_types.h"
#include "core/views.h"
#include "cpu/isa.h"
#include "cpu/quantize.h"
#include "cpu/run.h"
#include "plain_gemm.h"
#include "ref/gemm.h"

namespace oct::bench {
namespace {

struct Settings {
  int64_t m = 512, n = 4096, k = 7168;
  int repetitions = 5;
  std::string csv, command;
};

std::vector<float> gaussian(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& y : x) y = normal(random);
  return x;
}

struct Quantized {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
};
Quantized quantized(std::vector<float>& x, int64_t rows, int64_t k, int32_t block) {
  const int64_t blocks = (k + 127) / 128;
  Quantized q;
  q.codes.resize(x.size());
  q.scales.resize(static_cast<std::size_t>(rows * blocks));
  octet_quantize_args args{};
  args.struct_size = sizeof args;
  args.block = block;
  args.axis = 1;
  args.x_type = OCTET_F32;
  args.x = {x.data(), rows, k, k, 0};
  args.codes = {q.codes.data(), rows, k, k, 0};
  args.scales = q.scales.data();
  args.row_stride = blocks;
  args.k_stride = 1;
  cpu::quantize(args);
  return q;
}

// Operands of all cases: one Gaussian problem, as FP32, quantised, and as BF16.
struct Data {
  explicit Data(const Settings& s)
      : m(s.m),
        n(s.n),
        k(s.k),
        a(gaussian(m * k, 1)),
        b(gaussian(n * k, 2)),
        d(static_cast<std::size_t>(m * n)),
        qa(quantized(a, m, k, OCTET_BLOCK_1X128)),
        qb(quantized(b, n, k, OCTET_BLOCK_128X128)) {
    for (const float x : a) bf16_a.push_back(core::f32_to_bf16(x));
    for (const float x : b) bf16_b.push_back(core::f32_to_bf16(x));
  }

  core::Work work(octet_type in_type, int64_t rows) {
    const int64_t blocks = (k + 127) / 128;
    core::DenseView v;
    v.m = rows;
    v.n = n;
    v.k = k;
    v.in_type = in_type;
    v.a = in_type == OCTET_E4M3 ? static_cast<const void*>(qa.codes.data()) : bf16_a.data();
    v.b = in_type == OCTET_E4M3 ? static_cast<const void*>(qb.codes.data()) : bf16_b.data();
    v.a_ld = v.b_ld = k;
    v.sfa = {qa.scales.data(), blocks, 1};
    v.sfb = {qb.scales.data(), blocks, 1};
    v.d_type = OCTET_BF16;
    v.d = d.data();
    v.d_ld = n;
    core::Work work;
    work.gemms.push_back(v);
    return work;
  }

  int64_t m, n, k;
  std::vector<float> a, b, d;
  Quantized qa, qb;
  std::vector<uint16_t> bf16_a, bf16_b;
};

// A row of the table.
struct Row {
  std::string name, kind, isa;
  int threads;
  int64_t m, n, k;
  double rate = 0;  // multiply-adds a second, best repetition
  int64_t scratch_bytes = 0;
};

class Table {
 public:
  Row& add(Row row) {
    row.name = fmt::format("{}/{}/threads:{}/{}x{}x{}", row.kind, row.isa, row.threads, row.m,
                           row.n, row.k);
    rows_.push_back(row);
    return rows_.back();
  }
  Row* find(const std::string& name) {
    for (Row& row : rows_) {
      if (name.compare(0, row.name.size(), row.name) == 0) return &row;
    }
    return nullptr;
  }
  double rate(const std::string& kind, const std::string& isa) const {
    for (const Row& row : rows_) {
      if (row.kind == kind && row.isa == isa && row.threads == 1) return row.rate;
    }
    return 0;
  }
  // The plain product with the same instructions, or with the widest that there are up to AVX2 for
  // kernels that have none of their own.
  double plain(const Row& row) const {
    return rate("plain", row.isa == "portable" ? "avx2" : row.isa);
  }

  void print(const std::map<std::string, double>& peaks, std::FILE* to) const {
    constexpr const char* kHeading =
        "{:<8} {:<9} {:>7} {:>16} {:>9} {:>11} {:>9} {:>6} {:>10} {:>11}\n";
    fmt::print(to, "\n");
    fmt::print(to, fmt::runtime(kHeading), "product", "isa", "threads", "shape", "G mul-add",
               "share of", "share of", "times", "times one", "scratch MB");
    fmt::print(to, fmt::runtime(kHeading), "", "", "", "", "a second", "plain FP32", "FMA peak",
               "ref", "thread", "");
    for (const Row& row : rows_) {
      if (row.rate == 0) continue;
      const std::string share = plain(row) > 0 ? fmt::format("{:.1f} %", share_of_plain(row)) : "";
      const std::string times =
          row.kind == "e4m3" ? fmt::format("{:.0f}", row.rate / rate("ref", "scalar")) : "";
      const auto peak = peaks.find(row.isa);
      const std::string of_peak =
          peak == peaks.end()
              ? ""
              : fmt::format("{:.1f} %", 100 * row.rate / (peak->second * row.threads));
      fmt::print(to, "{:<8} {:<9} {:>7} {:>16} {:>9.2f} {:>11} {:>9} {:>6} {:>10.2f} {:>11.2f}\n",
                 row.kind, row.isa, row.threads, fmt::format("{}x{}x{}", row.m, row.n, row.k),
                 row.rate * 1e-9, share, of_peak, times, row.rate / rate(row.kind, row.isa),
                 static_cast<double>(row.scratch_bytes) * 1e-6);
    }
    for (const auto& [isa, peak] : peaks) {
      fmt::print(to, "FMA peak of one core with {}: {:.1f} G multiply-adds a second\n", isa,
                 peak * 1e-9);
    }
  }

  void write_csv(std::ostream& out) const {
    out << "product,isa,threads,m,n,k,gmac_per_s,percent_of_plain,over_ref,over_one_thread,"
           "scratch_bytes\n";
    for (const Row& row : rows_) {
      if (row.rate == 0) continue;
      out << fmt::format("{},{},{},{},{},{},{:.3f},{:.1f},{:.1f},{:.3f},{}\n", row.kind, row.isa,
                         row.threads, row.m, row.n, row.k, row.rate * 1e-9, share_of_plain(row),
                         row.rate / rate("ref", "scalar"), row.rate / rate(row.kind, row.isa),
                         row.scratch_bytes);
    }
  }

 private:
  double share_of_plain(const Row& row) const {
    const double p = plain(row);
    return p > 0 ? 100 * row.rate / (p * row.threads) : 0;
  }
  std::vector<Row> rows_;
};

// Google Benchmark's report, kept: the best repetition of each row.
class Collector : public benchmark::ConsoleReporter {
 public:
  explicit Collector(Table& table) : table_(table) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      Row* row = table_.find(run.benchmark_name());
      if (row == nullptr) continue;
      const double seconds = run.real_accumulated_time / static_cast<double>(run.iterations);
      const double macs =
          static_cast<double>(row->m) * static_cast<double>(row->n) * static_cast<double>(row->k);
      row->rate = std::max(row->rate, macs / seconds);
      const auto scratch = run.counters.find("scratch");
      if (scratch != run.counters.end()) {
        row->scratch_bytes = static_cast<int64_t>(scratch->second.value);
      }
    }
    std::vector<Run> shown;
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Iteration) shown.push_back(run);
    }
    ConsoleReporter::ReportRuns(shown);
  }

 private:
  Table& table_;
};

const PlainGemm* plain_gemm(octet_isa isa) {
#if defined(OCTET_PLAIN_X86)
  if (isa == OCTET_ISA_AVX2) return plain_gemm_avx2();
  if (isa == OCTET_ISA_AVX512) return plain_gemm_avx512();
#endif
  (void)isa;
  return nullptr;
}

template <typename Body>
void add(Table& table, Row row, int repetitions, Body body) {
  benchmark::RegisterBenchmark(table.add(std::move(row)).name.c_str(), body)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->Repetitions(repetitions);
}

void add_cpu(Table& table, Data& data, const Settings& s, octet_type type, octet_isa isa,
             int threads, int64_t rows) {
  const char* kind = type == OCTET_BF16 ? "bf16" : rows == 1 ? "decode" : "e4m3";
  add(table, {"", kind, cpu::isa_name(isa), threads, rows, s.n, s.k}, s.repetitions,
      [&data, type, isa, threads, rows](benchmark::State& state) {
        const core::Work work = data.work(type, rows);
        cpu::Report report;
        for (auto _ : state) {
          const Status status = cpu::run(work, {threads, isa}, &report);
          if (!status.ok() || report.isa != isa) state.SkipWithError(status.message().c_str());
        }
        state.counters["scratch"] = static_cast<double>(report.scratch_bytes);
      });
}

int usage(const char* what) {
  fmt::print(
      stderr,
      "bench_cpu: {}\nusage: bench_cpu [--quick] [--shape MxNxK] [--repetitions N] [--csv FILE]\n",
      what);
  return 2;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

int run(int argc, char** argv) {
  Settings s;
  std::vector<char*> rest = {argv[0]};
  s.command = "bench_cpu";
  for (int i = 1; i < argc; ++i) s.command += std::string(" ") + argv[i];
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool more = i + 1 < argc;
    if (arg == "--quick") {
      s.m = 128;
      s.n = 1024;
      s.repetitions = 3;
    } else if (arg == "--shape" && more) {
      long long m = 0, n = 0, k = 0;
      if (std::sscanf(argv[++i], "%lldx%lldx%lld", &m, &n, &k) != 3 || m < 1 || n < 1 || k < 1) {
        return usage("--shape wants MxNxK");
      }
      s.m = m;
      s.n = n;
      s.k = k;
    } else if (arg == "--repetitions" && more) {
      s.repetitions = std::max(1, std::atoi(argv[++i]));
    } else if (arg == "--csv" && more) {
      s.csv = argv[++i];
    } else if (arg.rfind("--benchmark_", 0) == 0 || arg == "--help") {
      rest.push_back(argv[i]);
    } else {
      return usage(("unknown argument " + arg).c_str());
    }
  }
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  rest.push_back(interleave.data());
  int rest_count = static_cast<int>(rest.size());
  benchmark::Initialize(&rest_count, rest.data());

  Data data(s);
  Table table;
  std::map<std::string, double> peaks;
  const int all = static_cast<int>(std::thread::hardware_concurrency());
  // Slow products get fewer rows: their rates hardly depend on them.
  const int64_t some_rows = std::min<int64_t>(s.m, 128), few_rows = std::min<int64_t>(s.m, 2);
  for (const octet_isa isa : {OCTET_ISA_PORTABLE, OCTET_ISA_AVX2, OCTET_ISA_AVX512}) {
    if (const PlainGemm* plain = plain_gemm(isa)) {
      peaks[plain->name] = plain->peak();
      add(table, {"", "plain", plain->name, 1, s.m, s.n, s.k}, s.repetitions,
          [plain, &data](benchmark::State& state) {
            std::vector<float> scratch;
            for (auto _ : state) {
              plain->run(data.m, data.n, data.k, data.a.data(), data.b.data(), data.d.data(),
                         scratch);
              benchmark::ClobberMemory();
            }
          });
    }
    if (!cpu::isa_available(isa)) continue;
    const bool slow = isa == OCTET_ISA_PORTABLE;
    std::vector<int> threads = {1, 2};
    if (all > 2) threads.push_back(all);
    for (const int t : threads) {
      add_cpu(table, data, s, OCTET_E4M3, isa, t, slow ? some_rows : s.m);
    }
    if (!slow) add_cpu(table, data, s, OCTET_E4M3, isa, 1, 1);
    if (!slow) add_cpu(table, data, s, OCTET_E4M3, isa, 2, 1);
    add_cpu(table, data, s, OCTET_BF16, isa, 1, some_rows);
  }
  const int64_t few_columns = std::min<int64_t>(s.n, 64);
  add(table, {"", "ref", "scalar", 1, few_rows, few_columns, s.k}, s.repetitions,
      [&data, few_rows, few_columns](benchmark::State& state) {
        core::Work work = data.work(OCTET_E4M3, few_rows);
        work.gemms[0].n = few_columns;
        for (auto _ : state) ref::run(work);
      });

  Collector collector(table);
  benchmark::RunSpecifiedBenchmarks(&collector);
  table.print(peaks, stdout);
  if (!s.csv.empty()) {
    std::ofstream out(s.csv);
    char date[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
    out << "# date: " << date << "\n# cpu: " << cpu_name() << ", " << all
        << " threads\n# command: " << s.command << '\n';
    for (const auto& [isa, peak] : peaks) {
      out << fmt::format("# peak of {}: {:.2f} G fused multiply-adds a second\n", isa, peak * 1e-9);
    }
    table.write_csv(out);
    if (!out.flush()) return usage(("cannot write " + s.csv).c_str());
  }
  return 0;
}

}  // namespace
}  // namespace oct::bench

int main(int argc, char** argv) { return oct::bench::run(argc, argv); }
