package names

import (
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Runtimes that a monitor process belongs to.
const (
	Docker     = "docker"
	Containerd = "containerd"
	CRIO       = "cri-o"
	Podman     = "podman"
)

// Names is what a runtime calls one container. "" is not known. Every text has at most text.MaxName runes and is safe on
// a terminal.
type Names struct {
	// Runtime is one of the constants above, where the source tells.
	Runtime string
	// Name is the runtime's own name of the container, without Docker's slash.
	Name string
	// Image is the image as the user named it.
	Image string
	// Project and Service are those of compose, or stack and service of swarm.
	Project, Service string
	// Namespace, Pod and PodContainer are Kubernetes' names. They hold letters, digits, "-" and "." only.
	Namespace, Pod, PodContainer string
	// TemplateHash is the pod's label pod-template-hash, where labels of pods are known. It holds the same.
	TemplateHash string
	// CRI says that the runtime itself wrote Kubernetes' names, and not the user who started the container.
	CRI bool
	// Sandbox says that this is the container that holds a pod's namespaces.
	Sandbox bool
}

// Known reports whether n has a name that people use.
func (n Names) Known() bool { return n.Name != "" || n.Pod != "" }

// Keys of labels and annotations, the first that is there counts.
var (
	projectKeys      = []string{"com.docker.compose.project", "io.podman.compose.project", "com.docker.stack.namespace"}
	serviceKeys      = []string{"com.docker.compose.service", "io.podman.compose.service", "com.docker.swarm.service.name"}
	podKeys          = []string{"io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"}
	namespaceKeys    = []string{"io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"}
	podContainerKeys = []string{"io.kubernetes.cri.container-name", "io.kubernetes.container.name"}
	imageKeys        = []string{"io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName"}
	nameKeys         = []string{"nerdctl/name"}
	kindKeys         = []string{"io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType"}
)

// TemplateHash takes the hash out of a pod's labels.
func TemplateHash(pod map[string]string) string {
	if hash := pod["pod-template-hash"]; IsDNS(hash) {
		return hash
	}
	return ""
}

// FromLabels takes the names out of labels or annotations of a container.
func FromLabels(labels map[string]string) Names {
	n := Names{Image: shown(first(labels, imageKeys))}
	n.fromLabels(labels)
	return n
}

// fromLabels adds what labels or annotations say.
func (n *Names) fromLabels(labels map[string]string) {
	n.Project, n.Service = shown(first(labels, projectKeys)), shown(first(labels, serviceKeys))
	for to, keys := range map[*string][]string{&n.Pod: podKeys, &n.Namespace: namespaceKeys, &n.PodContainer: podContainerKeys} {
		if value := first(labels, keys); IsDNS(value) {
			*to = value
		}
	}
}

func first(labels map[string]string, keys []string) string {
	for _, key := range keys {
		if value := labels[key]; value != "" {
			return value
		}
	}
	return ""
}

// shown makes a stranger's text safe; "" stays "".
func shown(s string) string { return text.Sanitize(s, text.MaxName) }

// bare is Docker's name without the slash before it.
func bare(name string) string {
	if len(name) > 1 {
		name = strings.TrimPrefix(name, "/")
	}
	return shown(name)
}

// IsDNS accepts what Kubernetes allows in names of namespaces, pods and containers.
func IsDNS(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') && c != '-' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 253
}

// IsID accepts 64 hex digits: the id of a container of Docker, containerd's CRI, nerdctl, CRI-O and Podman.
func IsID(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}
