// Package unitprop names the properties of systemd units that unthrottle reads or sets, and their special value. See
// package systemd for the notation of their values.
package unitprop

// The properties.
const (
	AllowedCPUs        = "AllowedCPUs"
	AllowedMemoryNodes = "AllowedMemoryNodes"
	CPUQuotaPerSecUSec = "CPUQuotaPerSecUSec"
	CPUQuotaPeriodUSec = "CPUQuotaPeriodUSec"
	CPUWeight          = "CPUWeight"
	CPUShares          = "CPUShares" // cgroup v1
)

// Infinity is no limit, or not set.
const Infinity = "infinity"
