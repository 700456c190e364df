// Lays out views in one buffer: grouped by dtype, in the order in which they were asked for and without gaps,
// so that neighbours join into few ranges when footprints are united; columnwise planes come last in theirs,
// since backward reads them without the rowwise ones. Each group begins at a multiple of 256 bytes.
#pragma once

#include <vector>

#include "impl/numerics/mx.h"
#include "impl/runtime/runtime.h"

namespace gatherfuzz {

// Both planes of an MXFP8 tensor [rows, cols].
struct MxViews {
  View<e4m3> rowwise;
  View<e8m0> rowwise_scale;
  View<e4m3> columnwise;
  View<e8m0> columnwise_scale;
  bool operator==(const MxViews&) const = default;
};

class BufferPlan {
 public:
  // The views are filled in by `allocate` and must stay where they are until then.
  template <class T>
  void add(View<T>& view, int count) {
    plan(view, count, dtype_of<T>, views_);
  }
  void add(View<real>& view, int count, DType dtype) { plan(view, count, dtype, views_); }
  void add(MxViews& views, int rows, int cols);

  // Allocates one buffer for all views. `name` must outlive the runtime.
  BufferId allocate(Runtime& runtime, const char* name, Fill fill) const;

 private:
  static void plan(Operand& view, int count, DType dtype, std::vector<Operand*>& views);

  std::vector<Operand*> views_, columnwise_;
};

}  // namespace gatherfuzz
