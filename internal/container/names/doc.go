// Package names reads what container runtimes keep and answer, and takes the names of containers out of it.
//
// # Problem
//
// A cgroup's path has an id at best. The name, the image, the pod and the compose service stand in the answers and files
// of the runtime. The user who starts a container chooses most of these texts.
//
// # Rule
//
// A function per format takes bytes and returns [Names]. Each text is bounded and safe on a terminal, and Kubernetes'
// names hold only what Kubernetes allows. A text that breaks a rule is left out. Of JSON that is wrong as a whole there
// is an error and no names.
//
// # Example
//
// From Docker's answer
//
//	[{"Id":"52b9...","Names":["/shop-cart-1"],"Image":"cart:2","Labels":{"com.docker.compose.service":"cart"}}]
//
// [Containers] makes the Name "shop-cart-1", the Image "cart:2" and the Service "cart".
//
// # Limits
//
// Labels of Podman's containers are in its database alone; without its socket there is no compose service for them.
// Labels and images of containerd's are in its database too; nerdctl copies its own labels into annotations, which have
// the name.
//
// # Sources
//
// moby api/types/container Summary and container.Container (config.v2.json), containers/storage pkg/containers
// (containers.json), opencontainers/runtime-spec config.json, containerd pkg/cri/annotations and
// cmd/containerd-shim-runc-v2 (command line, working folder), containers/conmon (command line), nerdctl pkg/labels,
// compose-spec labels.
package names
