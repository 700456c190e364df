// The members of an aggregate, without a list kept by hand: counted by brace initialization, reached by
// structured bindings. Enough of C++26 reflection for op structs (up to 20 members, none of them an array).
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gatherfuzz {

namespace fields_detail {

struct AnyValue {
  template <class T>
  requires(!std::is_reference_v<T>) operator T() const;
};

template <std::size_t>
using AnyValueAt = AnyValue;

template <class T, std::size_t... I>
constexpr bool braces_take(std::index_sequence<I...>) {
  return requires {
    T{AnyValueAt<I>{}...};
  };
}

template <class T, std::size_t N = 20>
constexpr std::size_t count() {
  if constexpr (N == 0) {
    return 0;
  } else if constexpr (braces_take<T>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return count<T, N - 1>();
  }
}

}  // namespace fields_detail

template <class T>
inline constexpr std::size_t kFieldCount = fields_detail::count<std::remove_cv_t<T>>();

// Calls f with every member in order of declaration.
template <class T, class F>
constexpr void for_each_field(T& object, F&& f) {
  constexpr std::size_t n = kFieldCount<T>;
  static_assert(n > 0 && n <= 20, "an op has 1 to 20 members");
  auto each = [&f](auto&... field) { (f(field), ...); };
  // clang-format off
  if constexpr (n == 1) { auto& [a] = object; each(a); }
  else if constexpr (n == 2) { auto& [a,b] = object; each(a,b); }
  else if constexpr (n == 3) { auto& [a,b,c] = object; each(a,b,c); }
  else if constexpr (n == 4) { auto& [a,b,c,d] = object; each(a,b,c,d); }
  else if constexpr (n == 5) { auto& [a,b,c,d,e] = object; each(a,b,c,d,e); }
  else if constexpr (n == 6) { auto& [a,b,c,d,e,g] = object; each(a,b,c,d,e,g); }
  else if constexpr (n == 7) { auto& [a,b,c,d,e,g,h] = object; each(a,b,c,d,e,g,h); }
  else if constexpr (n == 8) { auto& [a,b,c,d,e,g,h,i] = object; each(a,b,c,d,e,g,h,i); }
  else if constexpr (n == 9) { auto& [a,b,c,d,e,g,h,i,j] = object; each(a,b,c,d,e,g,h,i,j); }
  else if constexpr (n == 10) { auto& [a,b,c,d,e,g,h,i,j,k] = object; each(a,b,c,d,e,g,h,i,j,k); }
  else if constexpr (n == 11) { auto& [a,b,c,d,e,g,h,i,j,k,l] = object; each(a,b,c,d,e,g,h,i,j,k,l); }
  else if constexpr (n == 12) { auto& [a,b,c,d,e,g,h,i,j,k,l,m] = object; each(a,b,c,d,e,g,h,i,j,k,l,m); }
  else if constexpr (n == 13) { auto& [a,b,c,d,e,g,h,i,j,k,l,m,o] = object; each(a,b,c,d,e,g,h,i,j,k,l,m,o); }
  else if constexpr (n == 14) { auto& [a,b,c,d,e,g,h,i,j,k,l,m,o,p] = object; each(a,b,c,d,e,g,h,i,j,k,l,m,o,p); }
  else if constexpr (n == 15) { auto& [a,b,c,d,e,g,h,i,j,k,l,m,o,p,q] = object; each(a,b,c,d,e,g,h,i,j,k,l,m,o,p,q); }
  else if constexpr (n == 16) { auto& [a,b,c,d,e,g,h,i,j,k,l,m,o,p,q,r] = object; each(a,b,c,d,e,g,h,i,j,k,l,m,o,p,q,r); }
  else if constexpr (n == 17) { auto& [a,b,c,d,e,g,h,i,j,k,l,m,o,p,q,r,s] = object; each(a,b,c,d,e,g,h,i,j,k,l,m,o,p,q,r,s); }
  else if constexpr (n == 18) { auto& [a,b,c,d,e,g,h,i,j,k,l,m,o,p,q,r,s,t] = object; each(a,b,c,d,e,g,h,i,j,k,l,m,o,p,q,r,s,t); }
  else if constexpr (n == 19) { auto& [a,b,c,d,e,g,h,i,j,k,l,m,o,p,q,r,s,t,u] = object; each(a,b,c,d,e,g,h,i,j,k,l,m,o,p,q,r,s,t,u); }
  else if constexpr (n == 20) { auto& [a,b,c,d,e,g,h,i,j,k,l,m,o,p,q,r,s,t,u,v] = object; each(a,b,c,d,e,g,h,i,j,k,l,m,o,p,q,r,s,t,u,v); }
  // clang-format on
}

}  // namespace gatherfuzz
