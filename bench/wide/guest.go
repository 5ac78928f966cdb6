package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/test/lab/slow"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// programPath is this program in the guest. In one with packages all files are below /lab.
const programPath = "/lab/wide/wide"

// guest runs pieces in one slowed guest. Each piece is judged by itself: what others had of the host, and how fast the guest's
// clock ran, while it was measured.
type guest struct {
	lab     string    // the program
	program string    // this one, statically linked
	tool    string    // unthrottle, statically linked
	say     io.Writer // what goes on
	// done gets each piece as it ends. failed is why there is none.
	done func(p piece, m message, release string, calibration slow.Result, failed string) error
}

// look is what the host has counted at a moment.
type look struct {
	at    time.Time
	total procfs.Times
	own   time.Duration // of the guest
}

func lookNow(pid int) (look, error) {
	stat, err := procfs.ReadStat(os.DirFS("/proc"))
	return look{time.Now(), stat.Total, treeCPU("/proc", pid)}, err
}

// ticks of /proc/PID/stat in a second.
const ticks = 100

// treeCPU is the CPU time of a process and of all that it started and that still run.
func treeCPU(proc string, pid int) (sum time.Duration) {
	entries, _ := os.ReadDir(proc) // without it nothing is ours, and the piece is too noisy
	used, parent := map[int]time.Duration{}, map[int]int{}
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(proc, e.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
		f := strings.Fields(rest) // from the third field of proc(5) on
		if len(f) < 15 {
			continue
		}
		parent[id], _ = strconv.Atoi(f[1])
		for _, field := range f[11:15] { // utime, stime, and those of children that have ended
			n, _ := strconv.ParseInt(field, 10, 64)
			used[id] += time.Duration(n) * time.Second / ticks
		}
	}
	for id := range used {
		for at := id; at > 1; at = parent[at] {
			if at == pid {
				sum += used[id]
				break
			}
		}
	}
	return sum
}

// worth judges a piece that ran between two looks for so long by the guest's clock.
func worth(m machine, speed wire.Speed, before, after look, took time.Duration) slow.Result {
	ran := slow.Ran{Factor: slow.Factor(m.K), Steady: m.Steady, Guest: took, Host: after.at.Sub(before.at), Speed: speed}
	if took > 0 {
		ran.Pace = ran.Host.Seconds() / took.Seconds()
	}
	if passed := after.total.Since(before.total); passed.All > 0 {
		ran.Others = new(max(0, (passed.Busy()-(after.own-before.own)).Seconds()/passed.All.Seconds()))
	}
	return slow.Judge(ran)
}

// run measures the pieces, which are all of one machine.
func (g *guest) run(ctx context.Context, pieces []piece) error {
	dir, err := os.MkdirTemp("", "unthrottle-wide-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text, err := json.Marshal(pieces)
	if err != nil {
		return err
	}
	list := filepath.Join(dir, "pieces.json")
	if err := os.WriteFile(list, text, 0o644); err != nil {
		return err
	}
	m := pieces[0].Machine
	limit := time.Minute // of guest time
	for _, p := range pieces {
		limit += 3 * p.takes() / time.Duration(p.Machine.K)
		if m.Steady {
			limit += 10 * time.Minute / time.Duration(p.Machine.K) // a service's start
		}
	}
	cmd := exec.CommandContext(ctx, g.lab, "run", "--slow", fmt.Sprint(m.K), "--smp", fmt.Sprint(m.CPUs), "--kernel",
		m.Kernel, "--timeout", limit.String(),
		"--file", piecesPath+"="+list, "--file", programPath+"="+g.program)
	if m.Steady {
		cmd.Args = append(cmd.Args, "--steady")
	}
	if packages := packagesOf(pieces); len(packages) > 0 {
		cmd.Args = append(cmd.Args, "--packages", strings.Join(packages, ","), "--memory", "6144")
	}
	if slices.ContainsFunc(pieces, func(p piece) bool { return p.Kind == fixed }) {
		cmd.Args = append(cmd.Args, "--file", toolPath+"="+g.tool)
	}
	cmd.Args = append(cmd.Args, "--", programPath, insideCommand)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = g.say
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	followed := g.follow(out, pieces, cmd.Process.Pid)
	if followed != nil {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	ended := cmd.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(followed, ended)
}

// follow reads the guest's messages.
func (g *guest) follow(out io.Reader, pieces []piece, pid int) error {
	var speed wire.Speed
	var release string
	var before look
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("the guest said %.200q: %w", line, err)
		}
		switch {
		case m.Speed != nil:
			speed, release = *m.Speed, m.Release
		case m.Began != nil:
			if before, err = lookNow(pid); err != nil {
				return err
			}
		case m.Ended != nil:
			after, err := lookNow(pid)
			if err != nil {
				return err
			}
			if *m.Ended < 0 || *m.Ended >= len(pieces) {
				return fmt.Errorf("the guest ended piece %d of %d", *m.Ended, len(pieces))
			}
			p := pieces[*m.Ended]
			calibration := worth(p.Machine, speed, before, after, m.Took)
			failed := m.Failed
			if failed == "" && !calibration.OK {
				failed = strings.Join(calibration.Off, "; ")
			}
			if err := g.done(p, m, release, calibration, failed); err != nil {
				return err
			}
		}
	}
}
