package features

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Tried says why something did not work that only a try can tell; "": it worked.
type Tried struct {
	// Probe: loading and attaching the BPF programs.
	Probe string
	// StateDir: using the directory of the journal.
	StateDir string
}

// noProbe stands in rows; Lacks says why and what to do.
const noProbe = "the probe does not load, see what is missing"

// Commands draws the conclusions about commands that record, or that change something; it is a pure function.
func Commands(r Report, tried Tried) (looking, changing []Ability) {
	see := r.seeThrottling()
	explain := Ability{What: "explain", Can: true, Why: "the probe loads: every scheduling event can be recorded"}
	forecast := Ability{What: "forecast", Can: true, Why: "a container can be recorded and replayed"}
	switch {
	case !see.Can:
		explain.Can, explain.Why = false, see.Why+"; a recording file can be explained"
		forecast.Can, forecast.Why = false, see.Why+"; a recording file can be replayed"
	case tried.Probe != "":
		explain.Can, explain.Why = false, "from counters only, without pools and timeline: "+noProbe
		forecast.Can, forecast.Why = false, "of a recording file only: "+noProbe
	}
	write := r.Writable(cgroup.CPU)
	restore := Ability{What: "undo (restore)", Can: true, Why: "every setting is journalled before it is written"}
	switch {
	case !write.Can:
		restore.Can, restore.Why = false, write.Why
	case tried.StateDir != "":
		restore.Can, restore.Why = false, tried.StateDir
	}
	fix := Ability{What: "fix", Can: true, Why: "it can record, forecast, write and undo"}
	applies := Ability{What: "agent, mode apply", Can: true, Why: "it can do what fix does"}
	switch {
	case !restore.Can:
		fix.Can, fix.Why = false, restore.Why
		applies.Can, applies.Why = false, restore.Why
	case !explain.Can:
		fix.Can, fix.Why = false, "with --remedy only, since nothing can be forecast: "+noProbe
		applies.Can, applies.Why = false, "rules with a given remedy and an slo only: "+noProbe
	}
	agent := Ability{What: "agent, mode observe", Can: see.Can, Why: see.Why}
	if see.Can {
		agent.Why = "counters and the probe: widths, exact stopped time, flight recorder"
		if tried.Probe != "" {
			agent.Why = "counters only, no widths and no flight recorder"
		}
	}
	return []Ability{explain, forecast}, []Ability{fix, agent, applies, restore}
}

// Missing is something that this host or user lacks, and how to get it.
type Missing struct {
	What string `json:"what"`
	For  string `json:"for"`
	Way  string `json:"way"`
}

// Lacks lists what is missing for this user; it is a pure function.
func Lacks(r Report, tried Tried) []Missing {
	var missings []Missing
	add := func(what, use, way string) { missings = append(missings, Missing{what, use, way}) }
	const probeUse = "explain, forecast, fix, the agent's recordings"
	var unwritable, closed []string
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		switch of := r.controller(c); {
		case of.Version == 0:
		case !of.Writable:
			unwritable = append(unwritable, of.Dir)
		case !of.CanMakeCgroups:
			closed = append(closed, of.Dir)
		}
	}
	if lacks := r.Rights.lacksForProbe(); len(lacks) > 0 && tried.Probe != "" {
		add(strings.Join(lacks, ", "), probeUse, r.Rights.wayToCapabilities(lacks))
	} else if tried.Probe != "" {
		add("the probe", probeUse, tried.Probe)
	}
	if r.Rights.UID == 0 {
		if r.Rights.Lacks("CAP_SYS_PTRACE") {
			add("CAP_SYS_PTRACE", "names of libraries in explain; memory of containers",
				r.Rights.wayToCapabilities([]string{"CAP_SYS_PTRACE"}))
		}
		if r.Rights.Profile != "" {
			add("other processes' files", "names of containers and libraries", fmt.Sprintf("the security profile %s refuses them: %s",
				r.Rights.Profile, r.Rights.wayToUnconfined()))
		}
		if r.Rights.Lacks("CAP_SYS_NICE") {
			add("CAP_SYS_NICE", "pin --realtime, pin --mems, apply --system", r.Rights.wayToCapabilities([]string{"CAP_SYS_NICE"}))
		}
	}
	if len(unwritable) > 0 {
		add("writable "+strings.Join(unwritable, ", "), "every remedy, demo, run, bench", r.Rights.wayToWrite())
	}
	if len(closed) > 0 {
		add("the right to make cgroups in "+strings.Join(closed, ", "), "demo, run, bench",
			r.Rights.wayToCapabilities([]string{"CAP_DAC_OVERRIDE"}))
	}
	if r.PrivateNamespace {
		add("the host's cgroups", "containers outside of this one", r.Rights.wayToHost("cgroups"))
	}
	if r.Rights.PrivateProcesses == Yes {
		add("the host's processes", "names of containers, pools of their threads", r.Rights.wayToHost("processes"))
	}
	if tried.StateDir != "" && r.Rights.UID == 0 {
		add("the state directory", "apply, fix, restore", tried.StateDir)
	}
	return missings
}

// wayToUnconfined leads out of a security module's profile.
func (r Rights) wayToUnconfined() string {
	switch r.Container {
	case "kubernetes":
		return "in the container's securityContext: appArmorProfile: {type: Unconfined}, or with SELinux seLinuxOptions: {type: spc_t}"
	case "":
		return "run unconfined"
	}
	return "start the container with --security-opt apparmor=unconfined, or with SELinux --security-opt label=disable"
}

func (r Rights) wayToCapabilities(names []string) string {
	switch {
	case r.Container == "kubernetes":
		short := make([]string, len(names))
		for i, name := range names {
			short[i] = strings.TrimPrefix(name, "CAP_")
		}
		return fmt.Sprintf("in the container's securityContext: runAsUser: 0 and capabilities: {add: [%s]}, or "+
			"privileged: true", strings.Join(short, ", "))
	case r.Container != "":
		way := "start the container as root with --privileged, or with"
		for _, name := range names {
			way += " --cap-add " + strings.TrimPrefix(name, "CAP_")
		}
		return way + " --security-opt seccomp=unconfined"
	case r.UID != 0:
		return "run with sudo"
	}
	return fmt.Sprintf("root runs with restrictions here: start it without, or add CapabilityBoundingSet=%s to its "+
		"systemd unit", strings.Join(names, " "))
}

func (r Rights) wayToWrite() string {
	switch {
	case r.Container == "kubernetes":
		return "mount the host's /sys/fs/cgroup as a hostPath volume, with privileged: true"
	case r.Container != "":
		return "start the container with --privileged --cgroupns host -v /sys/fs/cgroup:/sys/fs/cgroup"
	case r.UID != 0:
		return "run with sudo"
	}
	return "root runs with restrictions here, or the file system is mounted read-only: start it without them; files " +
		"of cgroups that exist may be writable all the same"
}

func (r Rights) wayToHost(what string) string {
	docker, kubernetes := "--cgroupns host -v /sys/fs/cgroup:/sys/fs/cgroup",
		"mount the host's /sys/fs/cgroup as a hostPath volume, with privileged: true"
	if what == "processes" {
		docker, kubernetes = "--pid host", "hostPID: true in the pod"
	}
	if r.Container == "kubernetes" {
		return kubernetes
	}
	return "start the container with " + docker
}
