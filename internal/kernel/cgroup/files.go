package cgroup

// Names of control files (kernel: kernel/cgroup/cgroup.c, cgroup-v1.c, cpuset.c, cpuset-v1.c, kernel/sched/core.c).
const (
	FileProcs          = "cgroup.procs"
	FileSubtreeControl = "cgroup.subtree_control" // v2: controllers enabled for the children
	FileControllers    = "cgroup.controllers"     // v2: controllers that this cgroup has
	FileType           = "cgroup.type"            // v2, not in the root
	FileCloneChildren  = "cgroup.clone_children"  // v1

	FileStat      = "cpu.stat"
	FileStatLocal = "cpu.stat.local" // since 6.6

	fileMax      = "cpu.max" // v2: "max 100000" or "50000 100000", us
	fileMaxBurst = "cpu.max.burst"
	fileQuota    = "cpu.cfs_quota_us" // v1: -1 means no quota
	filePeriod   = "cpu.cfs_period_us"
	fileBurst    = "cpu.cfs_burst_us" // since 5.14

	fileShares = "cpu.shares" // v1: 2 to 262144, 1024 by default
	fileWeight = "cpu.weight" // v2: 1 to 10000, 100 by default
	FileIdle   = "cpu.idle"   // since 5.15: with 1 it runs only where its siblings leave CPUs idle
	// FileRTRuntime is the real-time runtime of a group, v1 with CONFIG_RT_GROUP_SCHED only.
	FileRTRuntime = "cpu.rt_runtime_us"
	fileRTPeriod  = "cpu.rt_period_us"
	FileUsage     = "cpuacct.usage"

	fileEvents       = "cgroup.events" // v2: "populated 1", "frozen 0" (since 5.2)
	fileFreezerState = "freezer.state" // v1: THAWED, FREEZING or FROZEN, also by an ancestor

	FileCPUs               = "cpuset.cpus"
	FileMems               = "cpuset.mems"
	fileEffectiveV1        = "cpuset.effective_cpus"
	fileEffectiveV2        = "cpuset.cpus.effective"
	fileEffectiveMemsV1    = "cpuset.effective_mems"
	fileEffectiveMemsV2    = "cpuset.mems.effective"
	FilePartition          = "cpuset.cpus.partition"           // v2: member, root, isolated
	FileExclusive          = "cpuset.cpus.exclusive"           // v2, since 6.7
	fileExclusiveEffective = "cpuset.cpus.exclusive.effective" // v2, since 6.7
	FileExclusiveV1        = "cpuset.cpu_exclusive"
	FileSchedLoadBalanceV1 = "cpuset.sched_load_balance"
)

// ThreadsFile returns the file that lists threads: tasks or cgroup.threads.
func ThreadsFile(v Version) string {
	if v == V2 {
		return "cgroup.threads"
	}
	return "tasks"
}

// LimitFiles returns the files that hold a Limit.
func LimitFiles(v Version) []string {
	if v == V2 {
		return []string{fileMax, fileMaxBurst}
	}
	return []string{fileQuota, filePeriod, fileBurst}
}

// IsBurst tells whether a file holds the burst of a Limit, on either version.
func IsBurst(file string) bool { return file == fileBurst || file == fileMaxBurst }

// OtherPeriod tells whether two values of a file of a Limit have different periods.
func OtherPeriod(file, one, other string) bool {
	switch file {
	case filePeriod:
		return one != other
	case fileMax:
		a, failed := ParseMax(one)
		b, err := ParseMax(other)
		return failed == nil && err == nil && a.Period != b.Period
	}
	return false
}

// WeightFile returns the file that holds the weight.
func WeightFile(v Version) string {
	if v == V2 {
		return fileWeight
	}
	return fileShares
}

// EffectiveCPUsFile returns the file of the CPUs in force.
func EffectiveCPUsFile(v Version) string {
	if v == V2 {
		return fileEffectiveV2
	}
	return fileEffectiveV1
}

// EffectiveMemsFile returns the file of the memory nodes in force.
func EffectiveMemsFile(v Version) string {
	if v == V2 {
		return fileEffectiveMemsV2
	}
	return fileEffectiveMemsV1
}

// clearsByNewline reports whether an empty list is a value of this file; "\n" clears such a file.
func clearsByNewline(file string) bool {
	return file == FileCPUs || file == FileMems || file == FileExclusive
}
