// The one marker for functions that both the host and the device compile.
#pragma once

#ifdef __CUDACC__
#define OCTET_HD __host__ __device__
#else
#define OCTET_HD
#endif
