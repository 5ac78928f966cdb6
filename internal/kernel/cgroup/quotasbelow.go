package cgroup

import (
	"errors"
	"io/fs"
)

// Bounds of QuotasBelow, because what runs in a container makes the cgroups in it.
const (
	// MaxBelow is how many cgroups below one are read.
	MaxBelow = 4096
	// MaxQuotasBelow is how many of them with a quota are returned.
	MaxQuotasBelow = 48
)

// QuotasBelow returns the cgroups below a path that have a quota of their own, in the order of Walk. The kernel counts a
// quota's throttling in the cgroup that has it, and in none above. except, which may be nil, leaves out a cgroup with
// all below it. whole is false where there are more cgroups than MaxBelow or quotas than MaxQuotasBelow, or where a
// limit could not be read.
func QuotasBelow(fsys FS, path string, except func(path string) bool) (limited []Level, whole bool) {
	whole = true
	read := 0
	err := Walk(fsys, CPU, path, func(below string) error {
		if below == path {
			return nil
		}
		if except != nil && except(below) {
			return fs.SkipDir
		}
		if read++; read > MaxBelow {
			whole = false
			return fs.SkipAll
		}
		limit, err := ReadLimit(fsys, below)
		switch {
		case errors.Is(err, ErrNoCgroup):
			return nil
		case err != nil:
			whole = false
			return nil
		case !limit.Limited():
			return nil
		case len(limited) == MaxQuotasBelow:
			whole = false
			return fs.SkipAll
		}
		limited = append(limited, Level{Path: below, Limit: limit})
		return nil
	})
	return limited, whole && (err == nil || errors.Is(err, ErrNoCgroup))
}
