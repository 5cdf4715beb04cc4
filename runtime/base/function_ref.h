#pragma once
#include <type_traits>
#include <utility>

namespace dstrain {

template <class Signature>
class FunctionRef;

/// A callable seen through two words, without owning or copying it; it must outlive the call.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  /// Any callable is one, but for a FunctionRef, which is copied.
  template <class F>
  // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(F&& callable)
  noexcept
      : object_(const_cast<void*>(static_cast<const void*>(&callable))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace dstrain
