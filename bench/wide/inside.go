package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/bench/accuracy"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/internal/widthcap"
	"github.com/unthrottle/unthrottle/internal/widthcap/scx"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// insideCommand is this program's argument in the guest.
const insideCommand = "inside"

// piecesPath has the pieces in the guest.
const piecesPath = "/wide/pieces.json"

// message is what the guest says, a line each: first its speed and its kernel, then the beginning and the end of each piece.
type message struct {
	Speed   *wire.Speed `json:"speed,omitempty"`
	Release string      `json:"release,omitempty"`
	Began   *int        `json:"began,omitempty"`
	Ended   *int        `json:"ended,omitempty"`
	// Of a piece that has ended: how long it took by the guest's clock, and one of the others.
	Took      time.Duration       `json:"took_ns,omitempty"`
	Failed    string              `json:"failed,omitempty"`
	Point     *figures            `json:"point,omitempty"`
	Recording []byte              `json:"recording,omitempty"`
	Load      float64             `json:"load_rps,omitempty"` // of a recording
	Outcome   *scenario.Outcome   `json:"outcome,omitempty"`
	Costs     *scenario.WakeCosts `json:"wake_costs,omitempty"`
	Narrow    *narrowFigure       `json:"narrow,omitempty"`
	Fix       *fixFigures         `json:"fix,omitempty"`
}

// inside measures pieces in the guest. A piece that fails says so, and the next one begins.
func inside(ctx context.Context) error {
	text, err := os.ReadFile(piecesPath)
	if err != nil {
		return err
	}
	var pieces []piece
	if err := json.Unmarshal(text, &pieces); err != nil {
		return fmt.Errorf("%s: %w", piecesPath, err)
	}
	out := json.NewEncoder(os.Stdout)
	var speed wire.Speed
	if text, err = os.ReadFile(wire.SpeedPath); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &speed); err != nil {
		return fmt.Errorf("%s: %w", wire.SpeedPath, err)
	}
	var u unix.Utsname
	_ = unix.Uname(&u) // fails for a bad pointer only
	if err := out.Encode(message{Speed: &speed, Release: unix.ByteSliceToString(u.Release[:])}); err != nil {
		return err
	}
	host, err := cgroup.Open("/proc")
	if err != nil {
		return err
	}
	for i, p := range pieces {
		if err := out.Encode(message{Began: &i}); err != nil {
			return err
		}
		start := time.Now()
		m, err := measure(ctx, host, p)
		m.Ended, m.Took = &i, time.Since(start)
		if err != nil {
			m.Failed = err.Error()
		}
		if err := out.Encode(m); err != nil {
			return err
		}
	}
	return nil
}

func measure(ctx context.Context, host *cgroup.Host, p piece) (m message, err error) {
	switch p.Kind {
	case point, recording:
		return measurePoint(ctx, host, p)
	case real:
		s, err := scenarioOf(p)
		if err != nil {
			return m, err
		}
		r, err := realrun.Run(ctx, s, realrun.Options{Host: host, Seed: uint64(p.Repeat)})
		if err != nil {
			return m, err
		}
		m.Outcome = &r.Outcome
		return m, nil
	case fixed:
		m.Fix, err = measureFix(ctx, host, p)
		return m, err
	case narrowed:
		m.Narrow, err = measureNarrow(ctx, host, p)
		return m, err
	case costs:
		var outcomes []scenario.Outcome
		for _, s := range accuracy.Calibrations(time.Duration(p.Seconds * float64(time.Second))) {
			r, err := realrun.Run(ctx, s, realrun.Options{Host: host})
			if err != nil {
				return m, err
			}
			outcomes = append(outcomes, r.Outcome)
		}
		cost, ok := accuracy.WakeCosts(outcomes)
		if !ok {
			return m, errors.New("no thread woke up")
		}
		m.Costs = &cost
		return m, nil
	}
	return m, fmt.Errorf("a piece of kind %q", p.Kind)
}

func measurePoint(ctx context.Context, host *cgroup.Host, p piece) (m message, err error) {
	bed, err := capacity.OpenPoints(capacity.Options{Host: host}, p.Limit)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	remedy := p.Remedy
	if remedy == longCredit || remedy == noCredit {
		remedy = capacity.NarrowSchedExt
	}
	at := capacity.At{Shape: p.Shape, Remedy: remedy, Share: p.Share, For: time.Duration(p.Seconds * float64(time.Second)), Seed: uint64(p.Repeat)}
	if m.Load, err = bed.Load(at); err != nil {
		return m, err
	}
	changed, err := settingOf(p.Setting)
	if err != nil {
		return m, err
	}
	back, err := changed.apply()
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, back()) }()
	var file bytes.Buffer
	beside := changed.load(host, p, bed.CPUs())
	if p.Kind == recording {
		const more = time.Second // the load lasts a little longer than the recording, which takes a moment to begin
		d := at.For
		at.For += more
		beside = func(ctx context.Context, of cgroup.Group) error {
			_, err := live.Live(ctx, live.Options{Host: host, Root: os.DirFS("/"), Target: container.Container{Group: of, Name: "service"}, For: d, Keep: &file})
			return err
		}
	}
	var capped *scheduler
	var around func(cgroup.Group) (func() error, error)
	if remedy == capacity.NarrowSchedExt {
		around = func(of cgroup.Group) (func() error, error) {
			capped, err = narrow(host, of, p.Limit, creditOf(p.Remedy, p.Limit))
			return capped.end, err
		}
	}
	measured, err := bed.Measure(ctx, at, around, beside)
	if err != nil {
		return m, err
	}
	if p.Kind == recording {
		m.Recording = file.Bytes()
		return m, nil
	}
	m.Point = figuresOf(measured)
	if capped != nil {
		m.Point.Widest, m.Point.AtCap = &capped.stats.Widest, new(capped.stats.AtCap.Seconds())
	}
	return m, nil
}

// scheduler holds a cap of narrow, and what it counted when it has ended.
type scheduler struct {
	held  *scx.Scheduler
	id    uint64
	stats scx.Stats
}

// creditOf is the CPU time that a container with a limit can save below it.
func creditOf(remedy string, limit int) time.Duration {
	switch remedy {
	case longCredit:
		return time.Duration(limit) * time.Second
	case noCredit:
		return 0
	}
	return widthcap.Of(float64(limit)).Credit
}

// narrow caps a cgroup as `unthrottle apply --remedy narrow --via sched_ext` does.
func narrow(host *cgroup.Host, of cgroup.Group, limit int, credit time.Duration) (*scheduler, error) {
	id, err := host.ID(cgroup.CPU, of.Path)
	if err != nil {
		return nil, err
	}
	held, err := scx.Load(scx.Options{})
	if err != nil {
		return nil, err
	}
	c := widthcap.Of(float64(limit))
	if err := held.Set(id, scx.Cap{CPUs: c.CPUs, Credit: credit, Widest: c.Widest}); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return &scheduler{held: held, id: id}, nil
}

// end gives every thread back to the kernel's own scheduler. A scheduler that the kernel threw out meanwhile makes the point void.
func (s *scheduler) end() (err error) {
	if err := s.held.Err(); err != nil {
		return errors.Join(err, s.held.Close())
	}
	s.stats, err = s.held.Stats(s.id)
	return errors.Join(err, s.held.Close())
}
