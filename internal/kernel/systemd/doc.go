// Package systemd reads and sets the resource properties of systemd's units over D-Bus.
//
// Problem: where systemd made a cgroup it believes that it owns its settings. A plain write to cpuset.cpus or cpu.max
// works until the next daemon-reload or the next change of any property of that unit, which writes systemd's own idea
// back. Only a property that systemd knows of stays.
//
// Rule: properties are set as runtime ones (SetUnitProperties with runtime = true): systemd keeps them in /run, so
// they are gone after a reboot, as the cgroup's own settings are, and no file of the user's is touched.
//
// Values are text, one notation for people and journal:
//
//	AllowedCPUs, AllowedMemoryNodes   a kernel list, "0-3,8"; "" is not set (D-Bus: a byte mask, bit i%8 of byte i/8)
//	CPUQuotaPerSecUSec                microseconds of CPU time per second, "2000000" is 200 %; "infinity" is none
//	CPUQuotaPeriodUSec                microseconds; "infinity" is systemd's default, 100 ms
//	CPUWeight                         1 to 10000; "idle"; "infinity" is not set
//	CPUShares                         2 to 262144 (cgroup v1); "infinity" is not set
//
// Worked example: /system.slice/db.service with CPUQuota=150% shows CPUQuotaPerSecUSec "1500000". Lifting it sets
// "infinity"; taking that back sets "1500000" again. AllowedCPUs=0-3,8 travels as the bytes 0f 01.
//
// Limits: a cgroup below a unit's own (a container runtime's subtree with Delegate=yes) is nobody's property and is
// written directly. systemd has no CPU sets on cgroup v1: AllowedCPUs does nothing there. systemd cannot empty
// cpuset.cpus while processes are inside, on kernels that refuse that (systemd#43846), so the file has to be looked at
// as well. Every call ends after the manager's timeout.
//
// Sources: org.freedesktop.systemd1(5), systemd.resource-control(5), systemd src/core/dbus-cgroup.c and
// src/shared/cpu-set-util.c (cpu_set_to_dbus), src/basic/cgroup-util.c (cg_escape).
package systemd
