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
  // The model must outlive the passes, and the passes every graph that captured one of their ops.
  Passes(const Model& model, bool coarse) : model_(model), coarse_(coarse) {}

  void forward(Runtime& runtime, StreamId stream, int module, int slot, Site site = Site::here());
  void backward(Runtime& runtime, StreamId stream, int module, int slot, float coefficient,
                Site site = Site::here());

  // Records anew from now on: the model's parameters moved. What graphs hold stays as it was.
  void forget() { recorded_.clear(); }

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
  void launch(Runtime& runtime, StreamId stream, const Key& key, Site site);

  const Model& model_;
  bool coarse_;
  std::map<Key, const Composite*> recorded_;
  std::vector<std::unique_ptr<Composite>> composites_;  // never shrinks
};

}  // namespace gatherfuzz
