// Package container finds the containers of a host and their readable names.
//
// # Problem
//
// The kernel knows cgroups; users know containers, pods and services. A tool that translates with a runtime's socket or
// the Kubernetes API stops where it has neither. It must also trust the program that answers.
//
// # Rule
//
// The topmost part of a path that a runtime marks as its own is the container. All cgroups below belong to it, nested
// containers too. A path without such a part is a container's if the process that a runtime leaves beside each of its
// containers says so (package runtimes). Else it is the deepest systemd unit; without that, the leaf cgroup. Names come
// from the runtime's socket or files (package runtimes), then from the kubelet's log folders, whose names have namespace,
// pod, uid and container, then from the path. All names are data: bounded, never interpreted, and sanitized for display.
//
// # Example
//
//	/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod3f5a..._8e77.slice/cri-containerd-9b1c....scope/init
//
// is in the container 9b1c... of the pod with uid 3f5a...-8e77. The folder /var/log/pods/shop_cart-0_3f5a...-8e77 shows
// pod cart-0 in namespace shop. The link /var/log/containers/cart-0_shop_app-9b1c....log shows the container app. So
// Name is "shop/cart-0/app". [Resolve] finds it by "cart-0", "shop/cart-0", "cart-0/app", "app", "9b1c", "containerd:app",
// its path, or the number of any of its processes.
//
// # Limits
//
// A pod's sandbox looks like its containers by path; it is listed, without a ContainerName. ID, Unit and paths are raw:
// not safe to print unchanged, as the names are.
//
// # Sources
//
// opencontainers/runc libcontainer/cgroups/systemd (getUnitName), kubernetes pkg/kubelet/cm
// (pod_container_manager_linux.go, cgroup_manager_linux.go) and pkg/kubelet/kuberuntime (helpers.go, legacy.go),
// containers/podman libpod (cgroup names), lxc src/lxc/cgroups, hashicorp/nomad client/lib/cgroupslib, Amazon ECS agent
// (cgroup paths), Apache Mesos cgroups isolator.
package container
