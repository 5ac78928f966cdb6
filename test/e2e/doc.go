// Command e2e runs unthrottle beside real container runtimes: make e2e.
//
// # Problem
//
// A test with files that we wrote ourselves proves that we read what we wrote. Whether a runtime writes the same, and
// what it does while we change its containers' settings, only the runtime tells.
//
// # Rule
//
// Docker, Podman, the distribution's containerd and a containerd 2 that tools/containerd pins (both with CRI pods) run here
// at the same time, each in folders of its own below one temporary folder: nothing of a runtime that is installed is used
// or changed. A few containers with small limits run in them. An agent keeps rows of
// Docker's, is killed, and the fleet's report is made of them. In the containerd 2, the agent runs in pods with the rights that the
// chart gives it; helm must render the golden files that the pods are made from. Each
// check is one line, "ok" or "FAIL" with the reason; the last line is "N passed, N failed". A runtime that is missing is a
// failed check that names the way to install it. At the end all that was started is stopped and removed, and the last
// checks compare processes, mounts, cgroups and folders with what was there before.
//
// With -only prometheus no runtime is needed: a real Prometheus scrapes a real agent beside a throttled cgroup of ours, and
// each query of packaging/mixin must have a result.
//
// With -only kubernetes the pinned containerd is a node's of a real Kubernetes: etcd, API server, controller-manager,
// scheduler and kubelet of tools/kubernetes, all on loopback, with all cgroups below one of ours. helm installs our chart. In
// the agent's pod a throttled service is found, explained, forecast and fixed; a client outside the cluster measures its p99
// before and after. Then the agent is killed, the pod is resized in place, a ThrottlePolicy becomes the agent's rule, and the
// chart is uninstalled. What the commands of docs/tutorial/kubernetes.md printed is left for test/docs. The kubelet sets sysctls
// of the host: they are put back.
//
// # Example
//
//	ok    docker: its names, images and compose services by ls
//	FAIL  podman is installed: podman is missing: make e2e-install
//
// # Limits
//
// It needs root and writable cgroups, and takes one to two minutes, and with Kubernetes four. No network plugin is there: all
// pods have the host's network. On a host full of other work the service waits for its neighbours more than for its quota,
// and no fix is better: the checks with Kubernetes want an idle one. Debian's crun refuses hosts with both versions of
// cgroups, so Podman runs runc. The whole host's other containers are listed too; only our own are changed.
package main
