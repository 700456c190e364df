#include "properties/violation.h"

#include <algorithm>

namespace gatherfuzz {

const Violation& Verdicts::first() const {
  return *std::min_element(found.begin(), found.end(),
                           [](const Violation& a, const Violation& b) { return a.failure < b.failure; });
}

}  // namespace gatherfuzz
