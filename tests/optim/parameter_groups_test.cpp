#include "runtime/optim/parameter_groups.h"

#include "tests/support/catch.h"

namespace dstrain {
namespace {

using Catch::Matchers::ContainsSubstring;
using optim::ParameterGroup;
using optim::ParameterGroupId;
using optim::ParameterGroups;

optim::Optimizer adamw(double weight_decay) {
  return optim::Optimizer(rules::Adam::Settings{.weight_decay = weight_decay});
}

template <class... Group>
std::vector<ParameterGroup> list(Group... groups) {
  std::vector<ParameterGroup> all;
  (all.push_back(std::move(groups)), ...);
  return all;
}

TEST_CASE("Parameter groups: each has its names and one has the rest", "[optim][groups]") {
  const ParameterGroups groups(list(ParameterGroup{.optimizer = adamw(0), .names = {"a", "b"}},
                                    ParameterGroup{.optimizer = adamw(0.1)},
                                    ParameterGroup{.names = {"c"}}));
  CHECK(groups.count() == 3);
  CHECK(groups.group_of("b") == ParameterGroupId{0});
  CHECK(groups.group_of("other") == ParameterGroupId{1});
  CHECK(groups.group_of("c") == ParameterGroupId{2});
  CHECK(groups.trains(ParameterGroupId{0}));
  CHECK_FALSE(groups.trains(ParameterGroupId{2}));
  CHECK(groups.state_names().size() == 2);
  CHECK_THROWS_WITH(groups.optimizer(ParameterGroupId{2}), ContainsSubstring("frozen"));
}

TEST_CASE("Parameter groups: a rule sees the rate of its group", "[optim][groups]") {
  const ParameterGroups groups(
      list(ParameterGroup{.optimizer = adamw(0.1), .rate_factor = 0.25, .names = {"a"}},
           ParameterGroup{}, ParameterGroup{.optimizer = adamw(0.1), .names = {"b"}}));
  const auto scalars = groups.scalars({.number = 3, .learning_rate = 0.01});
  REQUIRE(scalars.size() == 3);
  CHECK(scalars[ParameterGroupId{0}] == adamw(0.1).scalars({.number = 3, .learning_rate = 0.0025}));
  CHECK(scalars[ParameterGroupId{2}] == adamw(0.1).scalars({.number = 3, .learning_rate = 0.01}));
}

TEST_CASE("Parameter groups: biases and norms are spared where the settings say so",
          "[optim][groups]") {
  config::OptimizerSettings adam{rules::Adam::Settings{.weight_decay = 0.1}, false};
  const ParameterGroups groups = optim::make_parameter_groups(adam, {"b"});
  REQUIRE(groups.count() == 2);
  const auto scalars = groups.scalars({.number = 3, .learning_rate = 0.01});
  CHECK(scalars[groups.group_of("w")] == adamw(0.1).scalars({.number = 3, .learning_rate = 0.01}));
  CHECK(scalars[groups.group_of("b")] == adamw(0).scalars({.number = 3, .learning_rate = 0.01}));
  CHECK(optim::make_parameter_groups(adam, {}).count() == 1);
  adam.decays_all = true;
  CHECK(optim::make_parameter_groups(adam, {"b"}).count() == 1);
  adam = {rules::Adam::Settings{}, false};  // there is nothing to spare anything from
  CHECK(optim::make_parameter_groups(adam, {"b"}).count() == 1);
  CHECK(optim::make_parameter_groups({rules::Lamb::Settings{.weight_decay = 0.1}}, {"b"}).count() ==
        1);
}

TEST_CASE("Parameter groups: what is ambiguous is refused", "[optim][groups]") {
  CHECK_THROWS_WITH(
      ParameterGroups(list(ParameterGroup{.names = {"a"}}, ParameterGroup{.names = {"b", "a"}})),
      ContainsSubstring("a is in two groups"));
  CHECK_THROWS_WITH(ParameterGroups(list(ParameterGroup{}, ParameterGroup{})),
                    ContainsSubstring("what is left"));
  CHECK_THROWS_WITH(
      ParameterGroups(list(ParameterGroup{.optimizer = adamw(0), .names = {"a"}},
                           ParameterGroup{.optimizer = optim::Optimizer(rules::Lion::Settings{})})),
      ContainsSubstring("different states"));
  const ParameterGroups partial(list(ParameterGroup{.optimizer = adamw(0), .names = {"a"}}));
  CHECK_THROWS_WITH(partial.group_of("b"), ContainsSubstring("b is in no group"));
}

}  // namespace
}  // namespace dstrain
