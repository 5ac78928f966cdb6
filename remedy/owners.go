package remedy

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/topology"
	"k8s.io/utils/cpuset"
)

// pauseComm is the name of the process that holds a pod's namespaces open and
// sleeps for ever. A container that takes the name gains nothing: it may keep
// its pod's quota from being lifted, or not.
const pauseComm = "pause"

// Where others say what they gave out, below the root directory.
const (
	kubeletState  = "var/lib/kubelet/cpu_manager_state"
	maxCheckpoint = 8 << 20
)

// claims are the CPUs that others on this host gave out.
func claims(root fs.FS) []Claim {
	var all []Claim
	if given, by, err := KubeletClaim(root, kubeletState); err != nil {
		// Unreadable: what it gave out shows as cpusets narrower than their
		// parent's all the same, but its shared pool does not.
		all = append(all, Claim{By: err.Error()})
	} else if !given.IsEmpty() {
		all = append(all, Claim{CPUs: given, By: by})
	}
	return all
}

// KubeletClaim reads the checkpoint of the kubelet's CPU manager (k8s.io/
// kubernetes pkg/kubelet/cm/cpumanager/state): the CPUs that its static policy
// gave to containers. No file, and the policy "none", claim nothing. A DRA CPU
// driver keeps no file; what it gives out shows as cpusets narrower than their
// parent's.
func KubeletClaim(root fs.FS, name string) (given cpuset.CPUSet, by string, err error) {
	file, err := root.Open(name)
	if err != nil {
		return given, "", nil
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCheckpoint+1))
	if err != nil || len(data) > maxCheckpoint {
		return given, "", fmt.Errorf("/%s cannot be read (or is above %d bytes)", name, maxCheckpoint)
	}
	return parseCheckpoint(data)
}

func parseCheckpoint(data []byte) (given cpuset.CPUSet, by string, err error) {
	var state struct {
		PolicyName string                     `json:"policyName"`
		Entries    map[string]json.RawMessage `json:"entries"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return given, "", fmt.Errorf("the kubelet's cpu_manager_state is not what it writes: %.200s", err.Error())
	}
	if state.PolicyName == "" || state.PolicyName == "none" {
		return given, "", nil
	}
	by = fmt.Sprintf("the kubelet's %.40q policy", state.PolicyName)
	for _, pod := range state.Entries {
		// Entries are "pod uid" -> "container" -> list; the first format had
		// "container id" -> list.
		var lists map[string]string
		var one string
		if json.Unmarshal(pod, &one) == nil {
			lists = map[string]string{"": one}
		} else if err := json.Unmarshal(pod, &lists); err != nil {
			return given, by, fmt.Errorf("the kubelet's cpu_manager_state: entries of an unknown format")
		}
		for _, text := range lists {
			set, err := topology.ParseList(text)
			if err != nil {
				return given, by, fmt.Errorf("the kubelet's cpu_manager_state: %w", err)
			}
			given = given.Union(set)
		}
	}
	return given, by, nil
}

// comm is the name of a process, "" if it cannot be told.
func comm(root fs.FS, pid int) string {
	if pid <= 0 {
		return ""
	}
	file, err := root.Open("proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	defer file.Close()
	name, _ := io.ReadAll(io.LimitReader(file, 64))
	return strings.TrimSpace(string(name))
}
