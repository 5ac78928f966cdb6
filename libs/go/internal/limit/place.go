package limit

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// maxLevels bounds the path of a cgroup. The kernel's own bound (cgroup.max.depth) is seldom set; containers have fewer than ten.
const maxLevels = 64

// place is where the cpu controller's files of this process are.
type place struct {
	v2 bool
	// mount is the mount point and own the cgroup's folder, without the leading slash, as an [fs.FS] wants them.
	mount, own string
	// usage is the folder with the same cgroup's cpuacct.usage on v1; "": there is none.
	usage string
}

// findPlace reads /proc/self/cgroup and /proc/self/mountinfo.
func findPlace(root fs.FS) (place, error) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return place{}, fmt.Errorf("the cgroup of this process: %w", err)
	}
	table, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return place{}, fmt.Errorf("the mounts of this process: %w", err)
	}
	mounts := parseMounts(string(table))
	cpu, v2, usage := "", "", ""
	for line := range strings.Lines(string(groups)) {
		hierarchy, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, at, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case has(controllers, "cpu"):
			cpu = at
		case hierarchy == "0" && controllers == "":
			v2 = at
		}
		if ok && has(controllers, "cpuacct") {
			usage = at
		}
	}
	if cpu != "" {
		err := fmt.Errorf("cgroup %s: the v1 cpu controller is not mounted here", strconv.Quote(cpu))
		for _, m := range mounts {
			if m.v2 || !has(m.options, "cpu") {
				continue
			}
			p := place{mount: m.point}
			if p.own, err = m.folder(cpu); err != nil {
				continue
			}
			for _, m := range mounts {
				// In another cgroup of cpuacct than of cpu, the process is counted with others.
				if usage == cpu && !m.v2 && has(m.options, "cpuacct") {
					p.usage, _ = m.folder(usage)
				}
			}
			return p, nil
		}
		return place{}, err
	}
	err = errors.New("no cgroup file system with the cpu controller is mounted here")
	for _, m := range mounts {
		if v2 == "" || !m.v2 {
			continue
		}
		p := place{v2: true, mount: m.point}
		if p.own, err = m.folder(v2); err == nil {
			return p, nil
		}
	}
	return place{}, err
}

// mount is a cgroup mount of /proc/self/mountinfo.
type mount struct {
	v2          bool
	root, point string
	options     string // of the super block: controllers on v1
}

// folder is where the files of a cgroup are. A cgroup outside the mount's root is the root itself in a container that mounts
// only its own part of the tree, and sees its path on the host. Where a cgroup namespace is entered without a mount of its own, the
// kernel writes "/.." for what is above it, and does not say what the folders in between are called.
func (m mount) folder(cgroup string) (string, error) {
	below := cgroup
	hidden := false
	if m.root != "/" {
		var inside bool
		if below, inside = strings.CutPrefix(cgroup, m.root); !inside || below != "" && below[0] != '/' {
			below, hidden = "", above(m.root) || above(cgroup)
		}
	}
	if hidden || above(below) {
		return "", fmt.Errorf("cgroup %s: /%s shows %s: its folder there is not known in this cgroup namespace; mount the cgroup file "+
			"system again inside the namespace", strconv.Quote(cgroup), m.point, strconv.Quote(m.root))
	}
	return strings.TrimPrefix(path.Join(m.point, below), "/"), nil
}

// above reports whether a path leads out of the cgroup namespace.
func above(path string) bool { return strings.HasPrefix(path+"/", "/../") }

func parseMounts(table string) (mounts []mount) {
	for line := range strings.Lines(table) {
		front, back, ok := strings.Cut(line, " - ")
		f, b := strings.Fields(front), strings.Fields(back)
		if !ok || len(f) < 5 || len(b) < 3 || b[0] != "cgroup" && b[0] != "cgroup2" {
			continue
		}
		mounts = append(mounts, mount{v2: b[0] == "cgroup2", root: unescape(f[3]),
			point: strings.TrimPrefix(path.Clean(unescape(f[4])), "/"), options: b[2]})
	}
	return mounts
}

// unescape undoes the octal escapes of mountinfo: blank, tab, line feed and backslash.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

func has(list, name string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one == name {
			return true
		}
	}
	return false
}

// levels are the folders from the process's own cgroup up to the mount point.
func (p place) levels() (all []string) {
	for at := p.own; len(all) < maxLevels; at = path.Dir(at) {
		all = append(all, at)
		if at == p.mount || at == "." || !strings.HasPrefix(at, p.mount) {
			break
		}
	}
	return all
}
