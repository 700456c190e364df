// What is derived from the struct of an op: its members, its footprint, its coefficients.
#include "impl/runtime/fields.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "impl/runtime/collective.h"
#include "impl/runtime/composite.h"
#include "impl/runtime/op_type.h"

namespace gatherfuzz {
namespace {

struct OneMember {
  int a;
};
struct Twenty {
  char a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t;
};
struct Mixed {
  Read<real> source;
  Coefficient factor;
  uint64_t seed;
  Write<raw> target;
  bool flag;
};

static_assert(kFieldCount<OneMember> == 1);
static_assert(kFieldCount<Twenty> == 20);
static_assert(kFieldCount<Mixed> == 5);
static_assert(kFieldCount<const Mixed> == 5);
static_assert(kFieldCount<AllGather> == 4);
static_assert(kFieldCount<ReduceScatter> == 5);

TEST(FieldsTest, MembersAreVisitedInOrderAndByReference) {
  Twenty object{};
  char next = 'a';
  for_each_field(object, [&](char& field) { field = next++; });
  EXPECT_EQ(std::string(&object.a, 20), "abcdefghijklmnopqrst");
  const OneMember one{5};
  for_each_field(one, [](const int& field) { EXPECT_EQ(field, 5); });
}

struct Typed {
  static constexpr const char* kName = "typed";
  int32_t rows = 0;
  Weight<e4m3, Plane::columnwise> weight;
  Consume<float, Content::reduced> grads;
  Coefficient first;
  Update<float, Content::moment> moment;
  Accumulate<real> main_grad;
  Write<bf16> out;
  Coefficient second;

  void host(HostMemory&) const {}
};

TEST(OpTypeTest, FootprintFollowsFromTheTypes) {
  const OpType& type = op_type<Typed>();
  EXPECT_STREQ(type.name, "typed");
  EXPECT_EQ(type.size, sizeof(Typed));
  EXPECT_FALSE(type.collective());
  ASSERT_EQ(type.operands.size(), 5u);
  const OperandField expected[] = {
      {offsetof(Typed, weight), Mode::read, Content::weights, Plane::columnwise, false},
      {offsetof(Typed, grads), Mode::read, Content::reduced, Plane::none, true},
      {offsetof(Typed, moment), Mode::update, Content::moment, Plane::none, false},
      {offsetof(Typed, main_grad), Mode::accumulate, Content::grad, Plane::none, false},
      {offsetof(Typed, out), Mode::write, Content::activation, Plane::none, false},
  };
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(type.operands[i].offset, expected[i].offset) << i;
    EXPECT_EQ(type.operands[i].mode, expected[i].mode) << i;
    EXPECT_EQ(type.operands[i].content, expected[i].content) << i;
    EXPECT_EQ(type.operands[i].plane, expected[i].plane) << i;
    EXPECT_EQ(type.operands[i].consumes, expected[i].consumes) << i;
  }
  ASSERT_EQ(type.coefficients.size(), 2u);
  EXPECT_EQ(type.coefficients[0], offsetof(Typed, first));
  EXPECT_EQ(type.coefficients[1], offsetof(Typed, second));
}

TEST(OpTypeTest, OneTypeForEachOp) {
  EXPECT_EQ(&op_type<Typed>(), &op_type<Typed>());
  EXPECT_NE(static_cast<const void*>(&op_type<AllGather>()), &op_type<ReduceScatter>());
  EXPECT_TRUE(op_type<AllReduce>().collective());
  EXPECT_TRUE(op_type<AllReduce>().coefficients.empty());
}

TEST(OpTypeTest, EmptyOperandsAreNoAccesses) {
  Typed op;
  op.moment = make_view<float>(3, 8, 2);
  std::vector<Operand> seen;
  for_each_access(op_type<Typed>(), &op, [&](const Operand& operand, const OperandField& field) {
    seen.push_back(operand);
    EXPECT_EQ(field.mode, Mode::update);
  });
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].buffer, 3u);
  EXPECT_EQ(seen[0].begin, 8u);
  EXPECT_EQ(seen[0].end(), 16u);
}

TEST(ViewTest, SlicesAndTagsCountElements) {
  const View<bf16> view = make_view<bf16>(4, 100, 10);
  EXPECT_EQ(view.bytes, 20u);
  EXPECT_EQ(view.count(), 10u);
  const View<bf16> slice = view.slice(3, 2).tagged(6);
  EXPECT_EQ(slice.begin, 106u);
  EXPECT_EQ(slice.bytes, 4u);
  EXPECT_EQ(slice.tag, 7);
  const View<real> any = make_real_view(4, 8, 2, DType::f32);
  EXPECT_EQ(any.slice(1, 1).begin, 12u);
  static_assert(std::is_convertible_v<View<float>, View<real>> &&
                std::is_convertible_v<View<bf16>, View<real>>);
  static_assert(!std::is_convertible_v<View<uint64_t>, View<real>> &&
                !std::is_convertible_v<View<float>, View<bf16>>);
  static_assert(std::is_convertible_v<View<real>, View<raw>> &&
                !std::is_convertible_v<View<raw>, View<real>>);
}

}  // namespace
}  // namespace gatherfuzz
