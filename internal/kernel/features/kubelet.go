package features

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/topology"
)

// kubeletState is the checkpoint of the kubelet's CPU manager (pkg/kubelet/cm/cpumanager/state), in the kubelet's
// --root-dir.
const kubeletState = "cpu_manager_state"

// kubeletRoots are the usual --root-dir, below the root: of the kubelet itself, k0s, MicroK8s, k3s and RKE2.
var kubeletRoots = []string{"var/lib/kubelet", "var/lib/k0s/kubelet", "var/snap/microk8s/common/var/lib/kubelet",
	"var/lib/rancher/k3s/agent/kubelet", "var/lib/rancher/rke2/agent/kubelet"}

// maxCheckpoint bounds the checkpoint, which has a line per container. maxPolicy bounds the name of a policy. maxKubelets
// bounds the running kubelets that are asked for their folder.
const (
	maxCheckpoint = 8 << 20
	maxPolicy     = 64
	maxKubelets   = 8
	maxCmdline    = 64 << 10
)

// Kubelet describes the CPU manager of a kubelet on this host.
type Kubelet struct {
	// File is the checkpoint, as an absolute path.
	File string
	// Policy is "static", or another one that assigns CPUs.
	Policy string
	// Given are the CPUs that it assigned to containers and pods.
	Given cpuset.CPUSet
	// Shared are those that it left to all others; nil: the checkpoint does not say.
	Shared *cpuset.CPUSet
	// Err says why its state is not known. Then it may have given out every CPU.
	Err error
}

// Owns returns the CPUs that are the kubelet's: those that it gave away, those that it does not share, and all where its
// state is not known.
func (k Kubelet) Owns(set cpuset.CPUSet) cpuset.CPUSet {
	switch {
	case k.Err != nil:
		return set
	case k.Shared != nil:
		return k.Given.Union(set.Difference(*k.Shared))
	}
	return k.Given
}

// ReadKubelets reads the checkpoints of the kubelets' CPU managers: of those that run, by their --root-dir, and in the
// usual folders. root is the file system of "/". Those with the policy "none" are left out. A DRA CPU driver keeps no
// file; its assignments show as cpusets narrower than their parent's.
func ReadKubelets(root fs.FS) []Kubelet {
	var found []Kubelet
	read := map[string]bool{}
	for _, running := range runningKubelets(root) {
		read[running.dir] = true
		// Where we run in a container, the file is the host's.
		k, there := readKubelet(root, path.Join("proc", strconv.Itoa(running.pid), "root", running.dir), running.dir)
		if !there || errors.Is(k.Err, fs.ErrPermission) {
			if here, ok := readKubelet(root, running.dir, running.dir); ok {
				k, there = here, true
			}
		}
		if !there {
			k = Kubelet{File: "/" + path.Join(running.dir, kubeletState),
				Err: fmt.Errorf("the kubelet that runs (process %d) has no such file that can be seen from here", running.pid)}
		}
		found = append(found, k)
	}
	for _, dir := range kubeletRoots {
		if read[dir] {
			continue
		}
		if k, there := readKubelet(root, dir, dir); there {
			found = append(found, k)
		}
	}
	assigning := found[:0]
	for _, k := range found {
		if k.Policy != "" || k.Err != nil {
			assigning = append(assigning, k)
		}
	}
	return assigning
}

// readKubelet reads the checkpoint in a folder, which is called dir. there is false without a file.
func readKubelet(root fs.FS, from, dir string) (k Kubelet, there bool) {
	fail := func(err error) (Kubelet, bool) {
		return Kubelet{File: "/" + path.Join(dir, kubeletState), Err: fmt.Errorf("it cannot be read: %w", err)}, true
	}
	file, err := root.Open(path.Join(from, kubeletState))
	if errors.Is(err, fs.ErrNotExist) {
		return Kubelet{}, false
	}
	if err != nil {
		return fail(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCheckpoint+1))
	if err == nil && len(data) > maxCheckpoint {
		err = fmt.Errorf("it has more than %d bytes", maxCheckpoint)
	}
	if err != nil {
		return fail(err)
	}
	k, k.Err = parseCheckpoint(data)
	k.File = "/" + path.Join(dir, kubeletState)
	return k, true
}

// running is a kubelet that runs, with its folder below the root.
type running struct {
	pid int
	dir string
}

// runningKubelets finds the host's kubelets. A process of another PID namespace, such as a container's, is none of them,
// whatever its name, and so is one of a user.
func runningKubelets(root fs.FS) (processes []running) {
	entries, err := fs.ReadDir(root, "proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || trimmed(root, path.Join("proc", e.Name(), "comm")) != "kubelet" || !ofHost(root, e.Name()) {
			continue
		}
		if processes = append(processes, running{pid, rootDir(root, e.Name())}); len(processes) == maxKubelets {
			break
		}
	}
	return processes
}

// ofHost reports whether a process is root's and has a number in one PID namespace only, that of /proc
// (proc_pid_status(5), Uid and NSpid).
func ofHost(root fs.FS, pid string) bool {
	status, err := fs.ReadFile(root, path.Join("proc", pid, "status"))
	if err != nil {
		return false
	}
	var roots, once bool
	for line := range strings.Lines(string(status)) {
		switch key, value, _ := strings.Cut(line, ":"); key {
		case "Uid":
			uids := strings.Fields(value)
			roots = len(uids) > 0 && uids[0] == "0"
		case "NSpid":
			once = len(strings.Fields(value)) == 1
		}
	}
	return roots && once
}

// rootDir returns the --root-dir of a kubelet, below the root.
func rootDir(root fs.FS, pid string) string {
	dir := kubeletRoots[0]
	file, err := root.Open(path.Join("proc", pid, "cmdline"))
	if err != nil {
		return dir
	}
	defer file.Close()
	line, _ := io.ReadAll(io.LimitReader(file, maxCmdline))
	args := strings.Split(string(line), "\x00")
	for i, arg := range args {
		value, ok := strings.CutPrefix(strings.TrimLeft(arg, "-"), "root-dir")
		switch {
		case !ok || !strings.HasPrefix(arg, "-"):
			continue
		case strings.HasPrefix(value, "="):
			value = value[1:]
		case value == "" && i+1 < len(args):
			value = args[i+1]
		default:
			continue
		}
		if at := strings.TrimPrefix(path.Clean("/"+value), "/"); fs.ValidPath(at) {
			dir = at
		}
	}
	return dir
}

// parseCheckpoint reads a checkpoint. Policy "" is one that assigns nothing.
func parseCheckpoint(data []byte) (Kubelet, error) {
	var state struct {
		PolicyName    string                     `json:"policyName"`
		DefaultCPUSet *string                    `json:"defaultCpuSet"`
		Entries       map[string]json.RawMessage `json:"entries"`
		// PodEntries are since Kubernetes 1.36: "pod uid" -> its CPUs.
		PodEntries map[string]struct {
			CPUSet *string `json:"cpuSet"`
		} `json:"podEntries"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return Kubelet{}, fmt.Errorf("it has an unexpected format: %s", text.Sanitize(err.Error(), 200))
	}
	switch {
	case state.PolicyName == "none":
		return Kubelet{}, nil
	case state.PolicyName == "":
		return Kubelet{}, errors.New("it has an unexpected format: no policyName")
	case len(state.PolicyName) > maxPolicy:
		return Kubelet{}, fmt.Errorf("it has an unexpected format: a policy with a name of %d bytes", len(state.PolicyName))
	}
	k := Kubelet{Policy: state.PolicyName}
	give := func(list string) error {
		set, err := topology.ParseList(list)
		k.Given = k.Given.Union(set)
		return err
	}
	for _, pod := range state.Entries {
		// Entries are "pod uid" -> "container" -> list; the first format had "container id" -> list.
		var lists map[string]string
		var one string
		if json.Unmarshal(pod, &one) == nil {
			lists = map[string]string{"": one}
		} else if err := json.Unmarshal(pod, &lists); err != nil {
			return k, errors.New("its entries have an unknown format")
		}
		for _, list := range lists {
			if err := give(list); err != nil {
				return k, err
			}
		}
	}
	for _, pod := range state.PodEntries {
		if pod.CPUSet == nil {
			return k, errors.New("its podEntries have an unknown format")
		}
		if err := give(*pod.CPUSet); err != nil {
			return k, err
		}
	}
	if state.DefaultCPUSet != nil {
		shared, err := topology.ParseList(*state.DefaultCPUSet)
		if err != nil {
			return k, fmt.Errorf("defaultCpuSet: %w", err)
		}
		k.Shared = &shared
	}
	return k, nil
}
