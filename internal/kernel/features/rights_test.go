package features

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

func TestRights(t *testing.T) {
	status := func(set string) fstest.MapFS {
		return fstest.MapFS{"proc/self/status": file("Name:\tx\nCapEff:\t" + set + "\n")}
	}
	for name, c := range map[string]struct {
		root    fstest.MapFS
		missing []string // nil: not known
	}{
		"all": {status("000001ffffffffff"), []string{}},
		"none": {status("0000000000000000"),
			[]string{"CAP_BPF", "CAP_PERFMON", "CAP_SYSLOG", "CAP_SYS_PTRACE", "CAP_SYS_NICE"}},
		"CAP_SYS_ADMIN":    {status("0000000000200000"), []string{"CAP_SYSLOG", "CAP_SYS_PTRACE", "CAP_SYS_NICE"}},
		"the systemd unit": {status("000000c400880000"), []string{}},
		"junk":             {status("many"), nil},
		"unreadable":       {fstest.MapFS{}, nil},
	} {
		got := readRights(c.root, 0, false, hostProcesses)
		if !slices.Equal(got.Missing, c.missing) || (got.Missing == nil) != (c.missing == nil) || got.Container != "" ||
			got.PrivateProcesses != No {
			t.Errorf("%s: %+v", name, got)
		}
	}
	const all = "000001ffffffffff"
	for _, c := range []struct {
		capabilities, profile string
		refused               error
		want                  string
	}{
		{all, "cri-containerd.apparmor.d (enforce)\n", fs.ErrPermission, "cri-containerd.apparmor.d (enforce)"},
		{all, "unconfined\n", nil, ""}, {all, "unconfined\n", fs.ErrPermission, ""}, {all, "", fs.ErrPermission, ""},
		{all, "system_u:system_r:container_t:s0:c14,c24\x00", fs.ErrPermission, "system_u:system_r:container_t:s0:c14,c24"},
		{all, "x\n", fs.ErrNotExist, ""},                               // a /proc that hides processes
		{"0000000000000000", "docker-default\n", fs.ErrPermission, ""}, // refused for the capability
	} {
		root := status(c.capabilities)
		root["proc/self/attr/current"] = file(c.profile)
		if got := SecurityProfile(refusing{root, "proc/1/root/proc", c.refused}); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
	for name, c := range map[string]struct {
		root      fstest.MapFS
		processes string
		private   bool // cgroups
		container string
		answer    Answer
	}{
		"docker":                {fstest.MapFS{".dockerenv": file("")}, "pid:[4026532001]", true, "docker", Yes},
		"docker, host's pids":   {fstest.MapFS{".dockerenv": file("")}, hostProcesses, true, "docker", No},
		"podman":                {fstest.MapFS{"run/.containerenv": file("")}, "pid:[4026532001]", true, "podman", Yes},
		"kubernetes":            {fstest.MapFS{"var/run/secrets/kubernetes.io/x": file("")}, "pid:[4026532001]", false, "kubernetes", Yes},
		"another":               {fstest.MapFS{}, "pid:[4026532001]", false, "container", Yes},
		"a file, but no fences": {fstest.MapFS{".dockerenv": file("")}, hostProcesses, false, "", No},
		"not told":              {fstest.MapFS{}, "", false, "", Unknown},
	} {
		if got := readRights(c.root, 0, c.private, c.processes); got.Container != c.container || got.PrivateProcesses != c.answer {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// refusing is a file system that answers one name with an error; nil: it is there.
type refusing struct {
	fstest.MapFS
	name string
	err  error
}

func (r refusing) Stat(name string) (fs.FileInfo, error) {
	if name == r.name && r.err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: r.err}
	}
	if name == r.name {
		name = "proc/self/status"
	}
	return r.MapFS.Stat(name)
}

func TestCommandsAndWhatIsMissing(t *testing.T) {
	full := Report{Rights: Rights{Missing: []string{}, PrivateProcesses: No}, Controllers: []Controller{
		{Name: cgroup.CPU, Version: cgroup.V2, Dir: "/c", Writable: true, CanMakeCgroups: true},
		{Name: cgroup.CPUSet, Version: cgroup.V2, Dir: "/c", Writable: true, CanMakeCgroups: true},
	}}
	none := []string{"CAP_BPF", "CAP_PERFMON", "CAP_SYSLOG", "CAP_SYS_PTRACE", "CAP_SYS_NICE"}
	everything := []string{"explain", "forecast", "fix", "agent, mode observe", "agent, mode apply", "undo (restore)"}
	for name, c := range map[string]struct {
		change func(*Report, *Tried)
		cannot []string
		ways   []string // in what is missing
	}{
		"everything": {func(*Report, *Tried) {}, nil, nil},
		"ordinary user": {func(r *Report, tried *Tried) {
			r.Rights.UID, r.Rights.Missing, tried.Probe = 1000, none, "not permitted"
			r.Controllers[0].Writable, r.Controllers[1].Writable = false, false
		}, slices.DeleteFunc(slices.Clone(everything), func(s string) bool { return s == "agent, mode observe" }),
			[]string{"run with sudo", "run with sudo"}},
		"kernel without BTF": {func(_ *Report, tried *Tried) { tried.Probe = "a kernel with BTF is needed" },
			[]string{"explain", "forecast", "fix", "agent, mode apply"}, []string{"a kernel with BTF is needed"}},
		"docker": {func(r *Report, tried *Tried) {
			r.Rights = Rights{Missing: none[:3], Container: "docker", PrivateProcesses: Yes}
			r.PrivateNamespace, tried.Probe = true, "not permitted"
		}, []string{"explain", "forecast", "fix", "agent, mode apply"},
			[]string{"--cap-add BPF --cap-add PERFMON --cap-add SYSLOG", "--cgroupns host", "--pid host"}},
		"kubernetes": {func(r *Report, tried *Tried) {
			r.Rights = Rights{Missing: none[:2], Container: "kubernetes", PrivateProcesses: Yes}
			tried.Probe = "not permitted"
		}, []string{"explain", "forecast", "fix", "agent, mode apply"}, []string{"add: [BPF, PERFMON]", "hostPID: true"}},
		"restricted root": {func(r *Report, _ *Tried) { r.Rights.Missing = none[3:] }, nil,
			[]string{"CapabilityBoundingSet=CAP_SYS_PTRACE", "CapabilityBoundingSet=CAP_SYS_NICE"}},
		"root without CAP_DAC_OVERRIDE": {func(r *Report, _ *Tried) { r.Controllers[0].CanMakeCgroups = false }, nil,
			[]string{"CAP_DAC_OVERRIDE"}},
		"bad state directory": {func(_ *Report, tried *Tried) { tried.StateDir = "others can write it: chmod go-w" },
			[]string{"fix", "agent, mode apply", "undo (restore)"}, []string{"chmod go-w"}},
		"no cpu controller": {func(r *Report, _ *Tried) { r.Controllers = nil }, everything, nil},
	} {
		r, tried := full, Tried{}
		r.Controllers = slices.Clone(full.Controllers)
		c.change(&r, &tried)
		looking, changing := Commands(r, tried)
		var cannot []string
		for _, a := range append(looking, changing...) {
			if a.Why == "" {
				t.Errorf("%s: %s: no reason given", name, a.What)
			}
			if !a.Can {
				cannot = append(cannot, a.What)
			}
		}
		if !slices.Equal(cannot, c.cannot) {
			t.Errorf("%s: cannot %q, want %q", name, cannot, c.cannot)
		}
		lacks := Lacks(r, tried)
		if len(lacks) != len(c.ways) {
			t.Errorf("%s: %d missing, want %d: %+v", name, len(lacks), len(c.ways), lacks)
			continue
		}
		for i, m := range lacks {
			if m.What == "" || m.For == "" || !strings.Contains(m.Way, c.ways[i]) {
				t.Errorf("%s: %+v does not say %q", name, m, c.ways[i])
			}
		}
	}
}
