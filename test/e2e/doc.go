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
// or changed. A few containers with small limits run in them. In the last, the agent runs in pods with the rights that the
// chart gives it; helm must render the golden files that the pods are made from. Each
// check is one line, "ok" or "FAIL" with the reason; the last line is "N passed, N failed". A runtime that is missing is a
// failed check that names the way to install it. At the end all that was started is stopped and removed, and the last
// checks compare processes, mounts, cgroups and folders with what was there before.
//
// With -only prometheus no runtime is needed: a real Prometheus scrapes a real agent beside a throttled cgroup of ours, and
// each query of packaging/mixin must have a result.
//
// # Example
//
//	ok    docker: its names, images and compose services by ls
//	FAIL  podman is installed: podman is missing: make e2e-install
//
// # Limits
//
// It needs root and writable cgroups, and takes one to two minutes. Debian's crun refuses hosts with both versions of
// cgroups, so Podman runs runc. The whole host's other containers are listed too; only our own are changed.
package main
