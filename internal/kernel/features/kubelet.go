package features

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// kubeletState is where the kubelet's CPU manager keeps its checkpoint
// (pkg/kubelet/cm/cpumanager/state, file cpu_manager_state), below the root.
const kubeletState = "var/lib/kubelet/cpu_manager_state"

// maxCheckpoint bounds it; it holds a line per container. maxPolicy bounds the
// name of a policy.
const (
	maxCheckpoint = 8 << 20
	maxPolicy     = 64
)

// Kubelet is what the kubelet's CPU manager does here.
type Kubelet struct {
	// Policy is "static", or another one that gives out CPUs; "": none does.
	Policy string
	// Given are the CPUs that containers have by it.
	Given cpuset.CPUSet
}

// ReadKubelet reads the checkpoint of the kubelet's CPU manager; root stands for
// "/". No file, and the policy "none", give nothing. A DRA CPU driver keeps no
// file; what it gives out shows as cpusets narrower than their parent's. With an
// error the policy is still told where it could be read.
func ReadKubelet(root fs.FS) (Kubelet, error) {
	file, err := root.Open(kubeletState)
	if err != nil {
		return Kubelet{}, nil
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCheckpoint+1))
	if err != nil || len(data) > maxCheckpoint {
		return Kubelet{}, fmt.Errorf("/%s cannot be read (or is above %d bytes)", kubeletState, maxCheckpoint)
	}
	return parseCheckpoint(data)
}

func parseCheckpoint(data []byte) (Kubelet, error) {
	var state struct {
		PolicyName string                     `json:"policyName"`
		Entries    map[string]json.RawMessage `json:"entries"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return Kubelet{}, fmt.Errorf("the kubelet's cpu_manager_state is not what it writes: %.200s", err.Error())
	}
	switch {
	case state.PolicyName == "" || state.PolicyName == "none":
		return Kubelet{}, nil
	case len(state.PolicyName) > maxPolicy:
		return Kubelet{}, fmt.Errorf("the kubelet's cpu_manager_state is not what it writes: a policy with a name of %d bytes", len(state.PolicyName))
	}
	k := Kubelet{Policy: state.PolicyName}
	for _, pod := range state.Entries {
		// Entries are "pod uid" -> "container" -> list; the first format had
		// "container id" -> list.
		var lists map[string]string
		var one string
		if json.Unmarshal(pod, &one) == nil {
			lists = map[string]string{"": one}
		} else if err := json.Unmarshal(pod, &lists); err != nil {
			return k, fmt.Errorf("the kubelet's cpu_manager_state: entries of an unknown format")
		}
		for _, text := range lists {
			set, err := topology.ParseList(text)
			if err != nil {
				return k, fmt.Errorf("the kubelet's cpu_manager_state: %w", err)
			}
			k.Given = k.Given.Union(set)
		}
	}
	return k, nil
}
