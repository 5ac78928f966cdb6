package features

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// kubeletState is the checkpoint of the kubelet's CPU manager (pkg/kubelet/cm/cpumanager/state, file
// cpu_manager_state), below the root.
const kubeletState = "var/lib/kubelet/cpu_manager_state"

// maxCheckpoint bounds the checkpoint, which has a line per container. maxPolicy bounds the name of a policy.
const (
	maxCheckpoint = 8 << 20
	maxPolicy     = 64
)

// Kubelet describes the kubelet's CPU manager on this host.
type Kubelet struct {
	// Policy is "static", or another one that assigns CPUs; "" without one.
	Policy string
	// Given are the CPUs that it assigned to containers.
	Given cpuset.CPUSet
}

// ReadKubelet reads the checkpoint of the kubelet's CPU manager; root is the file system of "/". Without the file, or
// with the policy "none", it returns the zero value. A DRA CPU driver keeps no file; its assignments show as cpusets
// narrower than their parent's. With an error it still returns the policy if that was readable.
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
		return Kubelet{}, fmt.Errorf("the kubelet's cpu_manager_state has an unexpected format: %.200s", err.Error())
	}
	switch {
	case state.PolicyName == "" || state.PolicyName == "none":
		return Kubelet{}, nil
	case len(state.PolicyName) > maxPolicy:
		return Kubelet{}, fmt.Errorf("the kubelet's cpu_manager_state has an unexpected format: a policy with a name of %d bytes", len(state.PolicyName))
	}
	k := Kubelet{Policy: state.PolicyName}
	for _, pod := range state.Entries {
		// Entries are "pod uid" -> "container" -> list; the first format had "container id" -> list.
		var lists map[string]string
		var one string
		if json.Unmarshal(pod, &one) == nil {
			lists = map[string]string{"": one}
		} else if err := json.Unmarshal(pod, &lists); err != nil {
			return k, fmt.Errorf("the kubelet's cpu_manager_state: its entries have an unknown format")
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
