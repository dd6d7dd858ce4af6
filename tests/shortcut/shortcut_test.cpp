// The short way of Python's calls without Python: the few functions of CPython's that it takes are
// played here, with counted references and a mutex for the interpreter lock, so that sanitizers see
// it all. What it is for is tested from Python (tests/python/test_shortcut.py).
#include "python/shortcut.h"

#include <pthread.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

struct PyObject {
  std::atomic<long> references{1};
  PyObject* type = nullptr;
  void* pointer = nullptr;           // of a capsule
  void (*end)(PyObject*) = nullptr;  // of a capsule
  PyMethodDef* method = nullptr;     // of a function, with its self
  PyObject* self = nullptr;
  std::vector<PyObject*> items;  // of a tuple
  DLTensor tensor{};             // of a tensor
  bool negates = false, unreadable = false;
};

namespace {

std::mutex interpreter_lock;
std::atomic<long> alive{0};
std::atomic<int> errors{0};

PyObject* fresh(PyObject* type = nullptr) {
  ++alive;
  auto* const made = new PyObject;
  made->type = type;
  return made;
}

// Objects of the test's own, which nothing lets go.
constexpr std::uint8_t kDlFloat = 2;
PyObject tensor_type, parameter_type, other_type, is_neg, none, yes, no, context_object, maker;

}  // namespace

std::atomic<bool> interpreter_has_ended{false};

extern "C" {

void Py_IncRef(PyObject* x) { ++x->references; }
void Py_DecRef(PyObject* x) {
  if (--x->references > 0) return;
  if (x->end != nullptr) x->end(x);
  if (x->self != nullptr) Py_DecRef(x->self);
  --alive;
  delete x;
}
PyObject* PyCFunction_NewEx(PyMethodDef* method, PyObject* self, PyObject*) {
  PyObject* const made = fresh();
  made->method = method;
  made->self = self;
  Py_IncRef(self);
  return made;
}
PyObject* PyCFunction_GetSelf(PyObject* function) { return function->self; }
PyObject* PyCapsule_New(void* pointer, const char*, void (*end)(PyObject*)) {
  PyObject* const made = fresh();
  made->pointer = pointer;
  made->end = end;
  return made;
}
void* PyCapsule_GetPointer(PyObject* capsule, const char*) { return capsule->pointer; }
PyObject* PyObject_CallFunctionObjArgs(PyObject* function, ...) {
  EXPECT_EQ(function, &is_neg);
  va_list arguments;
  va_start(arguments, function);
  PyObject* const said = va_arg(arguments, PyObject*)->negates ? &yes : &no;
  va_end(arguments);
  Py_IncRef(said);
  return said;
}
int PyObject_IsTrue(PyObject* object) { return object == &yes; }
PyObject* PyObject_Type(PyObject* object) {
  Py_IncRef(object->type);
  return object->type;
}
PyObject* PyTuple_GetItem(PyObject* tuple, std::ptrdiff_t place) {
  return tuple->items[static_cast<std::size_t>(place)];
}
std::ptrdiff_t PyTuple_Size(PyObject* tuple) {
  return static_cast<std::ptrdiff_t>(tuple->items.size());
}
void PyErr_Clear() { errors = 0; }
void* PyEval_SaveThread() {
  interpreter_lock.unlock();
  return &interpreter_lock;
}
void PyEval_RestoreThread(void* state) {
  EXPECT_EQ(state, &interpreter_lock);
  if (interpreter_has_ended) pthread_exit(nullptr);
  interpreter_lock.lock();
}

}  // extern "C"

namespace {

// The library's part: what was launched with which arguments.
struct Launch {
  bool bound;
  octet_gemm_args args;
  void* stream;
};
std::mutex launches_lock;
std::vector<Launch> launches;
std::atomic<long> bounds{0};
octet_code refuse = OCTET_OK;
octet_code refuse_bind = OCTET_OK;

octet_code bind(octet_cuda_context*, const octet_gemm_plan*, const octet_gemm_args* args,
                octet_cuda_bound** out) {
  if (refuse_bind != OCTET_OK) return refuse_bind;
  ++bounds;
  *out = reinterpret_cast<octet_cuda_bound*>(new octet_gemm_args(*args));
  return OCTET_OK;
}
void destroy(octet_cuda_bound* bound) {
  --bounds;
  delete reinterpret_cast<octet_gemm_args*>(bound);
}
octet_code note(bool bound, const octet_gemm_args& args, void* stream) {
  const std::lock_guard lock(launches_lock);
  launches.push_back({bound, args, stream});
  return refuse;
}
octet_code run(const octet_cuda_context*, const octet_cuda_bound* bound, void* stream) {
  return note(true, *reinterpret_cast<const octet_gemm_args*>(bound), stream);
}
octet_code gemm(octet_cuda_context*, const octet_gemm_problem*, const octet_gemm_args* args,
                void* stream) {
  return note(false, *args, stream);
}

int read(PyObject* x, DLTensor* out) {
  *out = x->tensor;
  if (x->unreadable) ++errors;
  return x->unreadable ? -1 : 0;
}
int stream_error = 0;
int current_stream(std::int32_t type, std::int32_t device, void** out) {
  EXPECT_EQ(type, kDlCuda);
  *out = reinterpret_cast<void*>(static_cast<std::intptr_t>(0x70 + device));
  return stream_error;
}
const DLPackExchange exchange = {1, 3, nullptr, nullptr, nullptr, nullptr, read, current_stream};

struct Tensor {
  std::int64_t shape[4], strides[4];
  PyObject object;

  Tensor(std::intptr_t address, std::vector<std::int64_t> sizes, std::uint8_t code = 10) {
    object.type = &tensor_type;
    std::int64_t step = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      shape[i] = sizes[i];
      strides[i] = step;
      step *= sizes[i];
    }
    object.tensor = {reinterpret_cast<void*>(address),
                     kDlCuda,
                     0,
                     static_cast<std::int32_t>(sizes.size()),
                     code,
                     8,
                     1,
                     shape,
                     strides,
                     0};
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
};

class Shortcut : public testing::Test {
 protected:
  void SetUp() override {
    interpreter_lock.lock();
    launches.clear();
    const octet_python_api api = {
        &exchange, {&tensor_type, &parameter_type},
        &is_neg,   &none,
        bind,      destroy,
        run,       gemm,
        16,        {sizeof(octet_gemm_problem), sizeof(octet_gemm_plan), sizeof(octet_gemm_args)}};
    table_ = octet_python_table(&api);
    launcher_ = octet_python_launcher(table_, 1);
  }

  void TearDown() override {
    Py_DecRef(launcher_);
    Py_DecRef(table_);
    interpreter_lock.unlock();
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(bounds, 0);
    for (const PyObject* x : {&tensor_type, &parameter_type, &is_neg, &none, &context_object,
                              &maker, &a_.object, &d_.object}) {
      EXPECT_EQ(x->references, 1);
    }
  }

  std::vector<PyObject*> arguments() {
    return {&a_.object, &b_.object, &sfa_.object, &sfb_.object, &d_.object};
  }

  bool remember(std::vector<PyObject*> items, PyObject* make = &none) {
    PyObject tuple;
    tuple.items = std::move(items);
    const std::int32_t places[] = {offsetof(octet_gemm_args, a),
                                   offsetof(octet_gemm_args, b),
                                   offsetof(octet_gemm_args, sfa),
                                   offsetof(octet_gemm_args, sfb),
                                   offsetof(octet_gemm_args, d),
                                   -1,
                                   -1,
                                   -1,
                                   -1,
                                   -1,
                                   -1,
                                   -1};
    octet_gemm_problem problem{};
    octet_gemm_plan plan{};
    octet_gemm_args args{};
    args.a.rows = 77;
    return octet_python_remember(launcher_, &tuple, places, &problem, &plan, &args, nullptr,
                                 &context_object, make) == 1;
  }

  PyObject* call(const std::vector<PyObject*>& items, PyObject* launcher = nullptr) {
    if (launcher == nullptr) launcher = launcher_;
    PyObject* const found = launcher->method->function(launcher->self, items.data(),
                                                       static_cast<std::ptrdiff_t>(items.size()));
    EXPECT_EQ(errors, 0);
    if (found != nullptr) Py_DecRef(found);
    return found;
  }

  Tensor a_{0x1000, {4, 128}}, b_{0x2000, {8, 128}}, sfa_{0x3000, {4, 1}, kDlFloat},
      sfb_{0x4000, {1, 1}, kDlFloat}, d_{0x5000, {4, 8}, 4};
  PyObject* table_ = nullptr;
  PyObject* launcher_ = nullptr;
};

TEST_F(Shortcut, ACallIsLaunchedAndBoundTheSecondTime) {
  EXPECT_EQ(call(arguments()), &none);
  ASSERT_TRUE(remember(arguments()));
  for (const bool bound : {false, true, true}) {
    EXPECT_EQ(call(arguments()), &d_.object);
    const Launch& last = launches.back();
    EXPECT_EQ(last.bound, bound);
    EXPECT_EQ(last.args.a.rows, 77);
    EXPECT_EQ(last.args.a.data, reinterpret_cast<void*>(0x1000));
    EXPECT_EQ(last.args.sfb.data, reinterpret_cast<void*>(0x4000));
    EXPECT_EQ(last.args.d.data, reinterpret_cast<void*>(0x5000));
    EXPECT_EQ(last.stream, reinterpret_cast<void*>(0x70));
  }
  d_.object.tensor.byte_offset = 0x100;  // another place, as aligned
  EXPECT_EQ(call(arguments()), &d_.object);
  EXPECT_FALSE(launches.back().bound);
  EXPECT_EQ(launches.back().args.d.data, reinterpret_cast<void*>(0x5100));
  a_.object.type = &parameter_type;
  EXPECT_EQ(call(arguments()), &d_.object);
  EXPECT_EQ(bounds, 2);
}

TEST_F(Shortcut, WhateverIsDifferentIsNotFound) {
  ASSERT_TRUE(remember(arguments()));
  const auto is_another = [&](auto& value, auto other) {
    const auto kept = value;
    value = other;
    EXPECT_EQ(call(arguments()), &none);
    value = kept;
    EXPECT_EQ(call(arguments()), &d_.object);
  };
  is_another(a_.shape[0], 5);
  is_another(a_.strides[0], 256);
  is_another(a_.object.tensor.code, std::uint8_t{11});
  is_another(a_.object.tensor.bits, std::uint8_t{16});
  is_another(a_.object.tensor.lanes, std::uint16_t{2});
  is_another(a_.object.tensor.dimensions, 1);
  is_another(a_.object.tensor.dimensions, 4);
  is_another(a_.object.tensor.device, 1);
  is_another(a_.object.tensor.device_type, 1);
  is_another(a_.object.tensor.byte_offset, std::uint64_t{8});
  is_another(a_.object.type, &other_type);
  is_another(a_.object.unreadable, true);
  is_another(a_.object.negates, true);
  is_another(sfa_.object.negates, true);
  is_another(d_.object.negates, true);
  is_another(stream_error, 1);
  is_another(refuse, octet_code{OCTET_DEVICE_ERROR});
  std::vector<PyObject*> few = arguments();
  few.pop_back();
  EXPECT_EQ(call(few), &none);
  EXPECT_EQ(call({}), &none);
  std::vector<PyObject*> more = arguments();
  more.push_back(&none);
  EXPECT_EQ(call(more), &d_.object);  // what is None behind the others is not there
  more.back() = &a_.object;
  EXPECT_EQ(call(more), &none);
  more.resize(40, &a_.object);
  EXPECT_EQ(call(more), &none);
  EXPECT_FALSE(remember(more));
  EXPECT_FALSE(remember({&a_.object}));
  a_.object.unreadable = true;
  EXPECT_FALSE(remember(arguments()));
  EXPECT_EQ(errors, 0);
}

TEST_F(Shortcut, KindsAreApart) {
  ASSERT_TRUE(remember(arguments()));
  PyObject* const other = octet_python_launcher(table_, 2);
  EXPECT_EQ(call(arguments(), other), &none);
  Py_DecRef(other);
}

TEST_F(Shortcut, WhatMakesAResultIsHandedOut) {
  std::vector<PyObject*> without = arguments();
  without.back() = &none;
  without.push_back(&sfa_.object);
  ASSERT_TRUE(remember(without, &maker));
  EXPECT_EQ(call(without), &maker);
  EXPECT_TRUE(launches.empty());
  ASSERT_TRUE(remember(without, &maker));  // takes the other's place
  EXPECT_EQ(maker.references, 2);
}

TEST_F(Shortcut, ALaunchThatCannotBeBoundIsMadeAllTheSame) {
  ASSERT_TRUE(remember(arguments()));
  refuse_bind = OCTET_NOT_PREPARED;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(arguments()), &d_.object);
  EXPECT_FALSE(launches.back().bound);
  refuse_bind = OCTET_OK;
}

TEST_F(Shortcut, RememberingHasAnEnd) {
  for (std::int64_t rows = 1; rows < 100; ++rows) {
    a_.shape[0] = rows;
    ASSERT_TRUE(remember(arguments()));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(call(arguments()), &d_.object);
    EXPECT_LE(context_object.references, 17);
    EXPECT_LE(bounds, 17);
  }
  for (std::uint64_t place = 0; place < 100; ++place) {
    d_.object.tensor.byte_offset = 16 * place;
    for (int i = 0; i < 3; ++i) call(arguments());
    EXPECT_LE(bounds, 17);
  }
}

TEST_F(Shortcut, ThreadsLaunchAndForgetAtOnce) {
  interpreter_lock.unlock();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensor a(0x1000, {t + 1, 128});
      for (std::intptr_t i = 0; i < 300; ++i) {
        const Tensor d(0x10000 + 16 * (i % 7), {t + 1, 8}, 4);
        std::vector<PyObject*> items = arguments();
        items[0] = const_cast<PyObject*>(&a.object);
        items[4] = const_cast<PyObject*>(&d.object);
        const std::lock_guard lock(interpreter_lock);
        if (call(items) == &none) {
          EXPECT_TRUE(remember(items));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  interpreter_lock.lock();
  EXPECT_GT(launches.size(), 1000u);
}

// As Python before 3.14 does with a daemon thread: what it holds is never let go, but nothing
// aborts.
TEST_F(Shortcut, AThreadThatOutlivesTheInterpreterJustEnds) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "leaks what the thread holds";
#endif
  ASSERT_TRUE(remember(arguments()));
  const std::size_t before = launches.size();
  interpreter_lock.unlock();
  std::thread thread([&] {
    interpreter_lock.lock();
    interpreter_has_ended = true;
    call(arguments());
    ADD_FAILURE() << "came back";
  });
  thread.join();
  interpreter_has_ended = false;
  interpreter_lock.lock();
  EXPECT_EQ(launches.size(), before + 1);
  Py_DecRef(&context_object);  // of the call that the thread held
}

TEST(ShortcutSizes, AnotherLibrarysStructsAreRefused) {
  const octet_python_api api = {
      &exchange,
      {&tensor_type, nullptr},
      &is_neg,
      &none,
      bind,
      destroy,
      run,
      gemm,
      16,
      {sizeof(octet_gemm_problem), sizeof(octet_gemm_plan), sizeof(octet_gemm_args) + 8}};
  EXPECT_EQ(octet_python_table(&api), &none);
  Py_DecRef(&none);
}

}  // namespace
