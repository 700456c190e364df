#include "impl/model/buffer_plan.h"

namespace gatherfuzz {

namespace {
constexpr uint32_t kGroupAlignment = 256;
}

void BufferPlan::plan(Operand& view, int count, DType dtype, std::vector<Operand*>& views) {
  view = Operand{};
  view.dtype = dtype;
  view.bytes = static_cast<uint32_t>(count) * static_cast<uint32_t>(size_of(dtype));
  if (views.empty()) views.reserve(32);
  views.push_back(&view);
}

void BufferPlan::add(MxViews& views, int rows, int cols) {
  add(views.rowwise, rows * cols);
  add(views.rowwise_scale, rows * cols / kMxBlock);
  plan(views.columnwise, rows * cols, DType::e4m3, columnwise_);
  plan(views.columnwise_scale, rows * cols / kMxBlock, DType::e8m0, columnwise_);
}

BufferId BufferPlan::allocate(Runtime& runtime, const char* name, Fill fill) const {
  uint32_t end = 0;
  for (int dtype = 0; dtype < kNumDTypes; ++dtype) {
    end = (end + kGroupAlignment - 1) / kGroupAlignment * kGroupAlignment;
    for (const auto* views : {&views_, &columnwise_})
      for (Operand* view : *views) {
        if (view->dtype != static_cast<DType>(dtype)) continue;
        view->begin = end;
        end = view->end();
      }
  }
  const BufferId buffer = runtime.allocate(name, end, fill);
  for (const auto* views : {&views_, &columnwise_})
    for (Operand* view : *views) view->buffer = buffer;
  return buffer;
}

}  // namespace gatherfuzz
