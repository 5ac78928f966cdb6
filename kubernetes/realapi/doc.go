// Package realapi has tests of unthrottle-kubernetes and of the chart's objects on a real API server of Kubernetes.
//
// They start etcd and kube-apiserver on loopback, in a folder of their own, and stop them. The variable
// UNTHROTTLE_KUBERNETES_BIN names the folder with these programs; without it the tests are skipped. `make e2e-policies` builds
// the programs and runs the tests. The autoscaler's test starts kube-controller-manager, Prometheus, its adapter and KEDA too:
// UNTHROTTLE_ADAPTERS_BIN names the folder with the last three, and `make e2e-autoscaler` runs it. The test of the Vertical Pod
// Autoscaler starts that one's updater, admission controller and recommender: UNTHROTTLE_VPA_BIN names the folder with these programs and
// their objects, and `make e2e-vpa` runs it.
// The descheduler's test starts kube-controller-manager, Prometheus (UNTHROTTLE_PROMETHEUS_BIN) and the descheduler
// (UNTHROTTLE_DESCHEDULER_BIN): `make e2e-descheduler`.
//
// The objects are those of packaging/chart/golden, which are what helm makes of the chart (make e2e). So the service account has
// the chart's rights and no others. The recommender's and the descheduler's are those of examples/kubernetes. The definition of
// VerticalPodAutoscalers is from their own module, which the go command fetches once: that needs the network.
//
// There is no kubelet: the program runs as a process of the test, with the arguments that the DaemonSet or the example has, and a
// service account's token. Where pods have to run, the test writes their status.
// The descheduler finds its token where a pod has it, in a mount namespace of its own.
package realapi
