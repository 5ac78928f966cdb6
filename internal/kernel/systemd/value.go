package systemd

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/godbus/dbus/v5"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
	"github.com/unthrottle/unthrottle/topology"
)

// idle is CPUWeight=idle, which D-Bus carries as 0.
const idle = "idle"

// notSet is USEC_INFINITY and CGROUP_WEIGHT_INVALID.
const notSet = uint64(math.MaxUint64)

// encode turns a value's text into the D-Bus value of the property.
func encode(property, text string) (dbus.Variant, error) {
	switch property {
	case unitprop.AllowedCPUs, unitprop.AllowedMemoryNodes:
		set, err := topology.ParseList(text)
		if err != nil {
			return dbus.Variant{}, fmt.Errorf("%s=%.60q: %w", property, text, err)
		}
		return dbus.MakeVariant(mask(set)), nil
	case unitprop.CPUQuotaPerSecUSec, unitprop.CPUQuotaPeriodUSec, unitprop.CPUWeight, unitprop.CPUShares:
		n, err := number(property, text)
		return dbus.MakeVariant(n), err
	}
	return dbus.Variant{}, fmt.Errorf("%s is not a property that unthrottle sets", property)
}

func number(property, text string) (uint64, error) {
	switch {
	case text == unitprop.Infinity:
		return notSet, nil
	case text == idle && property == unitprop.CPUWeight:
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == notSet {
		return 0, fmt.Errorf("%s=%.60q: not a number and not %q", property, text, unitprop.Infinity)
	}
	return n, nil
}

// decode is the inverse of encode.
func decode(property string, value dbus.Variant) (string, error) {
	switch v := value.Value().(type) {
	case []byte:
		if property == unitprop.AllowedCPUs || property == unitprop.AllowedMemoryNodes {
			set, err := Set(v)
			return set.String(), err
		}
	case uint64:
		switch {
		case !slices.Contains([]string{unitprop.CPUQuotaPerSecUSec, unitprop.CPUQuotaPeriodUSec, unitprop.CPUWeight,
			unitprop.CPUShares}, property):
		case v == notSet:
			return unitprop.Infinity, nil
		case v == 0 && property == unitprop.CPUWeight:
			return idle, nil
		default:
			return strconv.FormatUint(v, 10), nil
		}
	}
	return "", fmt.Errorf("%s: unexpected type %s", property, value.Signature())
}

// mask returns a set as D-Bus transports it: bit i%8 of byte i/8, no trailing zero bytes.
func mask(set cpuset.CPUSet) []byte {
	mask := []byte{}
	for _, id := range set.List() {
		for len(mask) <= id/8 {
			mask = append(mask, 0)
		}
		mask[id/8] |= 1 << (id % 8)
	}
	return mask
}

// Set is the inverse of mask; it ignores trailing zero bytes. It refuses more than topology.MaxCPUs.
func Set(mask []byte) (cpuset.CPUSet, error) {
	if len(mask) > topology.MaxCPUs/8 {
		return cpuset.CPUSet{}, fmt.Errorf("a mask of %d bytes is longer than %d", len(mask), topology.MaxCPUs/8)
	}
	var ids []int
	for i, b := range mask {
		for bit := range 8 {
			if b&(1<<bit) != 0 {
				ids = append(ids, i*8+bit)
			}
		}
	}
	return cpuset.New(ids...), nil
}
