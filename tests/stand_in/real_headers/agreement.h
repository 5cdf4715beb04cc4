#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

// Compares the stand-in's headers, included in a namespace, with NVIDIA's: a value, type or
// signature that differs does not compile. CMakeLists.txt makes the lists of declarations from the
// stand-in's headers when the build is configured, so none is left out.

namespace dstrain::stand_in::declared {

/// NVIDIA's type for one that the stand-in declares under its name.
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<T*> {
  using type = typename RealOf<T>::type*;
};
template <class T>
struct RealOf<const T> {
  using type = const typename RealOf<T>::type;
};
template <class T, std::size_t count>
struct RealOf<T[count]> {
  using type = typename RealOf<T>::type[count];
};
template <class Result, class... Arguments>
struct RealOf<Result(Arguments...)> {
  using type = typename RealOf<Result>::type(typename RealOf<Arguments>::type...);
};

}  // namespace dstrain::stand_in::declared

/// For an enumeration, a struct or a handle. Use it in the namespace.
#define DSTRAIN_DECLARED_TYPE(name) \
  template <>                       \
  struct RealOf<name> {             \
    using type = ::name;            \
  };
#define DSTRAIN_DECLARED_VALUE(name) \
  static_assert(static_cast<long long>(name) == static_cast<long long>(::name), #name);
#define DSTRAIN_DECLARED_CALL(name) \
  static_assert(std::is_same_v<RealOf<decltype(name)>::type, decltype(::name)>, #name);
/// For a member, listed by hand: the stand-in has only a part of some structs.
#define DSTRAIN_DECLARED_MEMBER(name, member)                                                   \
  static_assert(std::is_same_v<RealOf<decltype(name::member)>::type, decltype(::name::member)>, \
                #name);
/// For a struct that the stand-in has whole.
#define DSTRAIN_DECLARED_WHOLE(name) \
  static_assert(sizeof(name) == sizeof(::name) && alignof(name) == alignof(::name), #name);
