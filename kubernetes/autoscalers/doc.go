// Package autoscalers reads VerticalPodAutoscalers: what one says of a container, and which one changes a pod.
//
// # Problem
//
// Two programs that resize one pod undo each other's limits. Where the request goes with the limit, as in a Guaranteed pod, a pod whose
// limit was raised is evicted for it. Where it does not, the autoscaler keeps the raised ratio of limit to request at its next resize.
//
// # Rule
//
// [Controlling] finds the object that changes a container's CPU: the oldest in the pod's namespace whose target is the pod's owner and
// whose updateMode is neither Off nor Initial, as the autoscaler's updater does. Who finds one leaves the pod to it.
//
// # Worked example
//
// The pod cart-7d9c5b8f6-x2x4x is of the Deployment cart, and VerticalPodAutoscaler cart targets that with updateMode InPlaceOrRecreate.
// Its container app is controlled: "VerticalPodAutoscaler cart (updateMode InPlaceOrRecreate)". With the container policy {mode: "Off"},
// or controlledResources: [memory], it is not; nor with controlledValues: RequestsOnly, unless the pod is Guaranteed.
//
// # Limits
//
// The pod's owner is what package podowner tells. A startupBoost is not looked for: the autoscaler takes that back once.
//
// # Sources
//
// k8s.io/autoscaler/vertical-pod-autoscaler v1.8.1: RunOnce in pkg/updater/logic, GetControllingVPAForPod and Stronger in pkg/utils/vpa.
package autoscalers
