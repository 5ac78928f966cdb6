package nri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/topology"
)

var (
	id   = strings.Repeat("9b1c", 16)
	path = "/kubepods/" + id
)

// runtime answers updates as a test wants.
type runtime struct {
	asked []*api.ContainerUpdate
	does  func(u *api.ContainerUpdate)
	fails error
}

func (r *runtime) UpdateContainers(updates []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
	r.asked = append(r.asked, updates...)
	if r.does != nil {
		r.does(updates[0])
	}
	return nil, r.fails
}

// live is a plugin with a session whose runtime knows the container.
func live(r updater) *Plugin {
	p := New(Options{})
	s := &session{updater: r, conn: io.NopCloser(nil), over: make(chan struct{})}
	h := handlers{p, s}
	_, _ = h.Synchronize(context.Background(), nil, []*api.Container{{Id: id, Name: "app"}})
	return p
}

func model(t *testing.T, v cgroup.Version) *cgroupmodel.Kernel {
	t.Helper()
	cpus, _ := topology.ParseList("0-3")
	mems, _ := topology.ParseList("0")
	k := cgroupmodel.New(cgroupmodel.Config{CPU: v, CPUSet: v, CPUAcct: v, CPUs: cpus, Mems: mems})
	for _, dir := range []string{"/kubepods", path} {
		for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
			if err := k.Make(c, dir); err != nil && v == cgroup.V1 {
				t.Fatal(err)
			}
		}
		if v == cgroup.V1 {
			_ = k.Write(cgroup.CPUSet, dir, cgroup.FileCPUs, "0-3")
			_ = k.Write(cgroup.CPUSet, dir, cgroup.FileMems, "0")
		}
		if v == cgroup.V2 && dir == path {
			break
		}
		if v == cgroup.V2 {
			for _, parent := range []string{"/", dir} {
				if err := k.Write(cgroup.CPU, parent, cgroup.FileSubtreeControl, "+cpu +cpuset"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return k
}

// TestWriteGoesThroughTheRuntime has one write and what comes of it.
func TestWriteGoesThroughTheRuntime(t *testing.T) {
	const quota, period = "cpu.cfs_quota_us", "cpu.cfs_period_us"
	for name, tc := range map[string]struct {
		file, value string
		does        func(k *cgroupmodel.Kernel, u *api.ContainerUpdate)
		fails       error
		unknown     bool // the runtime does not know the container
		asked       string
		counted     Outcome
	}{
		"the runtime does it": {file: quota, value: "20000", asked: "quota 20000 period 100000", counted: Applied,
			does: func(k *cgroupmodel.Kernel, u *api.ContainerUpdate) {
				_ = k.Write(cgroup.CPU, path, quota, fmt.Sprint(u.Linux.Resources.Cpu.Quota.Value))
			}},
		"it says yes and does nothing": {file: quota, value: "20000", asked: "quota 20000 period 100000", counted: Ignored},
		"it refuses": {file: quota, value: "20000", asked: "quota 20000 period 100000",
			counted: Refused, fails: errors.New("some failed")},
		"a period takes the quota along": {file: period, value: "50000", asked: "quota 10000 period 50000", counted: Ignored},
		"no burst in NRI on v1":          {file: "cpu.cfs_burst_us", value: "5000"},
		"a weight is direct":             {file: "cpu.shares", value: "512"},
		"a container that it has not":    {file: quota, value: "20000", unknown: true},
		"what else it writes is put back": {file: quota, value: "20000", asked: "quota 20000 period 100000", counted: Ignored,
			does: func(k *cgroupmodel.Kernel, _ *api.ContainerUpdate) {
				_ = k.Write(cgroup.CPUSet, path, cgroup.FileCPUs, "3")
				_ = k.Write(cgroup.CPU, path, "cpu.cfs_burst_us", "7000")
			}},
	} {
		t.Run(name, func(t *testing.T) {
			k := model(t, cgroup.V1)
			for file, value := range map[string]string{quota: "10000", cgroup.FileCPUs: "0-1"} {
				c := cgroup.CPU
				if file == cgroup.FileCPUs {
					c = cgroup.CPUSet
				}
				if err := k.Write(c, path, file, value); err != nil {
					t.Fatal(err)
				}
			}
			r := &runtime{fails: tc.fails}
			if tc.does != nil {
				r.does = func(u *api.ContainerUpdate) { tc.does(k, u) }
			}
			p := live(r)
			if tc.unknown {
				p.known = map[string]known{}
			}
			if err := p.Through(k).Write(cgroup.CPU, path, tc.file, tc.value); err != nil {
				t.Fatal(err)
			}
			if got := said(r.asked); got != tc.asked {
				t.Errorf("asked %q, want %q", got, tc.asked)
			}
			if got, _ := k.Read(cgroup.CPU, path, tc.file); got != tc.value {
				t.Errorf("the kernel has %q, want %q", got, tc.value)
			}
			if cpus, _ := k.Read(cgroup.CPUSet, path, cgroup.FileCPUs); cpus != "0-1" {
				t.Errorf("cpuset is %s, want 0-1", cpus)
			}
			if burst, _ := k.Read(cgroup.CPU, path, "cpu.cfs_burst_us"); burst == "7000" {
				t.Error("the runtime's burst stays")
			}
			for _, o := range Outcomes() {
				if n := p.Figures().Updates[o]; (n == 1) != (o == tc.counted) {
					t.Errorf("%s: %d", o, n)
				}
			}
		})
	}
}

// A resize by the kubelet while an update of ours is under way stays, whether the runtime has told of it yet or not. What
// our update made the runtime write is put back.
func TestAResizeDuringAnUpdateStays(t *testing.T) {
	const quota = "cpu.cfs_quota_us"
	container := func(quota int64, cpus string) *api.Container {
		return &api.Container{Id: id, Name: "app", Linux: &api.LinuxContainer{Resources: &api.LinuxResources{
			Cpu: &api.LinuxCPU{Quota: api.Int64(quota), Period: api.UInt64(100_000), Cpus: cpus}}}}
	}
	for name, tc := range map[string]struct {
		does        func(k *cgroupmodel.Kernel, h handlers)
		told        bool // at the beginning, what the runtime's copy is
		quota, cpus string
	}{
		"no resize: its copies are put back": {told: true, quota: "10000", cpus: "0-1", does: func(k *cgroupmodel.Kernel, _ handlers) {
			_ = k.Write(cgroup.CPU, path, quota, "40000")
		}},
		"a resize": {told: true, quota: "30000", cpus: "0-1", does: func(k *cgroupmodel.Kernel, _ handlers) {
			_ = k.Write(cgroup.CPU, path, quota, "30000")
		}},
		"a resize that was told": {told: true, quota: "30000", cpus: "0-1", does: func(k *cgroupmodel.Kernel, h handlers) {
			_ = k.Write(cgroup.CPU, path, quota, "30000")
			_ = h.PostUpdateContainer(t.Context(), nil, container(30000, "0-3"))
		}},
		"a resize that was told, of a copy that is not known": {quota: "30000", cpus: "0-1", does: func(k *cgroupmodel.Kernel, h handlers) {
			_ = k.Write(cgroup.CPU, path, quota, "30000")
			_ = h.PostUpdateContainer(t.Context(), nil, container(30000, ""))
		}},
		"no resize, a copy that is not known": {quota: "10000", cpus: "0-1", does: func(k *cgroupmodel.Kernel, _ handlers) {
			_ = k.Write(cgroup.CPU, path, quota, "40000")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k := model(t, cgroup.V1)
			for _, w := range []cgroup.Value{{Controller: cgroup.CPU, Path: path, File: quota, Value: "10000"},
				{Controller: cgroup.CPUSet, Path: path, File: cgroup.FileCPUs, Value: "0-3"}} {
				if err := k.Write(w.Controller, w.Path, w.File, w.Value); err != nil {
					t.Fatal(err)
				}
			}
			r := &runtime{}
			p := live(r)
			h := handlers{p, p.session}
			if tc.told {
				_, _ = h.Synchronize(t.Context(), nil, []*api.Container{container(40000, "0-3")})
			}
			r.does = func(u *api.ContainerUpdate) {
				_ = k.Write(cgroup.CPUSet, path, cgroup.FileCPUs, u.Linux.Resources.Cpu.Cpus)
				tc.does(k, h)
			}
			if err := p.Through(k).Write(cgroup.CPUSet, path, cgroup.FileCPUs, tc.cpus); err != nil {
				t.Fatal(err)
			}
			now, _ := k.Read(cgroup.CPU, path, quota)
			cpus, _ := k.Read(cgroup.CPUSet, path, cgroup.FileCPUs)
			if now != tc.quota || cpus != tc.cpus {
				t.Errorf("quota %s, CPUs %s", now, cpus)
			}
			if got := p.copyOf(id).cpus; got != tc.cpus {
				t.Errorf("the runtime's copy of the CPUs is %q", got)
			}
		})
	}
}

// What an update may change beside its setting is told with the runtime's copy, as far as that is known.
func TestBeside(t *testing.T) {
	const quota = "cpu.cfs_quota_us"
	k := model(t, cgroup.V1)
	if err := k.Write(cgroup.CPU, path, quota, "10000"); err != nil {
		t.Fatal(err)
	}
	p := live(&runtime{})
	fs := p.Through(k).(cgroup.Besides)
	becomes := func(on string) map[string]string {
		all := map[string]string{}
		for _, b := range fs.Beside(cgroup.CPUSet, on, cgroup.FileCPUs, "0-1") {
			all[b.File] = b.Value.Value + " becomes " + b.Becomes
		}
		return all
	}
	if got := becomes(path)[quota]; got != "10000 becomes " {
		t.Errorf("before the runtime told: %q", got)
	}
	h := handlers{p, p.session}
	_, _ = h.Synchronize(t.Context(), nil, []*api.Container{{Id: id, Linux: &api.LinuxContainer{CgroupsPath: path,
		Resources: &api.LinuxResources{Cpu: &api.LinuxCPU{Quota: api.Int64(40000), Cpus: "0-3"}}}}})
	if got := becomes(path); got[quota] != "10000 becomes 40000" || got[cgroup.FileCPUs] != "" {
		t.Errorf("once it told: %q", got)
	}
	if got := becomes("/system.slice"); len(got) > 0 {
		t.Errorf("of a cgroup that is no container's: %q", got)
	}
}

// said puts updates into words.
func said(updates []*api.ContainerUpdate) string {
	var parts []string
	for _, u := range updates {
		cpu := u.GetLinux().GetResources().GetCpu()
		if cpu.GetQuota() != nil {
			parts = append(parts, fmt.Sprintf("quota %d period %d", cpu.Quota.Value, cpu.Period.Value))
		}
		if cpu.GetCpus() != "" {
			parts = append(parts, "cpus "+cpu.Cpus)
		}
		for key, value := range u.GetLinux().GetResources().GetUnified() {
			parts = append(parts, key+" "+value)
		}
	}
	return strings.Join(parts, "; ")
}

// TestV2 has the files of cgroup v2, and cpusets, in NRI's words.
func TestV2(t *testing.T) {
	for _, tc := range []struct {
		controller         cgroup.Controller
		file, value, asked string
	}{
		{cgroup.CPU, "cpu.max", "50000 100000", "quota 50000 period 100000"},
		{cgroup.CPU, "cpu.max", "max 100000", "quota -1 period 100000"},
		{cgroup.CPU, "cpu.max.burst", "20000", "cpu.max.burst 20000"},
		{cgroup.CPUSet, cgroup.FileCPUs, "0-1", "cpus 0-1"},
		{cgroup.CPUSet, cgroup.FileCPUs, "", ""},
		{cgroup.CPU, "cpu.weight", "50", ""},
	} {
		k := model(t, cgroup.V2)
		_ = k.Write(cgroup.CPU, path, "cpu.max", "40000 100000")
		r := &runtime{}
		if err := live(r).Through(k).Write(tc.controller, path, tc.file, tc.value); err != nil {
			t.Errorf("%s %q: %v", tc.file, tc.value, err)
		}
		if got := said(r.asked); got != tc.asked {
			t.Errorf("%s %q: asked %q, want %q", tc.file, tc.value, got, tc.asked)
		}
	}
}

// TestHandlersDoNotWait calls every handler while an update hangs and nothing takes what changed.
func TestHandlersDoNotWait(t *testing.T) {
	hangs, release := make(chan struct{}), make(chan struct{})
	p := live(&runtime{does: func(*api.ContainerUpdate) { close(hangs); <-release }})
	k := model(t, cgroup.V1)
	written := make(chan error, 1)
	go func() { written <- p.Through(k).Write(cgroup.CPU, path, "cpu.cfs_quota_us", "20000") }()
	<-hangs
	h := handlers{p, p.session}
	_ = h.StartContainer(t.Context(), nil, &api.Container{Id: strings.Repeat("ab", 32)})
	_ = h.PostUpdateContainer(t.Context(), nil, &api.Container{Id: id})
	_ = h.RemoveContainer(t.Context(), nil, &api.Container{Id: id})
	if f := p.Figures(); f.Containers != 1 || f.Resizes != 1 {
		t.Errorf("%+v", f)
	}
	close(release)
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// TestIDIn has the paths of both drivers.
func TestIDIn(t *testing.T) {
	for base, want := range map[string]string{id: id, "cri-containerd-" + id + ".scope": id, "crio-" + id + ".scope": id,
		"kubepods.slice:cri-containerd:" + id: id, id[1:]: "", "app": "", "x" + id: ""} {
		if got := idIn(base); got != want {
			t.Errorf("%s: %q, want %q", base, got, want)
		}
	}
}

// silentLog is no log.
var silentLog = slog.New(slog.DiscardHandler)

// patience bounds waits in tests; only a failure takes that long.
const patience = time.Minute
