package systemd

import (
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// maxUnitName is UNIT_NAME_MAX of systemd.
const maxUnitName = 255

// types are the kinds of units that have a cgroup, by suffix, with their D-Bus interface.
var types = map[string]string{
	"service": "Service", "scope": "Scope", "slice": "Slice", "socket": "Socket", "mount": "Mount", "swap": "Swap",
}

// unitType returns the D-Bus interface of a unit; "" for a name of any other kind.
func unitType(unit string) string {
	i := strings.LastIndexByte(unit, '.')
	if i < 1 || len(unit) > maxUnitName {
		return ""
	}
	for _, c := range []byte(unit) {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(`:-_.\@`, c) >= 0
		if !ok {
			return ""
		}
	}
	return types[unit[i+1:]]
}

// unitOf returns the unit whose own cgroup has this path, by its name alone; "" for other paths. systemd puts a "_"
// before names that resemble the kernel's files (cg_escape).
func unitOf(path string) string {
	unit := strings.TrimPrefix(cgroup.Base(path), "_")
	if unitType(unit) == "" {
		return ""
	}
	return unit
}
