package names

import (
	"path"
	"strings"
)

// Monitor is the process of a runtime that waits for a container.
type Monitor struct {
	// Shim is true for containerd's, which also serves Docker and nerdctl; false for conmon of Podman and CRI-O. A shim's
	// working folder is the bundle of the container ID. In Kubernetes one shim serves a whole pod: the bundles of the
	// pod's other containers are beside it.
	Shim bool
	// Runtime is Docker or Containerd for a shim, "" for conmon.
	Runtime string
	// ID is the container's id, or that of the pod's sandbox.
	ID string
	// Name is conmon's name of the container; safe on a terminal.
	Name string
	// Bundle is conmon's absolute folder with config.json; "" for a shim.
	Bundle string
}

// maxArguments bounds how much of a command line is read.
const maxArguments = 64

// IsMonitor reports whether a process of this name (of 15 bytes at most, as the kernel has it) may be a monitor.
func IsMonitor(comm string) bool { return comm == "containerd-shim" || comm == "conmon" }

// ParseMonitor reads the command line of a process, its arguments separated by NUL. False means that it is no monitor
// or names no container.
func ParseMonitor(comm, commandLine string) (Monitor, bool) {
	arguments := strings.SplitN(commandLine, "\x00", maxArguments+1)
	option := func(short, long string) string {
		for i, argument := range arguments[:min(len(arguments), maxArguments)-1] {
			if i > 0 && (argument == short || argument == long) {
				return arguments[i+1]
			}
		}
		return ""
	}
	switch comm {
	case "containerd-shim":
		m := Monitor{Shim: true, Runtime: Containerd, ID: option("-id", "--id")}
		if option("-namespace", "--namespace") == "moby" {
			m.Runtime = Docker
		}
		return m, IsPlain(m.ID) && len(m.ID) <= 128 && m.ID[0] != '.'
	case "conmon":
		m := Monitor{ID: option("-c", "--cid"), Name: shown(option("-n", "--name")), Bundle: option("-b", "--bundle")}
		if !path.IsAbs(m.Bundle) || path.Clean(m.Bundle) != m.Bundle {
			m.Bundle = ""
		}
		return m, IsID(m.ID)
	}
	return Monitor{}, false
}
