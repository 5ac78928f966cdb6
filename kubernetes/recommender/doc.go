// Package recommender gives VerticalPodAutoscalers what `unthrottle fleet report` found.
//
// # Problem
//
// A VerticalPodAutoscaler takes percentiles of use, which a limit censors: a service that is stopped looks as if its limit were right. A
// fleet's report knows what was wanted. The autoscaler's updater and admission controller are there already, and take recommendations
// from any recommender that an object names.
//
// # Rule
//
// [For] makes the recommendation of one object from a [Report], as a value. An autoscaler sets requests, and limits in
// proportion to them: what
// is recommended is the report's limit times the request over the limit of the workload's template. The target is the upper
// bound of the estimate, which is surely enough, and so is the upper bound: a pod that has it is left alone. The lower bound is the
// estimate's. So a young pod is replaced only where its limit is surely too low or too high. Memory is not recommended.
//
// [Update] does that for all objects of a cluster that name the recommender. What the report does not know keeps its recommendation, and a
// condition says why. A container that the template no longer has loses its recommendation.
//
// # Worked example
//
//	spec:
//	  recommenders: [{name: unthrottle}]
//
// cart has a limit of 2 CPUs and a request of 1; the report says 0.9, between 0.8 and 1.1. The request that is
// recommended is 550m, no less than
// 400m and no more than 550m: the autoscaler makes a limit of 1100m of it.
//
// # Limits
//
// An object that controls requests only is left alone: a limit is what the report is about. So is a container without a
// limit in its template.
//
// Within the bounds the autoscaler's updater replaces a pod, too, if it is older than 12 hours and its requests are 10%
// or more from their targets. Both
// are flags of the updater, and no recommendation changes that.
//
// # Sources
//
// k8s.io/autoscaler/vertical-pod-autoscaler v1.8.1: AddPod in pkg/updater/priority (which pods are replaced),
// GetProportionalLimit in pkg/utils/vpa
// (the limit that goes with a request), deploy/vpa-v1-crd-gen.yaml (the status). kubernetes/realapi tries all of them: the
// autoscaler's own updater, admission controller and recommender beside this one, on a real API server.
package recommender
