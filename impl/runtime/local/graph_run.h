// One launch of a graph in progress, for a drain that runs its nodes in any order that the edges allow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "impl/runtime/local/world.h"

namespace gatherfuzz {

class GraphRun {
 public:
  // `first_collective`: the number of its first collective among the rank's. keeps_edge(earlier, later) says
  // whether the machine honours an edge.
  template <class KeepsEdge>
  GraphRun(const GraphExec& graph, uint32_t first_collective, KeepsEdge&& keeps_edge)
      : nodes_(graph.nodes.size()), left_(graph.nodes.size()) {
    uint32_t collective = first_collective;
    for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
      nodes_[n].collective = collective;
      if (graph.nodes[n].type->collective()) ++collective;
      for (const uint32_t earlier : graph.after(graph.nodes[n])) {
        if (!keeps_edge(graph.nodes[earlier], graph.nodes[n])) continue;
        nodes_[earlier].next.push_back(n);
        ++nodes_[n].missing;
      }
      if (nodes_[n].missing == 0) runnable_.push_back(n);
    }
  }

  bool ended() const { return left_ == 0; }
  // Calls f(node, number of the collective that it is or that comes next) for every node that may run, in
  // order of capture.
  template <class F>
  void for_each_runnable(F&& f) const {
    for (const uint32_t n : runnable_) f(n, nodes_[n].collective);
  }
  // Picks that the node is still held back; -1: not yet looked at.
  int& hold(std::size_t node) { return nodes_[node].hold; }
  void finish(std::size_t node) {
    runnable_.erase(std::find(runnable_.begin(), runnable_.end(), node));
    for (const uint32_t later : nodes_[node].next)
      if (--nodes_[later].missing == 0)
        runnable_.insert(std::lower_bound(runnable_.begin(), runnable_.end(), later), later);
    --left_;
  }

 private:
  struct Node {
    std::vector<uint32_t> next;  // nodes that follow it
    uint32_t missing = 0;        // nodes that it follows and that have not run
    uint32_t collective = 0;
    int hold = -1;
  };
  std::vector<uint32_t> runnable_;  // ascending
  std::vector<Node> nodes_;
  std::size_t left_;
};

}  // namespace gatherfuzz
