// Package resizer resizes pods for the agent beside it, which has no rights in the API.
//
// Problem: a larger limit that the kernel alone has is undone by the kubelet's next resize. Only who may patch
// pods/resize can change the pod's spec.
//
// Rule: on a socket that the agent alone reaches it answers GET (the CPU of one container in spec and status) and PUT
// (another limit, if the spec still has the one that the agent expects). Nothing but a CPU limit can be written; in a
// Guaranteed pod the request goes with it, since the API server lets no resize change the QoS class. It keeps nothing:
// what was written, and how it is undone, is in the agent's journal. Each write is an event of the pod. The answer to GET
// names the VerticalPodAutoscaler that resizes the container: the agent then plans no resize of its own.
//
// Worked example: PUT /cpu?container=shop/cart-0/app {"from": 500, "to": 1000} makes
// spec.containers[app].resources.limits.cpu 1.
//
// Sources: kubernetes 1.36 pkg/apis/core/validation (ValidatePodResize), KEP-1287.
package resizer
