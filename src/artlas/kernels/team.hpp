// Threads for one call: started when it begins, gone when it ends. Nothing outlives the call, so
// that a fork finds no half-alive pool, and PyTorch's own threads are left alone.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

namespace artlas {

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

  template <typename Work>
  static void run(int threads, Work work) {
    Team team(threads < 1 ? 1 : threads);
    std::vector<std::thread> others;
    others.reserve(team.size() - 1);
    for (int rank = 1; rank < team.size(); ++rank)
      others.emplace_back([&work, &team, rank] { work(team, rank); });
    work(team, 0);
    for (auto& thread : others) thread.join();
  }

 private:
  const int size_;
  std::atomic<int> arrived_{0};
  std::atomic<unsigned> phase_{0};
};

// Uninitialised, aligned memory; large blocks ask for huge pages, which the random access to
// neighbours' rows needs.
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
