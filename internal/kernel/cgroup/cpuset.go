package cgroup

import (
	"errors"
	"fmt"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

func parseCPUs(text string) (cpuset.CPUSet, error) { return topology.ParseList(text) }

// CPUs reads the CPUs that a cpuset was given (configured) and those in force (effective). On v2 an empty configured
// set means inherited. A cgroup without the cpuset controller has an empty one, and the effective CPUs of its nearest
// ancestor that has it. On v1 a cgroup with an empty set cannot hold a task yet.
func CPUs(fsys FS, cpusetPath string) (configured, effective cpuset.CPUSet, err error) {
	return readSets(fsys, cpusetPath, FileCPUs, EffectiveCPUsFile)
}

// Mems reads memory nodes as CPUs reads CPUs.
func Mems(fsys FS, cpusetPath string) (configured, effective cpuset.CPUSet, err error) {
	return readSets(fsys, cpusetPath, FileMems, EffectiveMemsFile)
}

func readSets(fsys FS, path, file string, inForce func(Version) string) (configured, effective cpuset.CPUSet, err error) {
	v, ok := fsys.Version(CPUSet)
	if !ok {
		return configured, effective, NewError(fsys, CPUSet, Error{Op: OpRead, Path: path, File: file, Kind: ErrNoController})
	}
	if configured, err = readList(fsys, path, file); err != nil && !errors.Is(err, ErrNoFile) {
		return configured, effective, err
	}
	for {
		effective, err = readList(fsys, path, inForce(v))
		switch {
		case err == nil:
			return configured, effective, nil
		case !errors.Is(err, ErrNoFile):
			return configured, effective, err
		case v == V1:
			// Kernels before 3.17 have no effective set: the configured one is in force.
			return configured, configured, nil
		case path == "/":
			return configured, effective, err
		}
		path = Parent(path)
	}
}

func readList(fsys FS, path, file string) (cpuset.CPUSet, error) {
	text, err := fsys.Read(CPUSet, path, file)
	if err != nil {
		return cpuset.CPUSet{}, err
	}
	set, err := parseCPUs(text)
	if err != nil {
		return cpuset.CPUSet{}, badFile(fsys, CPUSet, path, file, err)
	}
	return set, nil
}

// WriteCPUs sets cpuset.cpus and reads back the CPUs in force. v2 accepts CPUs that the parent lacks, and uses the
// parent's when none is left. So effective is what counts; a *NotInForce error says where it differs.
func WriteCPUs(fsys FS, cpusetPath string, want cpuset.CPUSet) (effective cpuset.CPUSet, err error) {
	if err := fsys.Write(CPUSet, cpusetPath, FileCPUs, want.String()); err != nil {
		return effective, err
	}
	configured, effective, err := CPUs(fsys, cpusetPath)
	if err != nil {
		return effective, err
	}
	if !configured.Equals(want) || !want.IsEmpty() && !effective.Equals(want) {
		return effective, &NotInForce{Path: cpusetPath, Want: want, Configured: configured, Effective: effective}
	}
	return effective, nil
}

// NotInForce reports that the kernel took a set of CPUs but runs the tasks elsewhere.
type NotInForce struct {
	Path                        string
	Want, Configured, Effective cpuset.CPUSet
}

func (e *NotInForce) Error() string {
	if !e.Configured.Equals(e.Want) {
		return fmt.Sprintf("cgroup %s: cpuset.cpus: wrote %s, the kernel kept %q: another program writes it too",
			show(e.Path, 4096), e.Want, e.Configured)
	}
	return fmt.Sprintf("cgroup %s: cpuset.cpus: the kernel took %s, but %q are in force: the parent lacks the others",
		show(e.Path, 4096), e.Want, e.Effective)
}

// CPUSetState has the state of a cpuset other than its lists.
type CPUSetState struct {
	Configured, Effective cpuset.CPUSet
	// Exclusive reports that v1's cpuset.cpu_exclusive is 1: no sibling may share its CPUs.
	Exclusive bool
	// LoadBalance is v1's cpuset.sched_load_balance; on v2 it is true unless isolated.
	LoadBalance bool
	// CloneChildren reports that on v1 new children copy cpus and mems.
	CloneChildren bool
	// Partition is v2's cpuset.cpus.partition: "member", "root", "isolated", or one with " invalid (why)". It is "" on
	// v1 and in the root.
	Partition string
	// ExclusiveCPUs and ExclusiveEffective are v2's cpuset.cpus.exclusive and .exclusive.effective (since 6.7).
	ExclusiveCPUs, ExclusiveEffective cpuset.CPUSet
}

// ReadCPUSet reads a CPUSetState. A field that the kernel or the version does not have keeps its zero value.
func ReadCPUSet(fsys FS, cpusetPath string) (CPUSetState, error) {
	var s CPUSetState
	var err error
	if s.Configured, s.Effective, err = CPUs(fsys, cpusetPath); err != nil {
		return s, err
	}
	text := func(file string) string {
		if err != nil {
			return ""
		}
		var value string
		value, err = fsys.Read(CPUSet, cpusetPath, file)
		if errors.Is(err, ErrNoFile) {
			value, err = "", nil
		}
		return value
	}
	if v, _ := fsys.Version(CPUSet); v == V1 {
		s.Exclusive = text(FileExclusiveV1) == "1"
		s.LoadBalance = text(FileSchedLoadBalanceV1) == "1"
		s.CloneChildren = text(FileCloneChildren) == "1"
		return s, err
	}
	s.Partition = text(FilePartition)
	s.LoadBalance = s.Partition != "isolated"
	for file, set := range map[string]*cpuset.CPUSet{FileExclusive: &s.ExclusiveCPUs, fileExclusiveEffective: &s.ExclusiveEffective} {
		list := text(file)
		if err != nil {
			return s, err
		}
		if *set, err = parseCPUs(list); err != nil {
			return s, badFile(fsys, CPUSet, cpusetPath, file, err)
		}
	}
	return s, nil
}

// InPartition reports whether a v2 partition is in force: a root, not a member nor an invalid one.
func (s CPUSetState) InPartition() bool { return s.Partition == "root" || s.Partition == "isolated" }
