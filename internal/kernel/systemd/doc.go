// Package systemd reads and sets the resource properties of systemd's units over D-Bus.
//
// Problem: systemd considers the settings of its cgroups its own. A plain write to cpuset.cpus or cpu.max lasts until
// the next daemon-reload or the next change of any property of that unit. Then systemd writes its own values again.
// Only a property that systemd knows lasts.
//
// Rule: the package sets runtime properties (SetUnitProperties with runtime = true). systemd keeps them in /run, so a
// reboot removes them together with the cgroup's own settings. No file of the user changes. Forget removes systemd's files in
// /run as well, once a property has its former value again.
//
// Values are text, in one notation for users and journal:
//
//	AllowedCPUs, AllowedMemoryNodes   a kernel list, "0-3,8"; "" is not set (D-Bus: a byte mask, bit i%8 of byte i/8)
//	CPUQuotaPerSecUSec                microseconds of CPU time per second, "2000000" is 200 %; "infinity" is none
//	CPUQuotaPeriodUSec                microseconds; "infinity" is systemd's default, 100 ms
//	CPUWeight                         1 to 10000; "idle"; "infinity" is not set
//	CPUShares                         2 to 262144 (cgroup v1); "infinity" is not set
//
// Worked example: /system.slice/db.service with CPUQuota=150% shows CPUQuotaPerSecUSec "1500000". Lifting the quota
// sets "infinity"; the rollback sets "1500000" again. AllowedCPUs=0-3,8 travels as the bytes 0f 01.
//
// Limits:
//
//   - A cgroup below a unit's own (a container runtime's subtree with Delegate=yes) belongs to no unit. Callers write
//     it directly.
//   - systemd has no CPU sets on cgroup v1: AllowedCPUs has no effect there.
//   - systemd cannot empty cpuset.cpus while processes are inside, on kernels that refuse that (systemd#43846). So
//     callers check the file as well.
//   - Every call ends after the manager's timeout.
//
// Sources: org.freedesktop.systemd1(5), systemd.resource-control(5), systemd src/core/dbus-cgroup.c and
// src/shared/cpu-set-util.c (cpu_set_to_dbus), src/basic/cgroup-util.c (cg_escape).
package systemd
