// Package pooleddemand is a plugin of kube-scheduler that filters and scores nodes by what their pods want together, which is
// measured, instead of by what they request.
//
// # Rule
//
// That of package nodefit, with the figures of NodeDemands (package nodedemand). Of a container that its node tells of these
// count, in phases of the day that it was not seen in its service's; of one that no node tells of those of its service, on all
// nodes; and else its request. A node that has been silent for longer than [Args.MaxAge] tells nothing.
//
// It is off unless a profile sets [Args.MaxRequestsRatio] above 1: then it only scores. With it a node may take pods whose
// requests exceed what it can allocate, up to that ratio, and each pod that makes it so is told by an event. A node whose pods
// are expected to want more CPUs than it has is refused, also where requests would fit.
//
// # In the place of NodeResourcesFit
//
// NodeResourcesFit refuses a node whose requests are full. In Kubernetes 1.36 its argument ignoredResources is for extended
// resources only, and never for CPU (fitsRequest in pkg/scheduler/framework/plugins/noderesources/fit.go). So a profile with a
// ratio disables its Filter, and this plugin asks the exported function Fits of the same package, of which it drops the answer
// on CPU alone. Memory, ephemeral storage, the number of pods and extended resources are refused as ever. A profile that forgets
// to disable it lets nothing more through than before. Its Score stays.
//
// # Limits
//
// A kubelet checks requests again, by the same function and the Node as the API server has it, and refuses a pod that exceeds
// them with OutOfcpu (AdmissionCheck, called in pkg/kubelet/lifecycle/predicate.go). So a ratio above 1 needs nodes whose
// status.allocatable was raised in the API server, as admission webhooks for overcommitment do. For demand a node has never more
// than its capacity.
//
// The daemons of a node are not pods: only what status.allocatable leaves out is kept for them. What a refused pod waits for may
// come with a NodeDemand, which does not wake it: it is tried again after five minutes. Whoever may write NodeDemands can make
// a node look idle.
//
// # How nodes tell
//
// See docs/results/scheduler.md for what an annotation, an object for each node and an aggregated API cost.
package pooleddemand
