package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/test/lab/boot"
	"github.com/unthrottle/unthrottle/test/lab/slow"
)

// slowed is a guest whose time runs slower than the host's.
type slowed struct {
	said, jsonFile string
	steady         bool
	factor         slow.Factor
}

func (s *slowed) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.said, "slow", "", "K: the guest's time runs K times slower than the host's; auto: "+
		"chosen from the CPUs and the host's load")
	cmd.Flags().BoolVar(&s.steady, "steady", false, "with --slow: a CPU of the guest is as fast while others are idle "+
		"as while all are busy")
	cmd.Flags().StringVar(&s.jsonFile, "slow-json", "", "write what --slow measured to this file")
}

// check finds a wrong flag before anything is fetched.
func (s *slowed) check() error {
	if s.said == "" {
		if s.jsonFile != "" {
			return fmt.Errorf("--slow-json %s: give --slow too", s.jsonFile)
		}
		if s.steady {
			return errors.New("--steady: give --slow too")
		}
		return nil
	}
	_, err := slow.Parse(s.said, 1, 1)
	return err
}

// prepare makes g run in slow time. Its limits count guest time, and are stretched.
func (s *slowed) prepare(ctx context.Context, g *boot.Guest, cacheDir string) error {
	if s.said == "" {
		return nil
	}
	idle := float64(runtime.NumCPU())
	if s.said == slow.Auto {
		var err error
		if idle, err = idleCPUs(ctx); err != nil {
			return err
		}
	}
	var err error
	if s.factor, err = slow.Parse(s.said, g.Machine.CPUs(), idle); err != nil {
		return err
	}
	library, err := slow.Library(ctx, filepath.Join(cacheDir, "slow"))
	if err != nil {
		return err
	}
	fast := g.QEMU
	g.QEMU = func(ctx context.Context, args ...string) *exec.Cmd {
		if s.steady {
			args = append(args, slow.SteadyArguments()...)
		}
		cmd := fast(ctx, args...)
		s.factor.Apply(cmd, library, s.steady)
		return cmd
	}
	g.Limit *= time.Duration(s.factor)
	g.BootLimit = boot.DefaultBootLimit * time.Duration(max(1, s.factor/4)) // most of a boot is work, which slowing does not lengthen
	g.Plan.Calibrate = true
	if s.steady {
		g.BootLimit *= steadyBoot
	}
	return nil
}

// steadyBoot is how much longer a boot, which one CPU does, may take where that has no more of the host than each of the others.
const steadyBoot = 4

// idleCPUs is how many CPUs of the host are idle now.
func idleCPUs(ctx context.Context) (float64, error) {
	const look = time.Second
	before, err := procfs.ReadStat(os.DirFS("/proc"))
	if err != nil {
		return 0, err
	}
	if err := clock.Sleep(ctx, look); err != nil {
		return 0, err
	}
	after, err := procfs.ReadStat(os.DirFS("/proc"))
	if err != nil {
		return 0, err
	}
	passed := after.Total.Since(before.Total)
	if passed.All <= 0 {
		return float64(runtime.NumCPU()), nil
	}
	return float64(runtime.NumCPU()) * float64(passed.Idle) / float64(passed.All), nil
}

// run boots the guest, says a line a minute, and ends with what the slowing was worth.
func (s *slowed) run(ctx context.Context, g boot.Guest, stderr io.Writer) (boot.Result, error) {
	if s.factor == 0 {
		return boot.Run(ctx, g)
	}
	before, statErr := procfs.ReadStat(os.DirFS("/proc"))
	stop := s.progress(g.Limit, stderr)
	result, err := boot.Run(ctx, g)
	stop()
	if err != nil {
		return result, err
	}
	ran := slow.Ran{Factor: s.factor, Steady: s.steady, Host: result.Total, Speed: result.Speed}
	for _, e := range result.Exits {
		ran.Guest += time.Duration(e.WallUsec) * time.Microsecond
	}
	if ran.Guest > 0 {
		ran.Pace = (result.StepsEnded - result.StepsBegan).Seconds() / ran.Guest.Seconds()
	}
	if after, err := procfs.ReadStat(os.DirFS("/proc")); err == nil && statErr == nil {
		ran.Others = othersShare(after.Total.Since(before.Total), result.CPU)
	}
	judged := slow.Judge(ran)
	fmt.Fprintln(stderr, judged)
	return result, s.write(judged)
}

// othersShare is the share of the host's CPU time that neither QEMU used nor was idle; nil: the counters do not tell.
func othersShare(passed procfs.Times, own time.Duration) *float64 {
	if passed.All <= 0 {
		return nil
	}
	return new(max(0, (passed.Busy()-own).Seconds()/passed.All.Seconds()))
}

// write writes --slow-json.
func (s *slowed) write(r slow.Result) error {
	if s.jsonFile == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(s.jsonFile, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("--slow-json: %w", err)
	}
	return nil
}

// progress says how far a run is, a line a minute, until stop is called.
func (s *slowed) progress(limit time.Duration, stderr io.Writer) (stop func()) {
	fmt.Fprintf(stderr, "slow: K=%d: the guest's time runs %d times slower; at most %v of the host's\n", s.factor,
		s.factor, limit.Round(time.Second))
	start, done := time.Now(), make(chan struct{})
	tick := time.NewTicker(time.Minute)
	go func() {
		for {
			select {
			case <-tick.C:
				passed := time.Since(start)
				fmt.Fprintf(stderr, "slow: K=%d host %.0f s, guest at most %.1f s; at most %v left\n", s.factor, passed.Seconds(),
					passed.Seconds()/float64(s.factor), (limit - passed).Round(time.Second))
			case <-done:
				return
			}
		}
	}()
	return func() { tick.Stop(); close(done) }
}
