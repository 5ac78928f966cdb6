package cgroup

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Bounds on a mountinfo that other users may have filled with mounts.
const (
	maxMountinfoBytes = 16 << 20
	maxCgroupMounts   = 4096
)

// hierarchyMount is one cgroup line of mountinfo.
type hierarchyMount struct {
	Mount
	device      string // major:minor, equal for all mounts of one v1 hierarchy
	controllers []Controller
}

// parseMountinfo finds the cgroup mounts in /proc/PID/mountinfo (format: Documentation/filesystems/proc.rst 3.5). It
// skips malformed lines, so that another user's mount cannot hide valid ones.
func parseMountinfo(text string) []hierarchyMount {
	var found []hierarchyMount
	for line := range strings.SplitSeq(text, "\n") {
		if m, ok := parseMountLine(line); ok {
			found = append(found, m)
			if len(found) == maxCgroupMounts {
				break
			}
		}
	}
	return found
}

// parseMountLine reads "36 35 0:31 /root /mount/point rw,noatime shared:1 - cgroup cgroup rw,cpu".
func parseMountLine(line string) (hierarchyMount, bool) {
	before, after, ok := strings.Cut(line, " - ")
	if !ok {
		return hierarchyMount{}, false
	}
	// The kernel writes single spaces and escapes those inside names; the source (super[1]) may be empty.
	f, super := strings.Split(before, " "), strings.Split(after, " ")
	if len(f) < 6 || len(super) < 3 {
		return hierarchyMount{}, false
	}
	m := hierarchyMount{device: f[2]}
	options := super[2]
	switch super[0] {
	case "cgroup":
		m.Version = V1
		for option := range strings.SplitSeq(options, ",") {
			if c := Controller(option); slices.Contains(allControllers(), c) {
				m.controllers = append(m.controllers, c)
			}
		}
	case "cgroup2":
		m.Version = V2
	default:
		return hierarchyMount{}, false
	}
	m.Root, m.Dir = unescapeMount(f[3]), unescapeMount(f[4])
	if !strings.HasPrefix(m.Root, "/") || !strings.HasPrefix(m.Dir, "/") {
		return hierarchyMount{}, false
	}
	m.Root, m.Dir = cleanRoot(m.Root), path.Clean(m.Dir)
	m.ReadOnly = hasOption(f[5], "ro") || hasOption(options, "ro")
	return m, true
}

func hasOption(list, want string) bool {
	return slices.Contains(strings.Split(list, ","), want)
}

// cleanRoot drops a trailing slash but keeps leading ".." parts, which path.Clean would drop.
func cleanRoot(root string) string {
	if root = strings.TrimRight(root, "/"); root == "" {
		return "/"
	}
	return root
}

// unescapeMount undoes the kernel's mangle(): a backslash and three octal digits are one byte.
func unescapeMount(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && s[i+1] >= '0' && s[i+1] <= '3' && octal(s[i+2]) && octal(s[i+3]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func octal(c byte) bool { return c >= '0' && c <= '7' }

// rootDepth orders mounts of one hierarchy: a smaller depth shows more of the tree. ".." is above our own cgroup
// namespace.
func rootDepth(root string) int {
	depth := 0
	for part := range strings.SplitSeq(strings.Trim(root, "/"), "/") {
		switch part {
		case "":
		case "..":
			depth--
		default:
			depth++
		}
	}
	return depth
}

// foreign reports whether a mount begins outside our cgroup namespace; the kernel then shows its root as "/.." or
// "/../x".
func (m Mount) foreign() bool { return Below(m.Root, "/..") }

// rankMounts sorts best first: highest root, then writable, then the shorter and lower name.
func rankMounts(mounts []hierarchyMount) {
	slices.SortStableFunc(mounts, func(a, b hierarchyMount) int {
		return cmp.Or(
			cmp.Compare(rootDepth(a.Root), rootDepth(b.Root)),
			compareBool(a.ReadOnly, b.ReadOnly),
			cmp.Compare(len(a.Dir), len(b.Dir)),
			cmp.Compare(a.Dir, b.Dir))
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// pickMounts chooses the mount of each controller. v1 goes first, because a controller bound to a v1 hierarchy is not
// on v2. On v2, cgroup.controllers must list a controller. v2 has no cpuacct: cpu has its figures.
func pickMounts(mounts []hierarchyMount, reachable func(Mount) bool, onV2 func(Mount) []Controller) map[Controller]hierarchyMount {
	ranked := slices.Clone(mounts)
	rankMounts(ranked)
	best := func(fits func(hierarchyMount) bool) *hierarchyMount {
		for i := range ranked {
			if fits(ranked[i]) && reachable(ranked[i].Mount) {
				return &ranked[i]
			}
		}
		return nil
	}
	var there []Controller
	unified := best(func(m hierarchyMount) bool { return m.Version == V2 })
	if unified != nil {
		there = onV2(unified.Mount)
	}
	picked := map[Controller]hierarchyMount{}
	for _, c := range allControllers() {
		legacy := best(func(m hierarchyMount) bool { return m.Version == V1 && slices.Contains(m.controllers, c) })
		name := c
		if c == CPUAcct {
			name = CPU
		}
		switch {
		case legacy != nil:
			picked[c] = *legacy
		case slices.Contains(there, name):
			picked[c] = *unified
		}
	}
	return picked
}
