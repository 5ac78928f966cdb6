// Package realapi has tests of unthrottle-scheduler on a real API server of Kubernetes, with the objects of
// examples/kubernetes/scheduler.yaml, those that the chart makes with demand.enabled, and their rights.
//
// The variable UNTHROTTLE_KUBERNETES_BIN names the folder with etcd and kube-apiserver; without it the tests are skipped.
// `make e2e-scheduler` builds the programs and runs the tests. There is no kubelet: a pod that is bound stays so, also where a
// kubelet would refuse it.
package realapi
