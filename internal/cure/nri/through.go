package nri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/unthrottle/unthrottle/internal/container/names"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// Through returns fs with the writes that the runtime can make going through it.
func (p *Plugin) Through(fs cgroup.FS) cgroup.FS { return through{fs, p} }

type through struct {
	cgroup.FS
	plugin *Plugin
}

// Write writes one setting: through the runtime where it has it and answers, else directly.
func (t through) Write(c cgroup.Controller, path, file, value string) error {
	s, id := t.plugin.managed(path)
	if s == nil {
		return t.FS.Write(c, path, file, value)
	}
	update, ok := t.update(c, path, file, value)
	if !ok {
		return t.FS.Write(c, path, file, value)
	}
	update.SetContainerId(id)
	before := t.plugin.copyOf(id)
	others := t.others(path, file)
	err := s.update(update)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("cgroup %q: %s: the runtime did not answer an NRI update within %v: it may still make it; "+
			"see its log", path, file, answerTime)
	}
	t.writeBack(others, before, t.plugin.copyOf(id).resizes != before.resizes)
	now, readErr := t.FS.Read(c, path, file)
	switch {
	case readErr != nil:
		return readErr
	case change.Same(file, now, value):
		t.plugin.took(id, update)
		t.plugin.count(Applied)
		return nil
	case err != nil:
		t.plugin.count(Refused)
		t.plugin.o.Log.Debug("the runtime refused an NRI update: written directly", "cgroup", text.EscapePath(path),
			"file", file, "error", err)
	default:
		t.plugin.count(Ignored)
		t.plugin.o.Log.Warn("the runtime said yes to an NRI update that it did not make: written directly", "cgroup",
			text.EscapePath(path), "file", file)
	}
	// The kernel's own refusal says why, which the runtime's answer does not.
	return t.FS.Write(c, path, file, value)
}

// managed returns the session that updates the container of a cgroup, and its id; nil: none does.
func (p *Plugin) managed(path string) (*session, string) {
	id := idIn(cgroup.Base(path))
	if id == "" {
		return nil, ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.known[id]; !ok {
		return nil, ""
	}
	return p.session, id
}

// idIn finds a container's id in the last part of its cgroup's path: "ID", "cri-containerd-ID.scope", "crio-ID.scope".
func idIn(base string) string {
	for part := range strings.FieldsFuncSeq(base, func(r rune) bool { return r == '-' || r == '.' || r == ':' }) {
		if names.IsID(part) {
			return part
		}
	}
	return ""
}

// update is the write of a file in NRI's words; false: NRI has none for it. Quota and period always go together, since
// the runtime fills in its own copy of what is missing.
func (t through) update(c cgroup.Controller, path, file, value string) (*api.ContainerUpdate, bool) {
	v, _ := t.Version(c)
	limit := cgroup.LimitFiles(v)
	u := &api.ContainerUpdate{}
	switch {
	case value == "":
		return nil, false
	case file == cgroup.FileCPUs:
		u.SetLinuxCPUSetCPUs(value)
	case file == cgroup.FileMems:
		u.SetLinuxCPUSetMems(value)
	case v == cgroup.V2 && file == limit[0]:
		quota, period, _ := strings.Cut(value, " ")
		return u, setLimit(u, quota, period)
	case v == cgroup.V2 && slices.Contains(limit, file):
		u.AddLinuxUnified(file, value)
	case v == cgroup.V1 && file == limit[0]:
		period, err := t.Read(c, path, limit[1])
		return u, err == nil && setLimit(u, value, period)
	case v == cgroup.V1 && file == limit[1]:
		quota, err := t.Read(c, path, limit[0])
		return u, err == nil && setLimit(u, quota, value)
	default:
		return nil, false
	}
	return u, true
}

func setLimit(u *api.ContainerUpdate, quota, period string) bool {
	q, p := int64(-1), uint64(0)
	var err error
	if quota != "max" {
		if q, err = strconv.ParseInt(quota, 10, 64); err != nil {
			return false
		}
	}
	if p, err = strconv.ParseUint(period, 10, 64); err != nil {
		return false
	}
	u.SetLinuxCPUQuota(q)
	u.SetLinuxCPUPeriod(int64(p))
	return true
}

// others are the settings of a container that an update of one file must leave as they are. A container has the same path
// in all hierarchies.
func (t through) others(path, changing string) []cgroup.Value {
	v, _ := t.Version(cgroup.CPU)
	var all []cgroup.Value
	add := func(c cgroup.Controller, file string) {
		if value, err := t.Read(c, path, file); err == nil && file != changing {
			all = append(all, cgroup.Value{Controller: c, Path: path, File: file, Value: value})
		}
	}
	for _, file := range cgroup.LimitFiles(v) {
		add(cgroup.CPU, file)
	}
	add(cgroup.CPUSet, cgroup.FileCPUs)
	add(cgroup.CPUSet, cgroup.FileMems)
	return all
}

// Beside are the settings that an update of one file may change too: see cgroup.Besides.
func (t through) Beside(c cgroup.Controller, path, file, value string) (neighbours []cgroup.Beside) {
	s, id := t.plugin.managed(path)
	if s == nil {
		return nil
	}
	if _, ok := t.update(c, path, file, value); !ok {
		return nil
	}
	copied := t.plugin.copyOf(id)
	for _, v := range t.others(path, file) {
		becomes, known := copied.value(v.File)
		if !known {
			becomes = ""
		}
		neighbours = append(neighbours, cgroup.Beside{Value: v, Becomes: becomes})
	}
	return neighbours
}

// writeBack undoes what an update changed beside the setting that was meant: what now has the runtime's copy of it. Another
// value is another program's, such as the kubelet's resize meanwhile, and stays. Of a setting whose copy is not known that
// holds if the runtime told of a resize meanwhile.
func (t through) writeBack(others []cgroup.Value, copied copied, resized bool) {
	for _, s := range others {
		now, err := t.Read(s.Controller, s.Path, s.File)
		if err != nil || change.Same(s.File, now, s.Value) {
			continue
		}
		log := t.plugin.o.Log.With("cgroup", text.EscapePath(s.Path), "file", s.File, "was", s.Value, "became", now)
		if value, ok := copied.value(s.File); ok && !change.Same(s.File, now, value) || !ok && resized {
			log.Info("another program changed a setting during an NRI update: it stays")
			continue
		}
		err = t.FS.Write(s.Controller, s.Path, s.File, s.Value)
		log.Warn("an NRI update changed another setting too: written back", "error", err)
	}
}

// update asks the runtime for one update. context.DeadlineExceeded: it did not answer.
func (s *session) update(u *api.ContainerUpdate) error {
	type answer struct {
		failed []*api.ContainerUpdate
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		failed, err := s.UpdateContainers([]*api.ContainerUpdate{u})
		answers <- answer{failed, err}
	}()
	timer := time.NewTimer(answerTime)
	defer timer.Stop()
	select {
	case a := <-answers:
		if a.err == nil && len(a.failed) > 0 {
			return errors.New("the runtime lists it as failed")
		}
		return a.err
	case <-timer.C:
		s.end()
		return context.DeadlineExceeded
	}
}

func (p *Plugin) count(o Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.figures.Updates[o]++
}
