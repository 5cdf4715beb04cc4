#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

// What the stand-in's headers declare, in a namespace beside NVIDIA's own headers: a value, a type
// or a signature that differs does not compile. Lists of what is declared are made from these
// headers when the build is configured (CMakeLists.txt), so that none is left out.

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

/// For an enumeration, a struct or a handle. To be used in the namespace.
#define DSTRAIN_DECLARED_TYPE(name) \
  template <>                       \
  struct RealOf<name> {             \
    using type = ::name;            \
  };
#define DSTRAIN_DECLARED_VALUE(name) \
  static_assert(static_cast<long long>(name) == static_cast<long long>(::name), #name);
#define DSTRAIN_DECLARED_CALL(name) \
  static_assert(std::is_same_v<RealOf<decltype(name)>::type, decltype(::name)>, #name);
/// A member, by hand: of some structs the stand-in has a part.
#define DSTRAIN_DECLARED_MEMBER(name, member)                                                   \
  static_assert(std::is_same_v<RealOf<decltype(name::member)>::type, decltype(::name::member)>, \
                #name);
/// Of one that it has whole.
#define DSTRAIN_DECLARED_WHOLE(name) \
  static_assert(sizeof(name) == sizeof(::name) && alignof(name) == alignof(::name), #name);
