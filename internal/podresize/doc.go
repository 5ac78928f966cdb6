// Package podresize is the CPU limit of a container as its pod's spec has it, and what became of a resize of it. It is
// pure.
//
// Problem: the limit that the kernel enforces is the kubelet's copy of the pod's spec. Who raises the kernel's alone is
// overwritten by the next resize, and neither the scheduler nor an autoscaler sees it.
//
// Rule: a resize is asked for in the spec, and done when the kubelet reports the same limit ([CPU.Done]). What the
// kubelet will not do, or not now, is an error; the caller then puts the spec back.
//
// Worked example: shop/cart/app has limits.cpu 500m. 1 is written; the status still has 500m, so the resize is under
// way. Then the kubelet says PodResizePending, reason Infeasible: the resize is [Refused], and 500m is written again.
//
// Limits: a resize that restarts the container, pods with CPU resources of their own ([CPU.Fixed]), and containers that
// an autoscaler resizes ([CPU.Left]) are not planned.
//
// Sources: KEP-1287; kubernetes 1.36 pkg/kubelet/allocation, pkg/apis/core/validation (ValidatePodResize).
package podresize
