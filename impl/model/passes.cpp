#include "impl/model/passes.h"

#include <bit>

namespace gatherfuzz {

namespace {

class StreamSink : public OpSink {
 public:
  StreamSink(Runtime& runtime, StreamId stream) : runtime_(runtime), stream_(stream) {}
  void submit(const OpType& type, const void* op, Site site) override {
    runtime_.submit(stream_, type, op, site);
  }

 private:
  Runtime& runtime_;
  StreamId stream_;
};

}  // namespace

void Passes::forward(Runtime& runtime, StreamId stream, int module, int slot, Site site) {
  if (coarse_) {
    launch(runtime, stream, {module, false, is_layer(module) ? 0 : slot, 0}, site);
  } else {
    StreamSink sink(runtime, stream);
    model_.forward(sink, module, slot);
  }
}

void Passes::backward(Runtime& runtime, StreamId stream, int module, int slot, float coefficient, Site site) {
  if (coarse_) {
    const bool is_output = module + 1 == model_.modules();
    launch(runtime, stream,
           {module, true, is_layer(module) ? 0 : slot, is_output ? std::bit_cast<uint32_t>(coefficient) : 0},
           site);
  } else {
    StreamSink sink(runtime, stream);
    model_.backward(sink, module, slot, coefficient);
  }
}

void Passes::launch(Runtime& runtime, StreamId stream, const Key& key, Site site) {
  const Composite& body = recorded(key);
  const CompositeOp op{&body};
  runtime.submit(stream, body.type, &op, site);
}

const Composite& Passes::recorded(const Key& key) {
  std::shared_ptr<const Composite>& entry = recorded_[key];
  if (entry == nullptr) {
    if (like_ != nullptr && !moved_ && !like_->moved_) {
      const auto theirs = like_->recorded_.find(key);
      if (theirs != like_->recorded_.end()) entry = theirs->second;
    }
    if (entry == nullptr) entry = record(key);
    composites_.push_back(entry);
  }
  return *entry;
}

std::shared_ptr<const Composite> Passes::record(const Key& key) const {
  CompositeRecorder recorder(name(key));
  if (key.backward) {
    model_.backward(recorder, key.module, key.slot, std::bit_cast<float>(key.coefficient));
  } else {
    model_.forward(recorder, key.module, key.slot);
  }
  return recorder.finish();
}

const char* Passes::name(const Key& key) const {
  if (key.module == 0) return key.backward ? "embedding_backward" : "embedding_forward";
  if (is_layer(key.module)) return key.backward ? "layer_backward" : "layer_forward";
  return key.backward ? "output_backward" : "output_forward";
}

}  // namespace gatherfuzz
