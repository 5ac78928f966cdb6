package sandbox

import (
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// places are the hierarchies of this host, and the scope in each.
type places struct {
	fs    cgroup.FS
	scope cgroup.Group
	// known are the hierarchies of cpu, cpuset and cpuacct, each once.
	known []hierarchy
	// accounting are the v1 hierarchies of memory and pids.
	accounting []hierarchy
}

// findPlaces finds the hierarchies, and the scope's cgroup in each.
func findPlaces(host *cgroup.Host, fsys cgroup.FS, scope string) (places, error) {
	if fsys == nil {
		fsys = host
	}
	p := places{fs: fsys}
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		if _, ok := host.Version(c); !ok {
			return p, &NotMeasurable{What: fmt.Sprintf("no cgroup hierarchy with the %s controller is mounted", c),
				WayOut: "'unthrottle check' shows what there is"}
		}
	}
	for _, c := range cgroup.Controllers() {
		_, mounted := host.Version(c)
		if mounted && !slices.ContainsFunc(p.known, func(h hierarchy) bool { return host.SameHierarchy(c, h.controller) }) {
			p.known = append(p.known, hierarchy{fs: fsys, controller: c})
		}
	}
	if v, _ := host.Version(cgroup.CPU); v == cgroup.V1 {
		for _, mount := range accountingMounts("/proc/self/mountinfo") {
			p.accounting = append(p.accounting, hierarchy{mount: mount})
		}
	}
	if top := host.Top(cgroup.CPU); scope == "" || scope == top {
		// The tops belong together, whatever the processes of one say.
		p.scope = cgroup.Group{Path: top, CPUSetPath: host.Top(cgroup.CPUSet)}
		if _, ok := host.Version(cgroup.CPUAcct); ok {
			p.scope.CPUAcctPath = host.Top(cgroup.CPUAcct)
		}
		return p, nil
	}
	var err error
	if p.scope, err = host.Group(scope); err != nil {
		return p, fmt.Errorf("--parent: make the cgroup first, or leave --parent out: %w", err)
	}
	return p, nil
}

func (p *places) all() []hierarchy { return slices.Concat(p.known, p.accounting) }

// controllers are those that a sandbox needs.
var controllers = []cgroup.Controller{cgroup.CPU, cgroup.CPUSet}

// checkScope checks that on v2 the scope enables both controllers for its children.
func (p *places) checkScope() error {
	for _, c := range controllers {
		if v, _ := p.fs.Version(c); v != cgroup.V2 {
			continue
		}
		path := path(p.scope, c)
		enabled, err := cgroup.SubtreeControl(p.fs, path)
		if err != nil {
			return &NotMeasurable{What: "cgroup v2", WayOut: "run as root", Err: err}
		}
		if !slices.Contains(enabled, c) {
			return &NotMeasurable{
				What: fmt.Sprintf("cgroup %s: cgroup.subtree_control lacks %s, and that file is not ours to change",
					text.EscapePath(path), c),
				WayOut: fmt.Sprintf("write +%s to it yourself, or name with --parent a cgroup that hands cpu and "+
					"cpuset to its children", c),
			}
		}
	}
	return nil
}

// enableBelow enables the controllers for the children of a group on v2.
func (s *Sandbox) enableBelow(g cgroup.Group) error {
	for _, c := range controllers {
		if v, _ := s.fs.Version(c); v != cgroup.V2 {
			continue
		}
		if err := s.fs.Write(c, path(g, c), cgroup.FileSubtreeControl, "+"+string(c)); err != nil {
			return err
		}
		if c != cgroup.CPU || !s.memoryPids {
			continue
		}
		for _, enable := range []string{"+memory", "+pids"} {
			_ = s.fs.Write(c, path(g, c), cgroup.FileSubtreeControl, enable) // fails where the scope has none
		}
	}
	return nil
}

// path returns a group's path in the hierarchy of c.
func path(g cgroup.Group, c cgroup.Controller) string {
	switch c {
	case cgroup.CPUSet:
		return g.CPUSetPath
	case cgroup.CPUAcct:
		return g.CPUAcctPath
	}
	return g.Path
}

// below returns the group of that name in the parent.
func below(parent cgroup.Group, name string) cgroup.Group {
	g := cgroup.Group{Path: cgroup.Join(parent.Path, name), CPUSetPath: cgroup.Join(parent.CPUSetPath, name)}
	if parent.CPUAcctPath != "" {
		g.CPUAcctPath = cgroup.Join(parent.CPUAcctPath, name)
	}
	return g
}
