// Package pooleddemand is a plugin of kube-scheduler that filters and scores nodes by what their pods want together, which is
// measured, instead of by what they request.
//
// # Rule
//
// That of package nodefit, with the figures of NodeDemands (package nodedemand). Of a container that its node tells of these
// count, in phases of the day that it was not seen in its service's; of one that no node tells of those of its service, on all
// nodes; and else its request. Of a pod that requests as a whole (spec.resources, KEP-2837), containers of which nothing is known count
// together as what the requests of the others leave of that. A node that has been silent for longer than [Args.MaxAge] tells nothing.
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
// than its capacity. A node whose kubelet refused a pod so gets no pod beyond its requests for 30 minutes; who makes pods, such as a
// Deployment, makes another one meanwhile, and a refused pod stays as failed. The pods that failed are watched for that.
//
// The daemons of a node are not pods: only what status.allocatable leaves out is kept for them. What a refused pod waits for may
// come with a NodeDemand, which does not wake it: it is tried again after five minutes. Whoever may write NodeDemands can make
// a node look idle; the chart's policy lets each agent write that of its own node only.
//
// The arguments of NodeResourcesFit are not read. Each profile with the plugin watches NodeDemands by itself.
//
// # How nodes tell
//
// By an object for each node, of which only schedulers take note. The chart's container demand writes it (kubernetes/demandfeed).
// One update of ten containers, of which the spec has 3,622 bytes, was measured on a real API server (1.36.3), with Nodes of 50
// images; bytes are on the wire, TLS included:
//
//	                       writer    each watcher   1,000 nodes that tell each five minutes (200 requests a minute)
//	annotation of the Node 16,337 B     12,255 B    3.3 MB written and 2.5 MB a minute for each that watches Nodes
//	object NodeDemand       8,002 B      4,193 B    1.6 MB written and 0.8 MB a minute for each scheduler's profile
//
// Since then the writer also reads the Node's metadata once for five minutes, from the API server's memory; that was not measured.
//
// Nodes are watched by many more programs than schedulers, and the API server stores the whole Node anew. An aggregated API would
// store nothing; by the size of the spec it would send 3.6 MB for each time that a scheduler reads 1,000 nodes (0.7 MB a minute
// each five minutes), and as many requests to agents. It was not measured. It would be one more server that must run, and one that
// knows nothing after a start.
//
//	UNTHROTTLE_KUBERNETES_BIN=DIR go test -run xxx -bench Feed -benchtime 200x ./realapi
package pooleddemand
