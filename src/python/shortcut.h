// The short way of Python's one-shot calls: what `octet._shortcut` takes from liboctet_python.so.
//
// A call from Python costs little more than its launch if nothing of it is done in Python: here a
// function that Python calls directly (no ctypes between) reads the tensors through DLPack's table
// of C functions, finds what was remembered of calls like it, and launches. Everything else, and
// whatever is not understood at once, is left to the long way in Python, which has the sentences.
//
// Everything here is called with the interpreter lock, and lets it go while a launch is queued.
#pragma once

#include <cstdint>

#include "octet/octet.h"
#include "python/cpython.h"

extern "C" {

// What the table works with, all borrowed for as long as it lives.
struct octet_python_api {
  const DLPackExchange* exchange;
  PyObject* tensor_types[2];  // exactly these; the second may be null
  PyObject* is_neg;           // tensor -> bool
  PyObject* none;
  octet_code (*bind)(octet_cuda_context*, const octet_gemm_plan*, const octet_gemm_args*,
                     octet_cuda_bound**);
  void (*destroy)(octet_cuda_bound*);
  octet_code (*run)(const octet_cuda_context*, const octet_cuda_bound*, void*);
  octet_code (*gemm)(octet_cuda_context*, const octet_gemm_problem*, const octet_gemm_args*, void*);
  std::int64_t most;      // calls, and launches bound for them, that are remembered
  std::int64_t sizes[3];  // of octet_gemm_problem, _plan, _args, as the caller knows them
};

// A table of calls, as a capsule; None without Python's functions, or where sizes differ.
OCTET_API PyObject* octet_python_table(const octet_python_api* api);

// A function of Python, launch(a, b, sfa, sfb, out, ...): launches a call like one that was
// remembered and returns out; where out is None, returns what was remembered to make one, and
// launches nothing; returns None for everything else. kind: what is called with which options.
OCTET_API PyObject* octet_python_launcher(PyObject* table, std::int64_t kind);

// Remembers a call. arrays: a tuple, as launch() takes them; places: of each, the byte of
// octet_gemm_args where its pointer goes, or -1; owner: keeps the context alive; maker: makes out,
// or None. Returns 1, or 0 where the arrays are not such that launch() could read them.
OCTET_API std::int32_t octet_python_remember(
    PyObject* launcher, PyObject* arrays, const std::int32_t* places,
    const octet_gemm_problem* problem, const octet_gemm_plan* plan, const octet_gemm_args* args,
    octet_cuda_context* context, PyObject* owner, PyObject* maker);

}  // extern "C"
