// How far the loss and the local gradients of two honest implementations may differ, given the same weights
// and batch ("hop 2"). Derived from formats and term counts; nothing here is fitted.
//
// Honest implementations differ in the order and width of FP32 sums and in exp, log and sqrt by a few units
// in the last place. To first order:
//  - FP32. A sum of n terms has relative error at most n * 2^-24; the sums along the longest path from
//  weights
//    to the quantity add up.
//  - bf16. A result that FP32 error (or an earlier flip) pushes over a rounding boundary flips by one unit in
//    the last place, relatively at most 2^-7. The bound lets every element flip at every one of the D
//    sequential rounding points: sqrt(D) * 2^-7.
//  - mxfp8. An operand that differs by one bf16 unit (2^-7) crosses the boundary between two E4M3 codes, at
//  most
//    2^-3 apart, with probability 2^-7 / 2^-3, and then differs by 2^-3: root mean square sqrt(2^-7 * 2^-3) =
//    2^-5 at each sequential quantization point, beside the bf16 flips.
//  - Loss. A token's loss is the difference of log-sum-exp and one logit; each moves by at most the deviation
//    of logits, d * logits_rms: sqrt(2) * d * logits_rms, d being the forward deviation. Tokens are not
//    assumed to average out, since equal tokens flip together.
//  - Gradients. dlogits = p - onehot moves relatively by at most the absolute deviation of the logits, hence
//  a
//    second term d * logits_rms beside the deviation of the path itself.
//
// Assumptions. Flips at different points are independent (root sum square). Every op passes a relative L2
// deviation on unchanged: no cancellation beyond that of random signs. A residual stream keeps operands
// within about one bf16 unit, so that one flipped E4M3 code does not flip the next ones at a higher rate;
// without it the deviation would tend to E4M3's own step. No flip moves a block's amax over the boundary of
// its scale. They hold for the whole of a parameter's gradient, not for single elements. Checked, not proven:
// bounds_test.cpp measures the share of the bound that honest differences use and by how much faults exceed
// it.
//
// Where it ends. In wider samples honest differences used up to 0.62 of it (mxfp8, floor). Weights one step
// old exceed it after the first Adam step at 1e-3; after some tens of steps, with initial weights of
// deviation 0.1 or more, they do not under bf16 and mxfp8 (from 0.7 of the bound), and it grows as the square
// root of num_layers. Comparing the bytes of weights is what finds a stale weight; this finds wrong
// gradients.
#pragma once

#include "reference/shape.h"

namespace gatherfuzz::reference {

struct Bounds {
  float loss = 0;               // absolute, in nats
  float gradient_relative = 0;  // of each parameter: |difference| / |reference|, L2
};

// logits_rms: root mean square of the reference's logits (LossAndGradients::logits_rms).
Bounds hop2_bounds(const Shape& shape, Precision precision, float logits_rms);

}  // namespace gatherfuzz::reference
