// See shortcut.h. What is remembered is found in two steps: a call by everything but its pointers
// (types, shapes, strides, alignment, device, options), and of a call the launches that were bound
// for pointers that came twice, as weights do and the results of a caching allocator. Pointers that
// are new are put into the call's arguments, and checked and encoded by octet_cuda_gemm().
#include "python/shortcut.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

constexpr int kMostArrays = 11;  // of octet_gemm_args
constexpr int kMostDimensions = 3;
constexpr int kOut = 4;  // its place among the arguments of launch()
constexpr const char* kTableName = "octet.table";
constexpr const char* kLauncherName = "octet.launcher";

// An object of Python's that is kept alive. Copied and let go with the interpreter lock alone.
class Kept {
 public:
  explicit Kept(PyObject* object) : object_(object) { Py_IncRef(object); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() { Py_DecRef(object_); }
  PyObject* again() const {  // a new reference
    Py_IncRef(object_);
    return object_;
  }

 private:
  PyObject* object_;
};

std::uint64_t hash_of(const std::int64_t* words, int count) {
  std::uint64_t hash = 0x9e3779b97f4a7c15u;
  for (int i = 0; i < count; ++i) {
    hash = (hash ^ static_cast<std::uint64_t>(words[i])) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

// What the arguments of a call say.
struct Reading {
  int words = 0, pointers = 0;
  std::int32_t device = 0;
  std::int64_t word[1 + kMostArrays * (1 + 2 * kMostDimensions)];
  std::int64_t pointer[kMostArrays];

  void add(std::int64_t value) { word[words++] = value; }
};

using Pointers = std::array<std::int64_t, kMostArrays>;
using Bound = std::shared_ptr<octet_cuda_bound>;

// A call that is remembered.
struct Call {
  std::vector<std::int64_t> words;
  std::array<std::int32_t, kMostArrays> places{};
  octet_gemm_problem problem;
  octet_gemm_plan plan;
  octet_gemm_args args;
  octet_cuda_context* context = nullptr;
  std::unique_ptr<Kept> owner, maker;  // before the launches: they end first
  std::unordered_map<std::uint64_t, std::pair<Pointers, Bound>> bound;
  std::unordered_set<std::uint64_t> seen;  // hashes of pointers that came once
};

// A launch between its parts.
struct Ready {
  Reading reading;
  std::uint64_t hash = 0;
  std::shared_ptr<Call> call;
  Bound bound;
  bool bind = false;
  octet_gemm_args args;
  void* stream = nullptr;
  octet_cuda_bound* made = nullptr;
  octet_code code = OCTET_OK;
};

class Table {
 public:
  explicit Table(const octet_python_api& api) : api_(api) {
    for (PyObject* object : {api.tensor_types[0], api.tensor_types[1], api.is_neg, api.none}) {
      if (object != nullptr) kept_.push_back(std::make_unique<Kept>(object));
    }
  }

  PyObject* none() const { return api_.none; }

  // False for arguments that the long way is to look at.
  bool read(std::int64_t kind, PyObject* const* arguments, std::ptrdiff_t count, Reading& out) {
    while (count > 0 && arguments[count - 1] == api_.none) --count;
    if (count > kMostArrays) return false;
    out.add(kind);
    bool first = true;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      if (arguments[i] == api_.none) {
        out.add(-1);
        out.pointer[out.pointers++] = 0;
        continue;
      }
      DLTensor x;
      if (!is_tensor(arguments[i]) || api_.exchange->read(arguments[i], &x) != 0) return false;
      if (x.device_type != kDlCuda || x.dimensions > kMostDimensions) return false;
      // NOTE: a view that negates what lies in memory reads as if it did not.
      if (negates(arguments[i])) return false;
      const auto pointer =
          reinterpret_cast<std::int64_t>(x.data) + static_cast<std::int64_t>(x.byte_offset);
      out.add((pointer & 15) | std::int64_t{x.code} << 8 | std::int64_t{x.bits} << 16 |
              std::int64_t{x.lanes} << 24 | std::int64_t{x.dimensions} << 40 |
              std::int64_t{x.device} << 44);
      for (int d = 0; d < x.dimensions; ++d) {
        out.add(x.shape[d]);
        out.add(x.strides[d]);
      }
      out.pointer[out.pointers++] = pointer;
      if (first) out.device = x.device;
      first = false;
    }
    return !first;
  }

  // What of a launch needs the interpreter and comes before it. False: there is none; `found` then
  // is a new reference to what Python's launch() returns, or null for None.
  bool prepare(std::int64_t kind, PyObject* const* arguments, std::ptrdiff_t count, Ready& out,
               PyObject*& found) {
    if (!read(kind, arguments, count, out.reading)) return false;
    out.hash = hash_of(out.reading.pointer, out.reading.pointers);
    {
      const std::lock_guard lock(mutex_);
      out.call = find(out.reading);
      if (out.call == nullptr) return false;
      Call& call = *out.call;
      if (!call.maker) {
        const auto known = call.bound.find(out.hash);
        if (known != call.bound.end() && same(known->second.first, out.reading)) {
          out.bound = known->second.second;
        } else {
          out.bind = !call.seen.insert(out.hash).second;
          if (call.seen.size() > static_cast<std::size_t>(api_.most)) call.seen.clear();
        }
      }
    }
    if (out.call->maker) {
      found = out.call->maker->again();
      return false;
    }
    if (api_.exchange->current_stream(kDlCuda, out.reading.device, &out.stream) != 0) return false;
    if (out.bound != nullptr) return true;
    out.args = out.call->args;
    for (int i = 0; i < out.reading.pointers; ++i) {
      if (out.call->places[i] < 0) continue;
      std::memcpy(reinterpret_cast<char*>(&out.args) + out.call->places[i], &out.reading.pointer[i],
                  sizeof out.reading.pointer[i]);
    }
    return true;
  }

  // The launch, without the interpreter lock.
  void run(Ready& r) const {
    const Call& call = *r.call;
    if (r.bind && api_.bind(call.context, &call.plan, &r.args, &r.made) != OCTET_OK) {
      r.made = nullptr;
    }
    const octet_cuda_bound* const ready = r.made != nullptr ? r.made : r.bound.get();
    r.code = ready != nullptr ? api_.run(call.context, ready, r.stream)
                              : api_.gemm(call.context, &call.problem, &r.args, r.stream);
  }

  // Whether it was made; otherwise the long way says why not. Keeps what was bound.
  bool finish(Ready& r) {
    const octet_code code = r.code;
    if (r.made != nullptr) keep(r.call, r.hash, r.reading, Bound(r.made, api_.destroy));
    return code == OCTET_OK;
  }

  void remember(const Reading& reading, std::shared_ptr<Call> call) {
    call->words.assign(reading.word, reading.word + reading.words);
    const std::uint64_t hash = hash_of(reading.word, reading.words);
    Calls old;  // ends behind the lock: what it lets go may be a lot, and Python's
    const std::lock_guard lock(mutex_);
    if (calls_.size() >= static_cast<std::size_t>(api_.most)) forget(old);
    std::shared_ptr<Call>& place = calls_[hash];
    old.emplace(0, std::move(place));
    place = std::move(call);
  }

 private:
  using Calls = std::unordered_map<std::uint64_t, std::shared_ptr<Call>>;

  bool is_tensor(PyObject* x) const {
    PyObject* const type = PyObject_Type(x);
    Py_DecRef(type);  // the object keeps it
    return type == api_.tensor_types[0] || type == api_.tensor_types[1];
  }

  bool negates(PyObject* x) const {
    PyObject* const said = PyObject_CallFunctionObjArgs(api_.is_neg, x, nullptr);
    if (said == nullptr) return true;
    const bool yes = PyObject_IsTrue(said) != 0;
    Py_DecRef(said);
    return yes;
  }

  static bool same(const Pointers& pointers, const Reading& reading) {
    return std::equal(reading.pointer, reading.pointer + reading.pointers, pointers.begin());
  }

  // Two calls of one hash take each other's place: one of them goes the long way then.
  std::shared_ptr<Call> find(const Reading& reading) const {
    const auto found = calls_.find(hash_of(reading.word, reading.words));
    if (found == calls_.end()) return nullptr;
    const std::vector<std::int64_t>& words = found->second->words;
    const bool equal =
        std::equal(words.begin(), words.end(), reading.word, reading.word + reading.words);
    return equal ? found->second : nullptr;
  }

  void keep(const std::shared_ptr<Call>& call, std::uint64_t hash, const Reading& reading,
            Bound bound) {
    Pointers pointers{};
    std::copy_n(reading.pointer, reading.pointers, pointers.begin());
    Calls old;
    const std::lock_guard lock(mutex_);
    if (++bound_ > api_.most) {
      forget(old);
      return;
    }
    call->bound[hash] = {pointers, std::move(bound)};
  }

  void forget(Calls& old) {
    old.swap(calls_);
    bound_ = 0;
  }

  const octet_python_api api_;
  std::vector<std::unique_ptr<Kept>> kept_;
  std::mutex mutex_;  // for Pythons without an interpreter lock
  Calls calls_;
  std::int64_t bound_ = 0;
};

struct Launcher {
  std::shared_ptr<Table> table;
  std::int64_t kind;
};

std::shared_ptr<Table>* table_of(PyObject* capsule) {
  return static_cast<std::shared_ptr<Table>*>(PyCapsule_GetPointer(capsule, kTableName));
}

Launcher* launcher_of(PyObject* capsule) {
  return static_cast<Launcher*>(PyCapsule_GetPointer(capsule, kLauncherName));
}

Ready* begin(const Launcher& launcher, PyObject* const* arguments, std::ptrdiff_t count, void* room,
             PyObject*& found) {
  if (count <= kOut) return nullptr;
  Ready* const ready = new (room) Ready;
  try {
    if (launcher.table->prepare(launcher.kind, arguments, count, *ready, found)) return ready;
  } catch (...) {  // no memory: the long way says so
  }
  ready->~Ready();
  return nullptr;
}

bool end(const Launcher& launcher, Ready* ready) {
  bool made = false;
  try {
    made = launcher.table->finish(*ready);
  } catch (...) {
  }
  ready->~Ready();
  return made;
}

// NOTE: a daemon thread that wants the interpreter back after its end is unwound from here, by
// Python before 3.14, in a way that C++ is not told of: it aborts where it meets a frame that has
// something to clean up. So this function has nothing; what such a thread holds is never let go.
PyObject* launch(PyObject* self, PyObject* const* arguments, std::ptrdiff_t count) {
  const Launcher* const launcher = launcher_of(self);
  if (launcher == nullptr) return nullptr;
  PyObject* found = nullptr;
  alignas(Ready) unsigned char room[sizeof(Ready)];
  if (Ready* const ready = begin(*launcher, arguments, count, room, found); ready != nullptr) {
    void* const state = PyEval_SaveThread();
    launcher->table->run(*ready);
    PyEval_RestoreThread(state);
    if (end(*launcher, ready)) {
      found = arguments[kOut];
      Py_IncRef(found);
    }
  }
  if (found == nullptr) {
    PyErr_Clear();
    found = launcher->table->none();
    Py_IncRef(found);
  }
  return found;
}

PyMethodDef launch_method = {"launch", launch, kFastCall,
                             "Launches a call like one that was remembered, or returns None."};

}  // namespace

PyObject* octet_python_table(const octet_python_api* api) {
  constexpr std::int64_t kSizes[] = {sizeof(octet_gemm_problem), sizeof(octet_gemm_plan),
                                     sizeof(octet_gemm_args)};
  if (!python_is_there() || !std::equal(api->sizes, api->sizes + 3, kSizes)) {
    if (Py_IncRef) Py_IncRef(api->none);
    return api->none;
  }
  try {
    auto table = std::make_unique<std::shared_ptr<Table>>(std::make_shared<Table>(*api));
    PyObject* const capsule =
        PyCapsule_New(table.get(), kTableName, [](PyObject* self) { delete table_of(self); });
    if (capsule != nullptr) static_cast<void>(table.release());
    return capsule;
  } catch (...) {
    return nullptr;
  }
}

PyObject* octet_python_launcher(PyObject* table, std::int64_t kind) {
  const std::shared_ptr<Table>* const known = table_of(table);
  if (known == nullptr) return nullptr;
  try {
    auto launcher = std::make_unique<Launcher>(Launcher{*known, kind});
    PyObject* const capsule = PyCapsule_New(launcher.get(), kLauncherName,
                                            [](PyObject* self) { delete launcher_of(self); });
    if (capsule == nullptr) return nullptr;
    static_cast<void>(launcher.release());
    PyObject* const function = PyCFunction_NewEx(&launch_method, capsule, nullptr);
    Py_DecRef(capsule);
    return function;
  } catch (...) {
    return nullptr;
  }
}

std::int32_t octet_python_remember(PyObject* function, PyObject* arrays, const std::int32_t* places,
                                   const octet_gemm_problem* problem, const octet_gemm_plan* plan,
                                   const octet_gemm_args* args, octet_cuda_context* context,
                                   PyObject* owner, PyObject* maker) {
  try {
    const Launcher* const launcher = launcher_of(PyCFunction_GetSelf(function));
    const std::ptrdiff_t count = PyTuple_Size(arrays);
    if (launcher == nullptr || count <= kOut || count > kMostArrays) return 0;
    PyObject* items[kMostArrays];
    for (std::ptrdiff_t i = 0; i < count; ++i) items[i] = PyTuple_GetItem(arrays, i);
    Reading reading;
    Table& table = *launcher->table;
    if (!table.read(launcher->kind, items, count, reading)) {
      PyErr_Clear();
      return 0;
    }
    auto call = std::make_shared<Call>();
    std::copy_n(places, count, call->places.begin());
    call->problem = *problem;
    call->plan = *plan;
    call->args = *args;
    call->context = context;
    call->owner = std::make_unique<Kept>(owner);
    if (maker != table.none()) call->maker = std::make_unique<Kept>(maker);
    table.remember(reading, std::move(call));
    return 1;
  } catch (...) {
    return 0;
  }
}
