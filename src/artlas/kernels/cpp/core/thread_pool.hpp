// A team of threads for one call, and aligned buffers.
//
// PyTorch's OpenMP workers spin for a while after each operation, and threads of our own would
// compete with them for the cores. So a call uses the OpenMP runtime that PyTorch has loaded, if
// there is one. OpenMP does not survive a fork: a forked child, like a process without OpenMP,
// starts plain threads that end with the call.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#if defined(__SSE__)
#include <immintrin.h>
#endif

namespace artlas {

// Treats denormal numbers as zero during its lifetime. Products of a kernel's smallest entries
// would otherwise cost a hundred cycles each, and sharp couplings have many.
class FlushTiny {
 public:
#if defined(__SSE__)
  FlushTiny() : before_(_mm_getcsr()) { _mm_setcsr(before_ | FLUSH_TO_ZERO | TINY_ARE_ZERO); }
  ~FlushTiny() { _mm_setcsr(before_); }
#else
  FlushTiny() {}
#endif
  FlushTiny(const FlushTiny&) = delete;

 private:
  static constexpr unsigned FLUSH_TO_ZERO = 0x8000, TINY_ARE_ZERO = 0x0040;
  unsigned before_ = 0;
};

struct OpenMP {
  void (*parallel)(void (*)(void*), void*, unsigned, unsigned);
  int (*rank)();
  int (*size)();

  static std::atomic<bool>& forked() {
    static std::atomic<bool> flag{false};
    return flag;
  }
  // the runtime in this process, or null
  static const OpenMP* loaded() {
    static const OpenMP found = [] {
      pthread_atfork(nullptr, nullptr, [] { forked() = true; });
      OpenMP omp{};
      omp.parallel = reinterpret_cast<decltype(parallel)>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
      omp.rank = reinterpret_cast<decltype(rank)>(dlsym(RTLD_DEFAULT, "omp_get_thread_num"));
      omp.size = reinterpret_cast<decltype(size)>(dlsym(RTLD_DEFAULT, "omp_get_num_threads"));
      return omp;
    }();
    const bool usable = found.parallel && found.rank && found.size && !forked();
    return usable ? &found : nullptr;
  }
};

class Team {
 public:
  explicit Team(int size) : size_(size) {}
  int size() const { return size_; }

  void wait() {
    if (size_ == 1) return;
    const unsigned phase = phase_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; phase_.load(std::memory_order_acquire) == phase; ++spins)
      if (spins > 2000) std::this_thread::yield();
  }

  // work(team, rank) on every rank of a team of at most `threads`
  template <typename Work>
  static void run(int threads, Work work) {
    Team team(threads < 1 ? 1 : threads);
    const FlushTiny flush;
    if (team.size_ == 1) return work(team, 0);
    if (const OpenMP* omp = OpenMP::loaded()) {
      struct Call {
        Team& team;
        Work& work;
        const OpenMP* omp;
      } call{team, work, omp};
      omp->parallel(
          [](void* data) {
            Call& c = *static_cast<Call*>(data);
            // inside another parallel region there are fewer threads than requested
            c.team.size_ = c.omp->size();
            const FlushTiny flush;
            c.work(c.team, c.omp->rank());
          },
          &call, unsigned(team.size_), 0);
      return;
    }
    std::vector<std::thread> others;
    others.reserve(size_t(team.size_ - 1));
    for (int rank = 1; rank < team.size_; ++rank)
      others.emplace_back([&work, &team, rank] {
        const FlushTiny flush;
        work(team, rank);
      });
    work(team, 0);
    for (auto& thread : others) thread.join();
  }

 private:
  std::atomic<int> size_;
  std::atomic<int> arrived_{0};
  std::atomic<unsigned> phase_{0};
};

// Uninitialised, aligned memory. Large blocks request huge pages for the random access to
// neighbours' rows.
template <typename T>
class Buffer {
 public:
  explicit Buffer(int64_t count) {
    const size_t bytes = (size_t(count < 1 ? 1 : count) * sizeof(T) + 63) / 64 * 64;
    const size_t align = bytes >= (size_t(8) << 20) ? size_t(2) << 20 : 64;
    data_ = static_cast<T*>(std::aligned_alloc(align, (bytes + align - 1) / align * align));
    if (!data_) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (align > 64) madvise(data_, bytes, MADV_HUGEPAGE);
#endif
  }
  Buffer(Buffer&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  Buffer(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_;
};

}  // namespace artlas
