package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bench/inguest"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/test/study"
)

// Where the programs are in the guest, and this program's argument there.
const (
	insideCommand = "inside"
	insideProgram = "/many/many"
	insideExe     = "/many/unthrottle"
)

// guest measures in the lab: a guest of 16 CPUs whose clock runs slower than the host's.
type guest struct {
	lab, exe string // programs
	k        int    // how many times slower

}

// missing are the guest's runs that no record has: every setting by chance and together, a round after the other.
func missing(have []piece, rounds int, seconds float64, k int) (wanted []piece) {
	for round := 1; round <= rounds; round++ {
		for _, together := range []bool{false, true} {
			for _, set := range settings {
				p := piece{Setting: set.name, Together: together, Real: true, Round: round, Seconds: seconds, HostCPUs: wide.cpus, K: k}
				if !set.inGuest || slices.ContainsFunc(have, p.same) {
					continue
				}
				wanted = append(wanted, p)
			}
		}
	}
	return wanted
}

// same tells whether a record is of the same run.
func (p piece) same(q piece) bool {
	return p.Setting == q.Setting && p.Together == q.Together && p.Real == q.Real && p.Round == q.Round &&
		p.HostCPUs == q.HostCPUs && p.K == q.K
}

// measure runs the pieces, each in a guest of its own, and keeps each as it ends. A guest whose calibration is off is told, and nothing of
// it is kept.
func (g guest) measure(ctx context.Context, pieces []piece, keep func(piece) error) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	in := inguest.Guest{Lab: g.lab, CPUs: wide.cpus, Kernel: wide.kernel, K: g.k,
		Files: map[string]string{insideProgram: program, insideExe: g.exe}}
	for _, p := range pieces {
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s  many: %d CPUs at K = %d, round %d, %s, together %v\n", time.Now().Format(time.TimeOnly), wide.cpus, g.k,
			p.Round, p.Setting, p.Together)
		last, err := in.Run(ctx, time.Minute+time.Duration(3*p.Seconds)*time.Second, insideProgram, insideCommand, string(text))
		if err != nil {
			return err
		}
		if p, err = parseRun(last); err != nil {
			return err
		}
		if err := keep(p); err != nil {
			return err
		}
	}
	return nil
}

// parseRun reads the run that the guest printed last.
func parseRun(last []byte) (p piece, err error) {
	if err := json.Unmarshal(last, &p); err != nil {
		return p, fmt.Errorf("the guest ended with %.200q: %w", last, err)
	}
	if len(p.P99) != services {
		return p, fmt.Errorf("the guest measured %d of %d services", len(p.P99), services)
	}
	return p, nil
}

// inside runs one piece in the guest and prints it.
func inside(ctx context.Context, text string) error {
	var p piece
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("the piece %.200q: %w", text, err)
	}
	i := slices.IndexFunc(settings, func(s setting) bool { return s.name == p.Setting })
	if i < 0 {
		return fmt.Errorf("setting %.60q: there is none of that name", p.Setting)
	}
	s, err := settings[i].scenario(wide, p.Together, time.Duration(p.Seconds*float64(time.Second)))
	if err != nil {
		return err
	}
	host, err := cgroup.Open("/proc")
	if err != nil {
		return err
	}
	real, err := realrun.Run(ctx, s, realrun.Options{Host: host, Seed: uint64(p.Round), LateAfter: lateAfter, Exe: insideExe})
	if err != nil {
		return err
	}
	if p = pieceOf(real.Outcome, p); len(p.P99) == 0 {
		return errors.New("no service answered anything")
	}
	p.Made = study.Now(time.Now())
	return json.NewEncoder(os.Stdout).Encode(p)
}
