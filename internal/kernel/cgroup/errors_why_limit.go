package cgroup

import (
	"fmt"
	"io/fs"
)

// whyLimit says which rule of tg_set_cfs_bandwidth a refused write broke.
func whyLimit(fsys FS, v Version, e *Error) string {
	if e.Path == "/" {
		return "the root cgroup has no limit"
	}
	cur, err := ReadLimit(fsys, e.Path)
	if err != nil {
		return ""
	}
	want, err := applied(cur, FileValue{e.File, e.Value})
	if err != nil {
		return "not a value that the kernel accepts"
	}
	if err := want.CheckBounds(); err != nil {
		return err.Error()
	}
	if v == V2 {
		return ""
	}
	if ratio, limited := want.Bound(); limited {
		levels, err := Levels(fsys, Parent(e.Path))
		if err != nil {
			return ""
		}
		if cpus, bound, at := Effective(levels); bound && ratio > cpus {
			return fmt.Sprintf("%.3g CPUs are above the %.3g CPUs of %s", ratio, cpus, show(at, 4096))
		}
	}
	if child, cpus := childAbove(fsys, e.Path, want); child != "" {
		ratio, _ := want.Bound()
		return fmt.Sprintf("%.3g CPUs are below the %.3g CPUs of its child %s", ratio, cpus, show(child, 4096))
	}
	return ""
}

// maxWhyGroups bounds how many cgroups one error message reads.
const maxWhyGroups = 1000

// childAbove finds a descendant whose own quota is above its ancestor's wanted one.
func childAbove(fsys FS, path string, want Limit) (child string, cpus float64) {
	ratio, limited := want.Bound()
	if !limited {
		return "", 0
	}
	seen := 0
	_ = Walk(fsys, CPU, path, func(at string) error {
		if seen++; seen > maxWhyGroups {
			return fs.SkipAll
		}
		limit, err := ReadLimit(fsys, at)
		if own, ok := limit.Bound(); err == nil && at != path && ok && own > ratio {
			child, cpus = at, own
			return fs.SkipAll
		}
		return nil
	})
	return child, cpus
}
