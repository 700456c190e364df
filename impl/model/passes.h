// Launches a module's passes on a stream: kernel by kernel (fine), or as one composite op a pass (coarse).
// The coarse form is recorded from the same layer code, so both read, write and compute the same.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "impl/model/model.h"

namespace gatherfuzz {

class Passes {
 public:
  // The model must outlive the passes, and the passes every graph that captured one of their ops. `like`:
  // passes of another rank, or null; what they recorded is used here as well if both models are equal.
  Passes(const Model& model, bool coarse, const Passes* like = nullptr)
      : model_(model), coarse_(coarse), like_(like != nullptr && like->model_ == model ? like : nullptr) {}

  void forward(Runtime& runtime, StreamId stream, int module, int slot, Site site = Site::here());
  void backward(Runtime& runtime, StreamId stream, int module, int slot, float coefficient,
                Site site = Site::here());

  // Records anew from now on: the model's parameters moved. What graphs hold stays as it was.
  void forget() {
    recorded_.clear();
    moved_ = true;
  }

 private:
  struct Key {
    int module = 0;
    bool backward = false;
    int slot = 0;              // 0 for layers, which touch nothing of a slot
    uint32_t coefficient = 0;  // its bits; 0 where the pass has none
    auto operator<=>(const Key&) const = default;
  };

  bool is_layer(int module) const { return module > 0 && module + 1 < model_.modules(); }
  const char* name(const Key& key) const;
  const Composite& recorded(const Key& key);
  std::shared_ptr<const Composite> record(const Key& key) const;
  void launch(Runtime& runtime, StreamId stream, const Key& key, Site site);

  const Model& model_;
  bool coarse_;
  const Passes* like_;
  bool moved_ = false;  // the model is not what it was when it was compared
  std::map<Key, std::shared_ptr<const Composite>> recorded_;
  std::vector<std::shared_ptr<const Composite>> composites_;  // never shrinks
};

}  // namespace gatherfuzz
