#pragma once
#include <type_traits>
#include <utility>

namespace dstrain {

template <class Signature>
class FunctionRef;

/// A view of a callable in two words; neither owns nor copies it. The callable must outlive the
/// call.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  /// Any callable converts to it, except a FunctionRef, which is copied.
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
