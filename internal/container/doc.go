// Package container tells which containers run on a host and what people call them.
//
// # Problem
//
// The kernel knows cgroups; people know containers, pods and services. A tool that needs a runtime's socket or the
// Kubernetes API to translate stops working where it has neither, and trusts whoever answers there. The cgroup path
// and the folders that the node keeps anyway say enough.
//
// # Rule
//
// The topmost part of a path that a runtime marks as its own is the container; all below belongs to it, nested
// containers too. Without one, the deepest systemd unit; without that, the leaf cgroup. Names come from the pod uid in
// the path, the log folders that the kubelet names after namespace, pod, uid and container, and docker's own
// config.v2.json. All are data: bounded, never interpreted, and sanitized for people.
//
// # Example
//
//	/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod3f5a..._8e77.slice/cri-containerd-9b1c....scope/init
//
// is in the container 9b1c... of the pod with uid 3f5a...-8e77. /var/log/pods/shop_cart-0_3f5a...-8e77 says that this
// is pod cart-0 in namespace shop, and the link /var/log/containers/cart-0_shop_app-9b1c....log that it is the
// container app: Name is "cart-0/app". [Resolve] finds it by "cart-0", "shop/cart-0", "app", "9b1c", its path, or the
// number of any of its processes.
//
// # Limits
//
// A pod's sandbox cannot be told from its containers by path; it is listed, without a ContainerName. Podman's and
// containerd's own names outside Kubernetes are not read; the short id stands for them. Only [Container].Name is safe
// to print as it is: ID, Unit and paths are raw.
//
// # Sources
//
// opencontainers/runc libcontainer/cgroups/systemd (getUnitName), kubernetes pkg/kubelet/cm
// (pod_container_manager_linux.go, cgroup_manager_linux.go) and pkg/kubelet/kuberuntime (helpers.go, legacy.go),
// containers/podman libpod (cgroup names), lxc src/lxc/cgroups, hashicorp/nomad client/lib/cgroupslib, Amazon ECS
// agent (cgroup paths), Apache Mesos cgroups isolator.
package container
