package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
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
const piecesPath = "/lab/wide/pieces.json"

// message is what the guest says, a line each: first its speed and its kernel, then the beginning and the end of each piece.
type message struct {
	Speed   *wire.Speed `json:"speed,omitempty"`
	Release string      `json:"release,omitempty"`
	Began   *int        `json:"began,omitempty"`
	Ended   *int        `json:"ended,omitempty"`
	// Of a piece that has ended: how long it took by the guest's clock, and one of the others.
	Took   time.Duration  `json:"took_ns,omitempty"`
	Failed string         `json:"failed,omitempty"`
	Point  *figures       `json:"point,omitempty"`
	Fix    *fixFigures    `json:"fix,omitempty"`
	Served *servedFigures `json:"served,omitempty"`
}

// inside measures pieces in the guest. A piece that fails says so, and the next one begins.
func inside(ctx context.Context) (err error) {
	runtime.LockOSThread() // real services end with the thread that started them
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
	running := &sessions{host: host}
	defer func() { err = errors.Join(err, running.close()) }()
	for i, p := range pieces {
		if err := out.Encode(message{Began: &i}); err != nil {
			return err
		}
		start := time.Now()
		m, err := measure(ctx, running, p)
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

func measure(ctx context.Context, running *sessions, p piece) (m message, err error) {
	switch p.Kind {
	case point:
		m.Point, err = measurePoint(ctx, running.host, p)
	case fixed:
		m.Fix, err = measureFix(ctx, running.host, p)
	case sized, served:
		m.Served, err = measureServed(ctx, running, p)
	default:
		err = fmt.Errorf("a piece of kind %q", p.Kind)
	}
	return m, err
}

func measurePoint(ctx context.Context, host *cgroup.Host, p piece) (f *figures, err error) {
	bed, err := capacity.OpenPoints(capacity.Options{Host: host}, p.Limit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	remedy := p.Remedy
	if remedy == longCredit || remedy == noCredit {
		remedy = capacity.NarrowSchedExt
	}
	at := capacity.At{Shape: p.Shape, Remedy: remedy, Share: p.Share,
		For: time.Duration(p.Seconds * float64(time.Second)), Seed: uint64(p.Repeat)}
	var beside func(context.Context, cgroup.Group) error
	if p.Setting == fullHost {
		beside = func(ctx context.Context, _ cgroup.Group) error {
			others, err := neighbours(p, bed.CPUs())
			if err == nil {
				_, err = realrun.Run(ctx, others, realrun.Options{Host: host, Seed: uint64(p.Repeat)})
			}
			return err
		}
	}
	var capped *scheduler
	var around func(cgroup.Group) (func() error, error)
	if remedy == capacity.NarrowSchedExt {
		around = func(group cgroup.Group) (func() error, error) {
			capped, err = narrow(host, group, p.Limit, creditOf(p.Remedy, p.Limit))
			return capped.end, err
		}
	}
	measured, err := bed.Measure(ctx, at, around, beside)
	if err != nil {
		return nil, err
	}
	f = figuresOf(measured)
	if capped != nil {
		f.Widest, f.AtCap = &capped.stats.Widest, new(capped.stats.AtCap.Seconds())
	}
	return f, nil
}

// fullHost is the setting that predictability is told by: the p99 beside others that use most of the host, over that on an empty one.
const fullHost = "host-90"

// besideOthers is a point on a full host.
func besideOthers(h host, shape, remedy string, level, repeat int) piece {
	p := pointOf(h, shape, remedy, level, repeat)
	p.Setting = fullHost
	return p
}

// neighbours want nine tenths of the CPUs that the service may use: a thread for each works 9 of each 10 ms by the
// clock, all at the same time. A CPU
// that another container takes meanwhile is lost to them. The generator stands for clients elsewhere, whose CPUs no neighbour has.
func neighbours(p piece, cpus cpuset.CPUSet) (scenario.Scenario, error) {
	return scenario.Parse("neighbours", fmt.Appendf(nil, `version: 1
duration: %v
host: {cpus: %d, hz: %d, kernel: %q, cgroup_version: 2}
cgroups: {others: {cpus: %q}}
workloads: {others: {kind: neighbour, cgroup: others, threads: %d, on: 9ms, off: 1ms}}
`, time.Duration(p.Seconds*float64(time.Second)), p.Machine.CPUs, guestHZ, p.Machine.Kernel, cpus, cpus.Size()))
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
func narrow(host *cgroup.Host, group cgroup.Group, limit int, credit time.Duration) (*scheduler, error) {
	id, err := host.ID(cgroup.CPU, group.Path)
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
