package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

const (
	// freshFor is how long after its end a fix may choose from a recording that the flight recorder made by itself.
	freshFor = time.Minute
	// mostPast bounds the past changes among which one of the same container is looked for.
	mostPast = 100
)

// ownRecording is a recording that the flight recorder made by itself, in the life of this process.
type ownRecording struct {
	file         string // "": it failed
	began, ended time.Time
	// settings are the container's as it began.
	settings string
}

// begin notes that a recording begins. The function that it returns notes the end.
func (r *recorder) begin(d dueRecording) (end func(file string, err error)) {
	made := &ownRecording{began: time.Now(), settings: r.settings(d.container)}
	done := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.underWay = done
	for id, old := range r.own {
		if made.began.Sub(old.ended) > freshFor {
			delete(r.own, id)
		}
	}
	return func(file string, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if made.ended = time.Now(); err == nil {
			made.file = file
		}
		if r.underWay = nil; !errors.Is(err, errForSize) {
			r.own[d.id] = made
		}
		close(done)
	}
}

// settings are what decides on how a container runs: limits and weights of it and its ancestors, and its CPUs. "": they
// cannot be read.
func (r *recorder) settings(c container.Container) string {
	levels, err := cgroup.Levels(r.Env.FS, c.Group.Path)
	if err != nil {
		return ""
	}
	all := ""
	for _, l := range levels {
		shares, _ := cgroup.ReadShares(r.Env.FS, l.Path) // the root has none
		all += fmt.Sprintf("%s %v %d; ", l.Path, l.Limit, shares)
	}
	if set, err := cgroup.ReadCPUSet(r.Env.FS, c.Group.CPUSetPath); err == nil {
		all += set.Effective.String()
	}
	return all
}

// recordedOf returns what the flight recorder recorded of a container by itself, after waiting for the recording that is under
// way: two at once would lengthen what they measure. The text says why a fix must not choose from it.
func (r *recorder) recordedOf(ctx context.Context, id uint64, c container.Container) (fix.Learned, string) {
	r.mu.Lock()
	wait := r.underWay
	r.mu.Unlock()
	if wait != nil {
		select {
		case <-ctx.Done():
			return fix.Learned{}, "interrupted"
		case <-wait:
		}
	}
	r.mu.Lock()
	made := r.own[id]
	r.mu.Unlock()
	if why := r.unfit(made, c); why != "" {
		return fix.Learned{}, why
	}
	learned, err := r.Flight.Read(ctx, made.file)
	switch e := learned.Explanation; {
	case err != nil:
		return fix.Learned{}, err.Error()
	case learned.Load == nil || e == nil:
		return fix.Learned{}, "it cannot be replayed: " + learned.Missing
	case e.EndedEarly != "":
		return fix.Learned{}, "it was cut off: " + e.EndedEarly
	}
	learned.From = "the flight recorder's " + filepath.Base(made.file)
	return learned, ""
}

// unfit says why a fix must not choose from a recording; "": it may. It must be made after the last change of the container's
// settings, and not have ended more than freshFor ago.
func (r *recorder) unfit(made *ownRecording, c container.Container) string {
	switch {
	case r.Flight.Read == nil || made == nil:
		return "the flight recorder has none of it"
	case made.file == "":
		return "the flight recorder's recording of it failed"
	case time.Since(made.ended) > freshFor:
		return fmt.Sprintf("the flight recorder's is older than %v", freshFor)
	case made.settings == "" || made.settings != r.settings(c):
		return "its settings have changed since the flight recorder's began"
	}
	past, err := apply.History(r.Env, mostPast)
	if err != nil {
		return "the journal cannot be read: " + err.Error()
	}
	if changedSince(past, c.Group.Path, made.began) {
		return "a remedy was tried on it since the flight recorder's began"
	}
	return ""
}

// changedSince reports whether a change of a container ended after a moment.
func changedSince(past []txn.Past, path string, since time.Time) bool {
	for _, p := range past {
		if p.Target == path && p.Until.After(since) {
			return true
		}
	}
	return false
}
