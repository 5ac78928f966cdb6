package cgroupmodel_test

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"pgregory.net/rapid"
)

// step is one operation of a sequence; group and process are indices.
type step struct {
	kind, file, value string
	group, process    int
	controller        cgroup.Controller
}

// groups of a sequence, below the base.
var groups = []string{"", "/a", "/a/b", "/a/c", "/a/b/d", "/e", "/e/f"}

func genOp(v cgroup.Version) *rapid.Generator[step] {
	micros := rapid.SampledFrom([]string{"-1", "0", "999", "1000", "5000", "10000", "20000", "50000", "100000",
		"200000", "1000000", "1000001", "18446744073709551", "99999999999999999999", "x"})
	lists := rapid.SampledFrom([]string{"", "0", "1", "0-1", "1,0", "0-1:1/2", "100000", "x", "1-0", "-"})
	flags := rapid.SampledFrom([]string{"0", "1", "2", "-1", "y"})
	return rapid.Custom(func(t *rapid.T) step {
		s := step{
			kind: rapid.SampledFrom([]string{cgroup.OpWrite, cgroup.OpWrite, cgroup.OpWrite, cgroup.OpWrite,
				cgroup.OpWrite, cgroup.OpAttach,
				cgroup.OpMake, cgroup.OpRemove}).Draw(t, "kind"),
			group:   rapid.IntRange(0, len(groups)-1).Draw(t, "group"),
			process: rapid.IntRange(0, 2).Draw(t, "process"),
		}
		s.controller = rapid.SampledFrom([]cgroup.Controller{cgroup.CPU, cgroup.CPUSet}).Draw(t, "controller")
		if s.kind != cgroup.OpWrite {
			return s
		}
		if v == cgroup.V2 && rapid.IntRange(0, 3).Draw(t, "core") == 0 {
			s.file = rapid.SampledFrom([]string{cgroup.FileSubtreeControl, cgroup.FileSubtreeControl, cgroup.FileType}).Draw(t, "file")
			s.value = rapid.SampledFrom([]string{"+cpu", "-cpu", "+cpuset", "-cpuset", "+cpu +cpuset", "-cpu -cpuset",
				"+cpu -cpu", "+nonsense", "cpu"}).Draw(t, "controllers")
			if s.file == cgroup.FileType {
				s.value = rapid.SampledFrom([]string{"threaded", "domain"}).Draw(t, "type")
			}
			return s
		}
		switch {
		case s.controller == cgroup.CPU && v == cgroup.V1:
			s.file = rapid.SampledFrom([]string{"cpu.cfs_quota_us", "cpu.cfs_quota_us", "cpu.cfs_period_us",
				"cpu.cfs_burst_us", "cpu.shares"}).Draw(t, "file")
			s.value = micros.Draw(t, "value")
		case s.controller == cgroup.CPU:
			s.file = rapid.SampledFrom([]string{"cpu.max", "cpu.max", "cpu.max.burst", "cpu.weight"}).Draw(t, "file")
			s.value = micros.Draw(t, "value")
			if s.file == "cpu.max" {
				s.value = rapid.SampledFrom([]string{s.value, "max", "max 50000", s.value + " 50000",
					s.value + " 100000", "max 1"}).Draw(t, "max")
			}
		case v == cgroup.V1:
			s.file = rapid.SampledFrom([]string{cgroup.FileCPUs, cgroup.FileCPUs, cgroup.FileMems,
				cgroup.FileExclusiveV1, cgroup.FileSchedLoadBalanceV1, cgroup.FileCloneChildren}).Draw(t, "file")
			switch s.file {
			case cgroup.FileCPUs:
				s.value = lists.Draw(t, "value")
			case cgroup.FileMems:
				s.value = rapid.SampledFrom([]string{"", "0", "0", "0", "1000000"}).Draw(t, "value")
			default:
				s.value = flags.Draw(t, "value")
			}
		default:
			s.file = rapid.SampledFrom([]string{cgroup.FileCPUs, cgroup.FileCPUs, cgroup.FileMems}).Draw(t, "file")
			s.value = lists.Draw(t, "value")
			if s.file == cgroup.FileMems {
				s.value = rapid.SampledFrom([]string{"", "0"}).Draw(t, "value")
			}
		}
		return s
	})
}

func describe(ops []step) string {
	var b strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&b, "\n  %s %s %q %s %q pid#%d", op.kind, op.controller, groups[op.group], op.file, op.value, op.process)
	}
	return b.String()
}
