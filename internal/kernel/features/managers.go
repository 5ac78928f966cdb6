package features

import (
	"io/fs"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Manager is another program that assigns CPUs on this host.
type Manager struct {
	// Name: "kubelet static policy", "DRA CPU driver", "systemd",
	// "isolcpus", "sched_ext".
	Name string `json:"name"`
	// Evidence is the file that shows it.
	Evidence string `json:"evidence"`
	// Means is the consequence for unthrottle.
	Means string `json:"means"`
}

// draPlugins is the folder of DRA drivers' sockets, with a directory per driver.
const draPlugins = "var/lib/kubelet/plugins"

// readManagers looks for the other managers under root, the file system of "/".
func readManagers(root fs.FS) []Manager {
	found := []Manager{}
	for _, kubelet := range ReadKubelets(root) {
		m := Manager{
			Name:     "kubelet " + kubelet.Policy + " policy",
			Evidence: kubelet.File,
			Means:    "pods cannot be pinned, since it may write their cpusets at any time; the CPUs it gave to containers are unavailable",
		}
		if kubelet.Err != nil {
			m.Name = "kubelet CPU manager"
			m.Evidence += ": " + text.Sanitize(kubelet.Err.Error(), 300)
			m.Means = "which CPUs it gave away is not known, so that pin refuses all; restart the kubelet, which checks and writes the file"
		}
		found = append(found, m)
	}
	if entries, err := fs.ReadDir(root, draPlugins); err == nil {
		for _, e := range entries {
			if strings.Contains(e.Name(), "cpu") {
				found = append(found, Manager{
					Name:     "DRA CPU driver",
					Evidence: "/" + draPlugins + "/" + e.Name(),
					Means:    "the CPUs it gave to containers are unavailable for pin",
				})
			}
		}
	}
	if _, err := fs.Stat(root, "run/systemd/system"); err == nil {
		found = append(found, Manager{
			Name:     "systemd",
			Evidence: "/run/systemd/system",
			Means:    "settings of its units go through D-Bus as runtime properties, so that a reload keeps them",
		})
	}
	if list := trimmed(root, "sys/devices/system/cpu/isolated"); list != "" {
		found = append(found, Manager{
			Name:     "isolcpus",
			Evidence: "/sys/devices/system/cpu/isolated: " + list,
			Means:    "these CPUs are unavailable: the kernel does not balance load on them",
		})
	}
	return found
}
