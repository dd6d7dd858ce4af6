// What of CPython's and DLPack's binary interfaces the short way of Python's calls needs. Written
// down here so that one binary serves every CPython from 3.9 on and none of their headers is needed
// to build it. All of it is in what both keep unchanged from version to version.
//
// The functions are weak: whoever loads the library has them, since it is Python. Where that is not
// so (a program that hides Python's symbols from others) they are null, and there is no short way.
#pragma once

#include <cstddef>
#include <cstdint>

struct PyObject;

extern "C" {

struct PyMethodDef {
  const char* name;
  PyObject* (*function)(PyObject* self, PyObject* const* arguments, std::ptrdiff_t count);
  int flags;
  const char* doc;
};
constexpr int kFastCall = 0x0080;  // METH_FASTCALL

[[gnu::weak]] PyObject* PyCFunction_NewEx(PyMethodDef* method, PyObject* self, PyObject* module);
[[gnu::weak]] PyObject* PyCFunction_GetSelf(PyObject* function);
[[gnu::weak]] PyObject* PyCapsule_New(void* pointer, const char* name, void (*end)(PyObject*));
[[gnu::weak]] void* PyCapsule_GetPointer(PyObject* capsule, const char* name);
[[gnu::weak]] PyObject* PyObject_CallFunctionObjArgs(PyObject* function, ...);
[[gnu::weak]] int PyObject_IsTrue(PyObject* object);
[[gnu::weak]] PyObject* PyObject_Type(PyObject* object);
[[gnu::weak]] PyObject* PyTuple_GetItem(PyObject* tuple, std::ptrdiff_t place);
[[gnu::weak]] std::ptrdiff_t PyTuple_Size(PyObject* tuple);
[[gnu::weak]] void Py_IncRef(PyObject* object);
[[gnu::weak]] void Py_DecRef(PyObject* object);
[[gnu::weak]] void PyErr_Clear();
[[gnu::weak]] void* PyEval_SaveThread();
[[gnu::weak]] void PyEval_RestoreThread(void* state);

struct DLTensor {
  void* data;
  std::int32_t device_type, device;
  std::int32_t dimensions;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
constexpr std::int32_t kDlCuda = 2;

// Version 1 of the table that a framework's tensor type names in `__dlpack_c_exchange_api__`.
struct DLPackExchange {
  std::uint32_t major, minor;
  DLPackExchange* older;
  void *allocate, *to_managed, *from_managed;
  int (*read)(PyObject* tensor, DLTensor* out);  // borrows; needs the interpreter lock
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** out);
};

}  // extern "C"

inline bool python_is_there() {
  return PyCFunction_NewEx && PyCFunction_GetSelf && PyCapsule_New && PyCapsule_GetPointer &&
         PyObject_CallFunctionObjArgs && PyObject_IsTrue && PyObject_Type && PyTuple_GetItem &&
         PyTuple_Size && Py_IncRef && Py_DecRef && PyErr_Clear && PyEval_SaveThread &&
         PyEval_RestoreThread;
}
