package container

import (
	"strings"

	"github.com/unthrottle/unthrottle/internal/container/names"
)

// identity is the result of a path alone.
type identity struct {
	depth   int // number of path parts up to and with the container's topmost cgroup
	runtime string
	id      string
	name    string // the readable part, where the path has one
	podUID  string
	unit    string
	qos     string
}

// maxParts bounds how many parts of a path are read.
const maxParts = 64

// recognise finds the topmost container in a path (relative to the highest visible cgroup), else the deepest systemd
// unit. False means neither. It reads only the path.
func recognise(path string) (identity, bool) {
	if path == "/" || path == "" {
		return identity{}, false
	}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(parts) > maxParts {
		parts = parts[:maxParts]
	}
	podUID, qos := "", ""
	for i, part := range parts {
		if uid := podUIDOf(part); uid != "" {
			podUID, qos = uid, qosOf(parts[:i], part)
		}
		found, ok := containerAt(parts[:i], part, podUID != "")
		if !ok {
			continue
		}
		found.depth = i + 1
		if found.podUID == "" {
			found.podUID = podUID
		}
		found.qos = qos
		if isUnit(part) {
			found.unit = part
		}
		return found, true
	}
	for i := len(parts) - 1; i >= 0; i-- {
		if isUnit(parts[i]) {
			return identity{depth: i + 1, runtime: Systemd, name: parts[i], unit: parts[i]}, true
		}
	}
	return identity{podUID: podUID, qos: qos}, false
}

// qosOf reads the class of a pod from its cgroup's name or the one above it. A pod directly below the kubelet's cgroup
// is Guaranteed (kubernetes pkg/kubelet/cm/pod_container_manager_linux.go GetPodContainerName).
func qosOf(above []string, pod string) string {
	parent := ""
	if len(above) > 0 {
		parent = above[len(above)-1]
	}
	name, _, _ := strings.Cut(pod, ":")
	for word, class := range map[string]string{"burstable": Burstable, "besteffort": BestEffort} {
		if parent == word || strings.HasSuffix(parent, "-"+word+".slice") || strings.Contains(name, "-"+word+"-pod") {
			return class
		}
	}
	if parent == "kubepods" || strings.HasSuffix(parent, "kubepods.slice") || strings.Contains(name, "kubepods-pod") {
		return Guaranteed
	}
	return ""
}

// containerAt reports whether part, below the parts above it, is a container's topmost cgroup.
func containerAt(above []string, part string, inPod bool) (identity, bool) {
	if strings.Contains(part, "conmon-") {
		// The monitor beside a podman or CRI-O container is not the container.
		return identity{}, false
	}
	if id, runtime, ok := mismatched(part); ok {
		return identity{runtime: runtime, id: id, podUID: podUIDOf(part)}, true
	}
	bare := strings.TrimSuffix(part, ".scope")
	for _, mark := range marks {
		if id, ok := strings.CutPrefix(bare, mark.prefix); ok && names.IsID(id) {
			return identity{runtime: mark.runtime, id: id}, true
		}
	}
	if found, ok := byFolder(above, part, bare); ok {
		return found, true
	}
	if inPod && names.IsID(bare) && podUIDOf(part) == "" {
		return identity{runtime: Kubernetes, id: bare}, true
	}
	return identity{}, false
}

// marks are the prefixes that runtimes put before the id, with the systemd driver also before ".scope".
var marks = []struct{ prefix, runtime string }{
	{"cri-containerd-", Containerd},
	{"nerdctl-", Containerd},
	{"docker-", Docker},
	{"crio-", CRIO},
	{"libpod-", Podman},
}

// mismatched reads "<slice>:cri-containerd:<id>". runc writes that for a systemd path when it uses the cgroupfs driver.
func mismatched(part string) (id, runtime string, ok bool) {
	f := strings.Split(part, ":")
	if len(f) != 3 || !names.IsID(f[2]) {
		return "", "", false
	}
	for _, mark := range marks {
		if f[1]+"-" == mark.prefix {
			return f[2], mark.runtime, true
		}
	}
	return "", "", false
}

// byFolder recognises runtimes by the folder of their cgroups.
func byFolder(above []string, part, bare string) (identity, bool) {
	if name, ok := strings.CutPrefix(part, "lxc.payload."); ok && name != "" {
		return identity{runtime: LXC, id: name, name: name}, true
	}
	if len(above) == 0 {
		return identity{}, false
	}
	parent := above[len(above)-1]
	switch {
	case parent == "docker" && names.IsID(part):
		return identity{runtime: Docker, id: part}, true
	case parent == "buildkit" && plain(part):
		return identity{runtime: Docker, id: part}, true
	case (parent == "lxc" || parent == "lxc.payload") && part != "":
		return identity{runtime: LXC, id: part, name: part}, true
	case parent == "mesos" && (isUUID(part) || len(above) == 1 && names.IsPlain(part)):
		return identity{runtime: Mesos, id: part, name: "mesos/" + part}, true
	case above[0] == "ecs" && len(above) >= 2 && isECS(part):
		return identity{runtime: ECS, id: part}, true
	case above[0] == "nomad" || above[0] == "nomad.slice":
		return nomad(bare)
	}
	return identity{}, false
}

// nomad reads "<allocation uuid>.<task>".
func nomad(bare string) (identity, bool) {
	alloc, task, ok := strings.Cut(bare, ".")
	if !ok || !isUUID(alloc) || task == "" {
		return identity{}, false
	}
	return identity{runtime: Nomad, id: bare, name: task}, true
}

// podUIDOf reads the pod uid of a pod-level cgroup: "pod<uid>" (cgroupfs driver) or
// "kubepods-burstable-pod<uid with _ for ->.slice" (systemd driver, and its mismatched form).
func podUIDOf(part string) string {
	part, _, _ = strings.Cut(part, ":")
	uid, ok := strings.CutPrefix(part, "pod")
	if !ok {
		slice, isSlice := strings.CutSuffix(part, ".slice")
		i := strings.LastIndex(slice, "-pod")
		if !isSlice || i < 0 {
			return ""
		}
		uid = strings.ReplaceAll(slice[i+len("-pod"):], "_", "-")
	}
	if isUUID(uid) || len(uid) == 32 && isHex(uid) {
		return uid
	}
	return ""
}

// unitSuffixes are the systemd unit types that have their own cgroup; slices only group others.
var unitSuffixes = []string{".service", ".scope", ".socket", ".mount", ".swap"}

func isUnit(part string) bool {
	for _, suffix := range unitSuffixes {
		if len(part) > len(suffix) && strings.HasSuffix(part, suffix) {
			return true
		}
	}
	return false
}

// isECS accepts docker's ids and Fargate's "<32 hex>-<digits>".
func isECS(s string) bool {
	task, runtime, ok := strings.Cut(s, "-")
	return names.IsID(s) || ok && len(task) == 32 && isHex(task) && plain(runtime)
}

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s != ""
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (s[i] == '-') || !dash && !isHex(s[i:i+1]) {
			return false
		}
	}
	return true
}

// plain accepts lower-case letters and digits.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}
