// Package nri is this program's plugin of a container runtime: NRI, the node resource interface of containerd and CRI-O.
//
// # Problem
//
// A runtime keeps a copy of each container's settings. Who writes the cgroup's files directly leaves that copy wrong, and
// the runtime's next update of any setting writes the old values again. The runtime also knows the names and labels of
// pods, which otherwise need the Kubernetes API.
//
// # Rule
//
//  1. [Plugin.Run] keeps one session. It dials again with a growing pause after each loss. Each session begins with the
//     runtime's list of all containers, which replaces what was known.
//  2. It subscribes to four events only: a container starts, is to be updated, was updated, was removed. All runtimes with NRI
//     have these. It is not asked before a container is created, so that no pod waits for it. An update waits at most
//     resizeTime for a burst of ours to be lowered ([Plugin.BeforeResize]), because the kernel refuses a quota below it.
//     A handler copies what it is told under a lock that is never held over anything that waits.
//  3. [Plugin.Through] is a cgroup.FS whose writes of quota, period, burst and cpuset of the runtime's own containers go
//     through the runtime. It reads each value back, because NRI says yes to updates that it did not make. A value that is
//     not there is written directly, and so is all that NRI does not have.
//  4. An update makes the runtime write its copy of the other settings too. Those that have the copy afterwards, and had
//     another value before, are written back. A value that is neither is another program's, such as the kubelet's resize
//     within answerTime, and stays.
//  5. Without a session all writes are direct.
//
// The journal is not this package's: package apply journals a write before it calls the FS, and reads it back afterwards. The
// entry has the other settings with their values ([through.Beside]). If this process is killed between an update and its
// write-back, the next writer writes them back.
//
// # Example
//
// apply writes cpu.cfs_quota_us "20000" of /kubepods/burstable/pod3f5a.../9b1c.... The last part holds the id 9b1c... of a
// container that the runtime named. The update has quota 20000 and the period that the kernel shows. The runtime answers,
// the file has 20000, and the runtime's copy too.
//
// # Limits
//
// A pod's cgroup is not in NRI: its quota is written directly. Cgroup v1 has no burst in NRI, weights are written
// directly on both versions. An update that the runtime does not answer within answerTime is an error, since it may still
// be made; the session is ended.
//
// # Sources
//
// containerd/nri v0.12.5 pkg/stub and pkg/api; containerd 2.4.2 internal/cri/nri; nri#114 and nri#316 (plugins that were
// dropped for one slow answer).
package nri
