package features

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Rights are what the process may do that looks at the host.
type Rights struct {
	UID int `json:"uid"`
	// Missing are the capabilities that some command uses and this process does not have, as in capabilities(7); null:
	// they could not be read.
	Missing []string `json:"missing_capabilities"`
	// PrivateProcesses reports that the process runs in a process namespace of its own, where it does not see the host's
	// processes; Unknown where that cannot be told.
	PrivateProcesses Answer `json:"private_process_namespace"`
	// Container names the kind of container that the process runs in: "docker", "podman", "kubernetes" or "container";
	// "": it sees the host's processes and cgroups.
	Container string `json:"container"`
	// Profile is the security module's profile that keeps this process from the files of other processes, such as
	// "cri-containerd.apparmor.d (enforce)"; "": none does.
	Profile string `json:"security_profile"`
}

// maxProfile bounds a profile's name, in bytes.
const maxProfile = 128

// SecurityProfile is Rights.Profile. A process with CAP_SYS_PTRACE and a profile that cannot read process 1 is refused by its
// security module (ptrace_may_access of kernel/ptrace.c asks both). root is the file system of "/".
func SecurityProfile(root fs.FS) string {
	status, err := fs.ReadFile(root, "proc/self/status")
	if missing := missingCapabilities(string(status)); err != nil || missing == nil || slices.Contains(missing, "CAP_SYS_PTRACE") {
		return ""
	}
	if _, err := fs.Stat(root, "proc/1/root/proc"); !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	profile, err := fs.ReadFile(root, "proc/self/attr/current")
	name := text.Sanitize(strings.TrimSpace(strings.TrimRight(string(profile), "\x00")), maxProfile)
	if err != nil || name == "unconfined" { // refused for another reason, such as a capability of process 1 that we lack
		return ""
	}
	return name
}

// A capability that some command uses: its number in linux/capability.h, and what for.
type capability struct {
	name   string
	number uint
}

// probeCapabilities are those that the probe needs; the others serve single settings.
var (
	probeCapabilities = []capability{{"CAP_BPF", 39}, {"CAP_PERFMON", 38}, {"CAP_SYSLOG", 34}}
	otherCapabilities = []capability{{"CAP_SYS_PTRACE", 19}, {"CAP_SYS_NICE", 23}}
)

// hostProcesses is the inode of the first process namespace (PROC_PID_INIT_INO of linux/proc_ns.h).
const hostProcesses = "pid:[4026531836]"

// readRights reads the rights of this process; processes is what its link /proc/self/ns/pid says, "" if unreadable.
func readRights(root fs.FS, euid int, privateCgroups bool, processes string) Rights {
	r := Rights{UID: euid, PrivateProcesses: Unknown}
	if processes != "" {
		r.PrivateProcesses = answer(processes != hostProcesses)
	}
	if status, err := fs.ReadFile(root, "proc/self/status"); err == nil {
		r.Missing = missingCapabilities(string(status))
	}
	r.Profile = SecurityProfile(root)
	if !privateCgroups && r.PrivateProcesses != Yes {
		return r
	}
	r.Container = "container"
	for _, of := range []struct{ file, runtime string }{
		{"var/run/secrets/kubernetes.io", "kubernetes"}, {"run/secrets/kubernetes.io", "kubernetes"},
		{"run/.containerenv", "podman"}, {".dockerenv", "docker"},
	} {
		if _, err := fs.Stat(root, of.file); err == nil {
			r.Container = of.runtime
			break
		}
	}
	return r
}

// missingCapabilities reads the effective set in a status file (proc_pid_status(5)); nil: there is none. CAP_SYS_ADMIN
// stands for CAP_BPF and CAP_PERFMON, as for the kernel (bpf_capable, perfmon_capable).
func missingCapabilities(status string) []string {
	for line := range strings.SplitSeq(status, "\n") {
		digits, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
		if err != nil {
			return nil
		}
		const sysAdmin = 1 << 21
		missing := []string{}
		for _, c := range slices.Concat(probeCapabilities, otherCapabilities) {
			admin := set&sysAdmin != 0 && (c.name == "CAP_BPF" || c.name == "CAP_PERFMON")
			if set&(1<<c.number) == 0 && !admin {
				missing = append(missing, c.name)
			}
		}
		return missing
	}
	return nil
}

// Lacks reports whether the process is known not to have a capability.
func (r Rights) Lacks(name string) bool { return slices.Contains(r.Missing, name) }

// lacksForProbe are the missing capabilities that the probe needs.
func (r Rights) lacksForProbe() []string {
	var lacks []string
	for _, c := range probeCapabilities {
		if r.Lacks(c.name) {
			lacks = append(lacks, c.name)
		}
	}
	return lacks
}
